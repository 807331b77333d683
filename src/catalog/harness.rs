//! Which harness a repository's evals are written for, by what lies in it. Knows nothing of what is made of that.

use std::collections::BTreeSet;
use std::path::Path;

use camino::Utf8Path;
use serde_json::Value;

use super::CatalogError;
use super::walk::{Kind, Walk};
use crate::model::layout::OUTPUT_ROOT;

/// Deeper than evals lie.
const DEEPEST: usize = 4;
/// More files than are looked at to know a harness.
const MOST_FILES: usize = 20_000;
/// Bytes of a source file in which its imports stand.
const HEAD: u64 = 64 << 10;

/// A harness that a repository is written for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harness {
    /// supabase/evals, with one result file a pair.
    SupabaseEvals,
    /// supabase/evals, with one result file a run.
    SupabaseEvalsRuns,
    /// @vercel/agent-eval.
    AgentEval,
    /// inspect_ai, with its tasks.
    Inspect {
        /// Where they lie.
        directory: String,
        /// Python files beside them that hold none, without their extension.
        helpers: Vec<String>,
    },
    /// harbor, with the directory of its tasks.
    Harbor(String),
    /// promptfoo.
    Promptfoo,
}

/// The harnesses that a repository shows signs of, each with its sign.
///
/// # Errors
/// A directory that cannot be read.
pub fn harnesses(root: &Utf8Path) -> Result<Vec<(Harness, String)>, CatalogError> {
    let mut found = Vec::new();
    let name =
        package(root, "apps/framework").and_then(|package| package["name"].as_str().map(str::to_owned));
    if name.as_deref() == Some("@supabase-evals/framework") {
        let sign = "apps/framework is `@supabase-evals/framework`".to_owned();
        let harness = match tree(root)?.iter().any(|path| is_prompt_of_suite(path)) {
            true => Harness::SupabaseEvalsRuns,
            false => Harness::SupabaseEvals,
        };
        // It is nobody else's repository, whatever else its packages need.
        return Ok(vec![(harness, sign)]);
    }
    if let Some(package) = package(root, "")
        && ["dependencies", "devDependencies"]
            .iter()
            .any(|kind| package[*kind]["@vercel/agent-eval"].is_string())
    {
        found.push((
            Harness::AgentEval,
            "package.json depends on `@vercel/agent-eval`".to_owned(),
        ));
    }
    let files = tree(root)?;
    let directory_of = |path: &str| {
        path.rsplit_once('/')
            .map_or(String::new(), |(directory, _)| directory.to_owned())
    };
    if let Some(path) = files
        .iter()
        .find(|path| path.starts_with("promptfooconfig") && path.ends_with(".yaml"))
    {
        found.push((Harness::Promptfoo, format!("`{path}` is there")));
    }
    let task = files.iter().filter_map(|path| path.strip_suffix("/task.toml"));
    if let Some(task) = task
        .into_iter()
        .find(|task| files.contains(&format!("{task}/instruction.md")))
    {
        found.push((
            Harness::Harbor(directory_of(task)),
            format!("`{task}` has a task.toml and an instruction.md"),
        ));
    }
    let python = files.iter().filter(|path| path.ends_with(".py"));
    if let Some(path) = python.into_iter().find(|path| has_inspect_task(&root.join(path))) {
        let directory = directory_of(path);
        let beside = files.iter().filter(|path| directory_of(path) == directory);
        let helpers = beside.filter_map(|path| {
            let (name, text) = (path.strip_suffix(".py")?, head(&root.join(path))?);
            let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
            let is_whole = (text.len() as u64) < HEAD;
            (is_whole && !text.lines().any(may_be_task)).then(|| name.to_owned())
        });
        found.push((
            Harness::Inspect {
                helpers: helpers.collect(),
                directory,
            },
            format!("`{path}` has a task of inspect_ai"),
        ));
    }
    Ok(found)
}

/// `evals/<suite>/<eval>/PROMPT.md`.
fn is_prompt_of_suite(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts.as_slice(), ["evals", _, _, "PROMPT.md"])
}

fn package(root: &Utf8Path, directory: &str) -> Option<Value> {
    let text = fs_err::read_to_string(root.join(directory).join("package.json")).ok()?;
    serde_json::from_str(&text).ok()
}

fn has_inspect_task(path: &Utf8Path) -> bool {
    let imports = |line: &str| line.starts_with("from inspect_ai") || line.starts_with("import inspect_ai");
    head(path).is_some_and(|text| text.lines().map(str::trim_start).any(imports) && text.lines().any(is_task))
}

/// Whether a line of Python makes what follows a task of inspect_ai.
fn is_task(line: &str) -> bool {
    line.starts_with("@task") || line.starts_with("@inspect_ai.task")
}

/// The same, however the module is called, and wherever the line stands.
fn may_be_task(line: &str) -> bool {
    let decorator = line.trim_start().strip_prefix('@');
    decorator.is_some_and(|decorator| {
        let name = decorator
            .split(|c: char| c != '.' && c != '_' && !c.is_alphanumeric())
            .next();
        name.and_then(|name| name.rsplit('.').next()) == Some("task")
    })
}

/// How a file begins; `None` where it cannot be read.
fn head(path: &Utf8Path) -> Option<String> {
    use std::io::Read as _;
    let mut head = Vec::new();
    let file = fs_err::File::open(path).ok()?;
    file.take(HEAD).read_to_end(&mut head).ok()?;
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// The files near the root, in the order of their names.
fn tree(root: &Utf8Path) -> Result<BTreeSet<String>, CatalogError> {
    let skipped = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
        name.starts_with('.') || ["node_modules", "venv", "target", OUTPUT_ROOT].contains(&name)
    };
    let walk = Walk {
        root,
        follow: false,
        deepest: DEEPEST,
        enter: &|path| !skipped(path),
    };
    let mut files = BTreeSet::new();
    walk.visit(Path::new(""), &mut |path, kind| {
        if let (Kind::File, Some(path)) = (kind, path.to_str())
            && files.len() < MOST_FILES
        {
            files.insert(path.replace('\\', "/"));
        }
        Ok(())
    })?;
    Ok(files)
}
