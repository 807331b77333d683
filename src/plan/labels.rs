//! Every placeholder that is a label has one value in every selected pair, no value leads a path out of the workspace,
//! and each can be quoted where a command has it, so that no attempt fails for it.

use std::collections::BTreeMap;

use super::{PlanError, hint};
use crate::config::template::{
    BUILT_IN_PLACEHOLDERS, CommandError, CommandTemplate, Template, Values, stays_inside,
};
use crate::config::{Config, SandboxConfig};
use crate::model::Pair;

/// Checks the placeholders of `config` against the labels of `pairs`.
pub(super) fn check(config: &Config, pairs: &[&Pair]) -> Result<(), PlanError> {
    let mut names: BTreeMap<&str, &'static str> = BTreeMap::new();
    for (key, name) in config.placeholders() {
        if !BUILT_IN_PLACEHOLDERS.contains(&name) {
            names.entry(name).or_insert(key);
        }
    }
    for pair in pairs {
        for (&name, &key) in &names {
            match pair.labels.values(name) {
                [_] => {}
                [] => {
                    let known = pair
                        .labels
                        .0
                        .keys()
                        .map(String::as_str)
                        .chain(BUILT_IN_PLACEHOLDERS);
                    return Err(PlanError::NoLabel {
                        key,
                        name: name.to_owned(),
                        pair: pair.id.to_string(),
                        hint: hint::nearest(name, known),
                    });
                }
                values => {
                    return Err(PlanError::ManyValues {
                        key,
                        name: name.to_owned(),
                        pair: pair.id.to_string(),
                        values: values.join(", "),
                    });
                }
            }
        }
        for (key, template) in paths(config) {
            check_path(key, template, pair)?;
        }
        for (key, command) in commands(config) {
            check_command(key, command, pair)?;
        }
    }
    Ok(())
}

/// What an attempt's values lead to in its workspace.
fn paths(config: &Config) -> impl Iterator<Item = (&'static str, &Template)> {
    let attempt = &config.attempt;
    let keep = attempt.keep.as_ref().map(|keep| &keep.path);
    let paths = [
        ("attempt.result", attempt.result.as_ref()),
        ("attempt.keep.path", keep),
    ];
    paths.into_iter().filter_map(|(key, path)| Some((key, path?)))
}

const CREATE: &str = "sandbox.create";

/// The commands that know of the pair.
fn commands(config: &Config) -> impl Iterator<Item = (&'static str, &CommandTemplate)> {
    let attempt = &config.attempt;
    let create = match &config.sandbox {
        SandboxConfig::Command(engine) => Some(&engine.create),
        _ => None,
    };
    let commands = [
        ("attempt.setup", attempt.setup.as_ref()),
        ("attempt.boot", attempt.boot.as_ref()),
        ("attempt.command", Some(&attempt.command)),
        (CREATE, create),
    ];
    commands
        .into_iter()
        .filter_map(|(key, command)| Some((key, command?)))
}

/// The value of a placeholder; any number where it is one.
fn value<'a>(pair: &'a Pair, name: &str) -> Option<&'a str> {
    match name {
        "experiment" => Some(pair.id.experiment.as_str()),
        "eval" => Some(pair.id.eval.as_str()),
        // Every other one that is built in is a number.
        _ if BUILT_IN_PLACEHOLDERS.contains(&name) => Some("1"),
        _ => pair.labels.values(name).first().map(String::as_str),
    }
}

fn check_path(key: &'static str, template: &Template, pair: &Pair) -> Result<(), PlanError> {
    match template.render_with(|name| value(pair, name)) {
        Ok(path) if !stays_inside(&path) => Err(PlanError::LeavesWorkspace {
            key,
            path,
            pair: pair.id.to_string(),
        }),
        _ => Ok(()),
    }
}

fn check_command(key: &'static str, command: &CommandTemplate, pair: &Pair) -> Result<(), PlanError> {
    let values = command.placeholders().map(|name| {
        // What creates a sandbox knows no labels; what it is told besides is plain.
        let is_of_pair = key != CREATE || ["experiment", "eval"].contains(&name);
        let value = value(pair, name).filter(|_| is_of_pair).unwrap_or("1");
        (name.to_owned(), value.to_owned())
    });
    match command.render(&Values(values.collect())) {
        Err(source @ CommandError::Unquotable { .. }) => Err(PlanError::Unquotable {
            key,
            pair: pair.id.to_string(),
            source,
        }),
        _ => Ok(()),
    }
}
