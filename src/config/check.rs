//! What the keys of a file may not say together. Each value alone is right by now.

use std::collections::{BTreeMap, BTreeSet};

use super::file::File;
use super::file::attempt::{Attempt, Json, Published, ResultFormat};
use super::file::suite::{Files, IdFrom, InlinePair, Pairs, Source, Suite};
use super::problem::{KeyPath, Problem};
use super::value::{GateText, Id, read};
use crate::glob::is_pattern;
use crate::model::{Gate, OnPass, Produces, Strategy};

/// The first contradiction.
pub(super) fn check(file: &File) -> Result<(), Problem> {
    if let Some(suite) = &file.suite {
        check_suite(suite)?;
    }
    check_attempt(&file.attempt)?;
    if let (Some(OnPass::Cancel), Some(strategy)) = (file.on_pass, file.strategy)
        && strategy != Strategy::Parallel
    {
        return Err(Problem::new(
            KeyPath::of("on-pass"),
            format!(
                "expected `strategy: parallel` with `cancel`, found `strategy: {strategy}`\nleave `on-pass` out: the other strategies stop a decided pair by themselves"
            ),
        ));
    }
    let limits = file.limits.iter().flat_map(|limits| &limits.0);
    let mut limited = BTreeSet::new();
    for (index, limit) in limits.enumerate() {
        let (name, value) = (limit.label.name(), limit.label.value());
        if !limited.insert((name, value)) {
            return Err(Problem::new(
                KeyPath::of("limits").index(index).key("label"),
                format!("expected each label once, found `{name}={value}` again\nkeep one of them"),
            ));
        }
    }
    if let Some(gates) = &file.fail_on {
        check_gates(&gates.0).map_err(|text| Problem::new(KeyPath::of("fail-on"), text))?;
    }
    for (index, gate) in file.gates.iter().flat_map(|gates| &gates.0).enumerate() {
        let path = KeyPath::of("gates").index(index).key("fail-on");
        check_gates(&gate.fail_on.0).map_err(|text| Problem::new(path, text))?;
    }
    if let Some(sources) = &file.baseline {
        let sources: Vec<&str> = sources.0.iter().map(|source| source.0.as_str()).collect();
        check_sources(&sources).map_err(|text| Problem::new(KeyPath::of("baseline"), text))?;
    }
    if let Some(margin) = file.compare.as_ref().and_then(|compare| compare.margin)
        && margin.0 == 0.0
    {
        return Err(Problem::new(
            KeyPath::of("compare.margin"),
            "expected more than 0 percentage points, found `0pp`",
        ));
    }
    for (index, flaky) in file.flaky.iter().flat_map(|flaky| &flaky.0).enumerate() {
        if flaky.experiment.is_none() && flaky.eval.is_none() {
            return Err(Problem::new(
                KeyPath::of("flaky").index(index),
                "expected `experiment` or `eval`, found neither",
            ));
        }
    }
    Ok(())
}

/// `never` says that nothing fails the run, so it says so alone.
pub(super) fn check_gates(gates: &[GateText]) -> Result<(), String> {
    let never = gates.iter().any(|gate| gate.0 == Gate::Never);
    if never && gates.len() > 1 {
        return Err("expected `never` alone, found it with other findings".to_owned());
    }
    Ok(())
}

/// `auto`, `none` and `measure` say where the whole baseline comes from.
pub(super) fn check_sources(sources: &[&str]) -> Result<(), String> {
    let alone = sources
        .iter()
        .find(|source| ["auto", "none", "measure"].contains(source) || source.starts_with("measure:"));
    match alone {
        Some(source) if sources.len() > 1 => {
            Err(format!("expected `{source}` alone, found it with other sources"))
        }
        _ => Ok(()),
    }
}

/// History is made of results that are there.
pub(super) fn check_history(sources: &[&str]) -> Result<(), String> {
    let names_none =
        |source: &&&str| ["auto", "none", "measure"].contains(*source) || source.starts_with("measure:");
    match sources.iter().find(names_none) {
        Some(source) => Err(format!(
            "expected results that are there already: a path or `git:REF:PATH`, found `{source}`"
        )),
        None => Ok(()),
    }
}

/// What of a file's path is the id, where the file does not say so.
pub(super) fn id_from(files: &Files) -> IdFrom {
    let name = files.glob.0.rsplit('/').next().unwrap_or_default();
    files.id.unwrap_or(if is_pattern(name) {
        IdFrom::Stem
    } else {
        IdFrom::Dir
    })
}

fn check_suite(suite: &Suite) -> Result<(), Problem> {
    if suite.pairs.is_some() {
        for (key, given) in [
            ("evals", suite.evals.is_some()),
            ("experiments", suite.experiments.is_some()),
        ] {
            if given {
                return Err(Problem::new(
                    KeyPath::of("suite.pairs"),
                    format!(
                        "expected explicit pairs or discovery, found `pairs` and `{key}`\nkeep one of them"
                    ),
                ));
            }
        }
    }
    if let Some(Pairs::Inline(pairs)) = &suite.pairs {
        check_pairs(pairs)?;
    }
    if suite.experiments.is_some() && suite.pairs.is_none() && suite.evals.is_none() {
        return Err(Problem::missing(
            KeyPath::of("suite.evals"),
            "the evals that `experiments` are paired with",
        ));
    }
    for (key, source) in [("evals", &suite.evals), ("experiments", &suite.experiments)] {
        check_source(source.as_ref(), &KeyPath::of("suite").key(key))?;
    }
    for (key, filters) in [("include", &suite.include), ("exclude", &suite.exclude)] {
        for (index, filter) in filters.iter().flat_map(|filters| &filters.0).enumerate() {
            let labels = filter.label.as_ref().is_some_and(|labels| !labels.is_empty());
            if filter.experiment.is_none() && filter.eval.is_none() && !labels {
                return Err(Problem::new(
                    KeyPath::of("suite").key(key).index(index),
                    "expected `experiment`, `eval` or `label`, found none of them",
                ));
            }
        }
    }
    Ok(())
}

fn check_pairs(pairs: &[InlinePair]) -> Result<(), Problem> {
    let mut seen = BTreeSet::new();
    for (index, pair) in pairs.iter().enumerate() {
        let path = KeyPath::of("suite.pairs").index(index);
        let id = |name: &str| pair_id(pair, name, &path);
        let experiment = id("experiment")?;
        let eval = match (id("eval")?, id("eval_id")?) {
            (Some(eval), None) | (None, Some(eval)) => eval,
            (None, None) => return Err(Problem::new(path, "expected `eval` in each pair, found none")),
            (Some(_), Some(_)) => {
                return Err(Problem::new(
                    path,
                    "expected `eval` or `eval_id`, found both\nkeep one of them",
                ));
            }
        };
        let Some(experiment) = experiment else {
            return Err(Problem::new(
                path,
                "expected `experiment` in each pair, found none",
            ));
        };
        if !seen.insert((experiment, eval)) {
            return Err(Problem::new(
                path,
                "the same pair stands in this list already\nkeep one of them",
            ));
        }
    }
    Ok(())
}

/// The keys of a pair that are ids; all others are labels.
fn pair_id<'a>(pair: &'a InlinePair, name: &str, path: &KeyPath) -> Result<Option<&'a str>, Problem> {
    let Some(values) = pair.0.get(name) else {
        return Ok(None);
    };
    match &values.0[..] {
        [id] => match read::<Id>(&id.0) {
            Ok(_) => Ok(Some(&id.0)),
            Err(text) => Err(Problem::new(path.clone().key(name), text)),
        },
        _ => Err(Problem::new(
            path.clone().key(name),
            "expected one id, found a list",
        )),
    }
}

fn check_source(source: Option<&Source>, path: &KeyPath) -> Result<(), Problem> {
    match source {
        Some(Source::List(ids)) if ids.is_empty() => Err(Problem::new(
            path.clone(),
            "expected at least one id, found an empty list",
        )),
        Some(Source::List(ids)) => {
            let mut seen = BTreeSet::new();
            for (index, listed) in ids.iter().enumerate() {
                if !seen.insert(listed.id()) {
                    return Err(Problem::new(
                        path.clone().index(index),
                        "the same id stands in this list already\nkeep one of them",
                    ));
                }
            }
            Ok(())
        }
        Some(Source::Files(files)) if id_from(files) == IdFrom::Dir && !files.glob.0.contains('/') => {
            Err(Problem::new(
                path.clone().key("glob"),
                "expected a directory in the glob, whose name is the id\nwrite `id: stem` for the file's own name",
            ))
        }
        _ => Ok(()),
    }
}

fn check_attempt(attempt: &Attempt) -> Result<(), Problem> {
    let at = |key: &str| KeyPath::of("attempt").key(key);
    match (&attempt.result, attempt.format) {
        (Some(_), Some(ResultFormat::ExitCode)) => {
            return Err(Problem::new(
                at("result"),
                "expected no result with `format: exit-code`, which reads none\n`keep` brings files back that are not the result",
            ));
        }
        (None, Some(format)) if format != ResultFormat::ExitCode => {
            return Err(Problem::missing(
                at("result"),
                "the path that `format` is read from (without both, the exit code is the result)",
            ));
        }
        (None, _) if attempt.produces == Some(Produces::Pair) => {
            return Err(Problem::missing(
                at("result"),
                "a glob: with `produces: pair` each file that it matches is an attempt",
            ));
        }
        _ => {}
    }
    if let Some(exit) = &attempt.exit {
        let pass = exit.pass.as_ref().map_or(&[][..], |codes| &codes.0);
        if exit.pass.is_some() && pass.is_empty() {
            return Err(Problem::new(
                at("exit").key("pass"),
                "expected at least one code, found an empty list: nothing could pass",
            ));
        }
        let passes = |code: u32| {
            if exit.pass.is_some() {
                pass.iter().any(|each| each.0 == code)
            } else {
                code == 0
            }
        };
        let fails = exit
            .fail
            .as_ref()
            .map_or(vec![1], |codes| codes.0.iter().map(|code| code.0).collect());
        if let Some(code) = fails.into_iter().find(|code| passes(*code)) {
            return Err(Problem::new(
                at("exit"),
                format!(
                    "expected each code in `pass` or `fail`, found {code} in both (`pass` is [0] and `fail` is [1] where they are not written)"
                ),
            ));
        }
    }
    check_json(attempt)?;
    if let Some(publish) = &attempt.publish
        && let (Some(Published::All), Some(file)) = (publish.what, &publish.file)
        && !file.0.placeholders().any(|name| name == "attempt")
    {
        return Err(Problem::new(
            at("publish").key("as"),
            format!(
                "expected `{{attempt}}` in it with `what: all`, found `{}`: the attempts would overwrite each other",
                file.0
            ),
        ));
    }
    check_variables(attempt)
}

/// A grade has a place, and places are only for documents that do not say themselves where it is.
fn check_json(attempt: &Attempt) -> Result<(), Problem> {
    let path = KeyPath::of("attempt").key("json");
    let pointed = |json: &Json| json.passed.is_some() || json.score.is_some();
    match (attempt.format, &attempt.json) {
        (Some(ResultFormat::Json), json) if !json.as_ref().is_some_and(pointed) => Err(Problem::missing(
            path,
            "`passed` or `score`, a JSON pointer to the grade, such as `{ passed: /summary/ok }`",
        )),
        (Some(ResultFormat::Json | ResultFormat::Jsonl), _) | (_, None) => Ok(()),
        (_, Some(_)) => Err(Problem::new(
            path,
            "expected `format: json` or `format: jsonl` with it: other formats say themselves where their grade is",
        )),
    }
}

/// A variable has one source.
fn check_variables(attempt: &Attempt) -> Result<(), Problem> {
    let path = KeyPath::of("attempt");
    let env = attempt.env.iter().flat_map(BTreeMap::keys);
    let taken = attempt.env_from.iter().flat_map(|names| &names.0);
    let secrets = attempt.secrets.iter().flat_map(|secrets| &secrets.0);
    let sources = env
        .map(|name| (name.0.as_str(), "env", path.clone().key("env").key(&name.0)))
        .chain(taken.enumerate().map(|(index, name)| {
            (
                name.0.as_str(),
                "env-from",
                path.clone().key("env-from").index(index),
            )
        }))
        .chain(
            secrets
                .enumerate()
                .map(|(index, secret)| (secret.name(), "secrets", path.clone().key("secrets").index(index))),
        );
    let mut seen = BTreeMap::new();
    for (name, source, path) in sources {
        if let Some(first) = seen.insert(name, source) {
            return Err(Problem::new(
                path,
                format!("expected one source of `{name}`, found `{first}` and `{source}`\nkeep one of them"),
            ));
        }
    }
    Ok(())
}
