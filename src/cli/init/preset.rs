//! The presets: a configuration for each harness, and the workflow for all of them. Reads and writes no files.

use super::place::{Place, is_plain};
use crate::catalog::Harness;
use crate::config::settings::Given;
use crate::config::{self, ConfigError, Source};

/// The presets by name, as they lie in `presets/`.
const PRESETS: [(&str, &str); 7] = [
    (
        "supabase-evals",
        include_str!("../../../presets/supabase-evals.yml"),
    ),
    (
        "supabase-evals-runs",
        include_str!("../../../presets/supabase-evals-runs.yml"),
    ),
    ("agent-eval", include_str!("../../../presets/agent-eval.yml")),
    ("inspect", include_str!("../../../presets/inspect.yml")),
    ("harbor", include_str!("../../../presets/harbor.yml")),
    ("promptfoo", include_str!("../../../presets/promptfoo.yml")),
    (PLAIN, include_str!("../../../presets/plain.yml")),
];
const PLAIN: &str = "plain";
/// Python files that are no tasks, as the preset of inspect_ai leaves them out.
const HELPERS: &str = "__init__,conftest,setup";
/// Lets a job run for pull requests that have a label, and once when they get it.
const CONDITION: &str = "    if: >-
      github.event_name != 'pull_request' ||
      (contains(github.event.pull_request.labels.*.name, 'LABEL') &&
      (github.event.action != 'labeled' || github.event.label.name == 'LABEL'))
";
const WORKFLOW: &str = include_str!("../../../presets/workflow.yml");

/// A preset, with where a repository has its tasks.
pub(super) struct Preset {
    name: &'static str,
    text: &'static str,
    /// The directory that the preset has, and the repository's own.
    directory: Option<(&'static str, String)>,
    /// Files among the tasks that are none, besides those that the preset names.
    helpers: Vec<String>,
}

impl Preset {
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        PRESETS.into_iter().map(|(name, _)| name)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let (name, text) = PRESETS.into_iter().find(|(each, _)| *each == name)?;
        Some(Self {
            name,
            text,
            directory: None,
            helpers: Vec::new(),
        })
    }

    pub(super) fn plain() -> Self {
        Self::named(PLAIN).expect("it is in the list above")
    }

    pub(super) fn of(harness: &Harness) -> Self {
        let (name, directory) = match harness {
            Harness::SupabaseEvals => ("supabase-evals", None),
            Harness::SupabaseEvalsRuns => ("supabase-evals-runs", None),
            Harness::AgentEval => ("agent-eval", None),
            Harness::Inspect { directory, .. } => ("inspect", Some(("evals/", directory))),
            Harness::Harbor(directory) => ("harbor", Some(("tasks/", directory))),
            Harness::Promptfoo => ("promptfoo", None),
        };
        let preset = Self::named(name).expect("it is in the list above");
        let helpers = match harness {
            Harness::Inspect { helpers, .. } => helpers.clone(),
            _ => Vec::new(),
        };
        Self {
            helpers,
            directory: directory.map(|(ours, theirs)| (ours, theirs.clone())),
            ..preset
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The configuration, with the repository's own directory where it is another than the preset's, and without what is
    /// no task there.
    pub(super) fn config(&self) -> String {
        let known = |name: &&String| !HELPERS.split(',').any(|helper| helper == name.as_str());
        let names = self.helpers.iter().filter(known).filter(|name| is_plain(name));
        let helpers = names.fold(HELPERS.to_owned(), |all, name| format!("{all},{name}"));
        self.in_place().replace(HELPERS, &helpers)
    }

    fn in_place(&self) -> String {
        match &self.directory {
            Some((ours, theirs)) if is_plain(theirs) => {
                let theirs = match theirs.is_empty() {
                    true => String::new(),
                    false => format!("{theirs}/"),
                };
                self.text.replace(ours, &theirs)
            }
            _ => self.text.to_owned(),
        }
    }
}

/// The workflow, with the secrets of a configuration and where it is; with `label`, only for pull requests that have it.
///
/// # Errors
/// What is wrong with the configuration.
pub(super) fn workflow(
    name: &str,
    config: &str,
    label: Option<&str>,
    place: &Place,
) -> Result<String, ConfigError> {
    let mut text = WORKFLOW.to_owned();
    if place.branch != "main" {
        text = text.replace("[main]", &format!("['{}']", place.branch));
    }
    if !place.down.is_empty() {
        text.push_str(&format!("          config: '{}{name}'\n", place.down));
    }
    let source = Source {
        name,
        bytes: config.as_bytes(),
    };
    let secrets = config::load_without_pairs(&source, &Given::default())?
        .attempt
        .secrets;
    if !secrets.is_empty() {
        text.push_str("        env:\n");
        for secret in &secrets {
            let name = &secret.name;
            text.push_str(&format!("          {name}: ${{{{ secrets.{name} }}}}\n"));
        }
    }
    let Some(label) = label else { return Ok(text) };
    let condition = CONDITION.replace("LABEL", label);
    // A label that has nothing to do with it must not stop a run that goes on.
    Ok(text
        .replace("synchronize]", "synchronize, labeled]")
        .replace(
            "github.event_name == 'pull_request' }}",
            "github.event_name == 'pull_request' && github.event.action != 'labeled' }}",
        )
        .replace(
            "    name: evals\n    runs-on",
            &format!("    name: evals\n{condition}    runs-on"),
        ))
}
