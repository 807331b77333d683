//! `evalwave init`: a first configuration and workflow, and what they would run.

mod place;
mod preset;

use std::io::Write as _;

use anyhow::{Context as _, anyhow, bail};
use camino::Utf8Path;

use super::arguments::{InitArguments, PlanArguments, SelectionArguments, TextOrJson, given};
use super::context::Context;
use super::sources::CONFIG_FILES;
use super::{Failure, plan, tell};
use crate::catalog;
use crate::model::ExitCode;
use place::Place;
use preset::Preset;

const WORKFLOW: &str = ".github/workflows/evals.yml";

pub(super) fn init(arguments: &InitArguments, context: &Context) -> Result<ExitCode, Failure> {
    let root = &context.current_dir;
    let preset = given(arguments.preset.as_deref()).map(named).transpose()?;
    let label = given(arguments.label.as_deref()).map(check_label).transpose()?;
    let place = Place::of(root);
    if !place::is_plain(&place.down) {
        let what = format!("cannot write a workflow for the directory `{}`", place.down);
        return Err(anyhow!("{what}\nexpected letters, digits and . _ - / in its name").into());
    }
    let there = CONFIG_FILES.iter().find(|path| root.join(path).exists());
    let (name, config) = match there {
        Some(there) => (*there, fs_err::read_to_string(root.join(there))?),
        None => (CONFIG_FILES[0], choose(preset, root)?.config()),
    };
    // A configuration that cannot be used is told before anything is written.
    let workflow = preset::workflow(name, &config, label, &place)?;
    match there {
        Some(there) => tell(&format!("`{there}` is there already and stays as it is")),
        None => {
            write(root, name, &config)?;
        }
    }
    if write(root, place.up.join(WORKFLOW).as_str(), &workflow)? {
        tell(&format!(
            "it runs on pushes to `{}`, which pull requests are compared with",
            place.branch
        ));
    }
    tell("next: put the owner of the action into the workflow, set its secrets, and look at the plan:");
    let plan_arguments = PlanArguments {
        selection: SelectionArguments::default(),
        baseline: None,
        history: Vec::new(),
        format: TextOrJson::Text,
    };
    plan::plan(&plan_arguments, context)
}

fn named(name: &str) -> anyhow::Result<Preset> {
    Preset::named(name).with_context(|| {
        let known: Vec<&str> = Preset::names().collect();
        format!("`{name}` is no preset: expected one of {}", known.join(", "))
    })
}

/// The preset of the harness that is found here, or the one that was named, with what is found of its harness.
fn choose(named: Option<Preset>, root: &Utf8Path) -> anyhow::Result<Preset> {
    let found = catalog::harnesses(root)?;
    if let Some(named) = named {
        let mut presets = found.iter().map(|(harness, _)| Preset::of(harness));
        return Ok(presets
            .find(|preset| preset.name() == named.name())
            .unwrap_or(named));
    }
    match found.as_slice() {
        [] => {
            tell("no harness is recognised here: the configuration is a beginning to fill in");
            Ok(Preset::plain())
        }
        [(harness, sign)] => {
            let preset = Preset::of(harness);
            tell(&format!("{sign}: the preset is `{}`", preset.name()));
            Ok(preset)
        }
        several => {
            let signs: Vec<String> = several
                .iter()
                .map(|(harness, sign)| format!("\n  --preset {}: {sign}", Preset::of(harness).name()))
                .collect();
            bail!(
                "more than one harness is recognised here\nname one:{}",
                signs.concat()
            )
        }
    }
}

/// A label's name stands in an expression of the workflow, where nothing but a name may stand.
fn check_label(label: &str) -> anyhow::Result<&str> {
    let label = label.trim();
    let plain = |char: char| char.is_alphanumeric() || " ._:/-".contains(char);
    if label.chars().count() > 50 || !label.chars().all(plain) {
        bail!(
            "`{label}` is no name for a label here: expected at most 50 letters, digits, spaces and . _ : / -"
        );
    }
    Ok(label)
}

/// Writes a file that is not there yet; one that is stays, and that is said. Gives whether it was written.
fn write(root: &Utf8Path, name: &str, text: &str) -> anyhow::Result<bool> {
    let path = root.join(name);
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent)?;
    }
    let created = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path);
    match created {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            tell(&format!("wrote `{name}`"));
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            tell(&format!("`{name}` is there already and stays as it is"));
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
