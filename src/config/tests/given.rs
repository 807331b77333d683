//! Flags, action inputs and environment variables against the file.

use std::time::Duration;

use proptest::prelude::*;

use super::{LEAST, file};
use crate::config::settings::{self, Given, SETTINGS, Setting};
use crate::config::{BaselineConfig, Config, SuiteSource, WantedConcurrency, load, load_comparison};
use crate::model::{Gate, Policy, Strategy as When};

fn given(flags: &[(&str, &str)], inputs: &[(&str, &str)], environment: &[(&str, &str)]) -> Given {
    let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    Given::new(own(flags), own(inputs), own(environment))
}

fn read(text: &str, given: &Given) -> Config {
    load(Some(&file(text)), given).unwrap_or_else(|error| panic!("{error}"))
}

fn message(text: &str, given: &Given) -> String {
    load(Some(&file(text)), given).map_or_else(|error| error.to_string(), |_| "no error".to_owned())
}

#[test]
fn a_flag_beats_an_input_that_a_variable_that_the_file_that_the_default() {
    let text = format!("{LEAST}runs: 5\n");
    let (flag, input, variable) = (("--runs", "2"), ("runs", "3"), ("EVAL_RUNS", "4"));
    assert_eq!(read(&text, &given(&[flag], &[input], &[variable])).runs, 2);
    assert_eq!(read(&text, &given(&[], &[input], &[variable])).runs, 3);
    assert_eq!(read(&text, &given(&[], &[], &[variable])).runs, 4);
    assert_eq!(read(&text, &Given::default()).runs, 5);
    assert_eq!(read(LEAST, &Given::default()).runs, 1);
}

#[test]
fn an_empty_value_is_not_given_and_white_space_around_one_is_dropped() {
    let text = format!("{LEAST}runs: 5\n");
    assert_eq!(
        read(
            &text,
            &given(&[("--runs", "")], &[("runs", " \n")], &[("EVAL_RUNS", " 4\t")])
        )
        .runs,
        4
    );
}

#[test]
fn a_wrong_value_names_the_flag_input_or_variable() {
    let cases = [
        (
            given(&[("--runs", "0")], &[], &[]),
            "`--runs`: expected a whole number from 1 to 1000, found `0`",
        ),
        (
            given(&[], &[("runs", "+2")], &[]),
            "input `runs`: expected a whole number from 1 to 1000, found `+2`",
        ),
        (
            given(&[], &[], &[("EVAL_RUNS", "two")]),
            "`EVAL_RUNS`: expected a whole number from 1 to 1000, found `two`",
        ),
        (
            given(&[("--runs", "1"), ("--runs", "2")], &[], &[]),
            "`--runs`: expected one value, found 2",
        ),
        (
            given(&[("--strategy", "fast")], &[], &[]),
            "`--strategy`: expected `sequential`, `parallel` or `adaptive`, found `fast`; the nearest known one is `adaptive`",
        ),
        (
            given(&[], &[], &[("EVAL_CONCURRENCY", "0")]),
            "`EVAL_CONCURRENCY`: expected `auto` or a whole number from 1 to 100000, found `0`",
        ),
        (
            given(&[], &[("max-concurrency", "auto")], &[]),
            "input `max-concurrency`: expected a whole number from 1 to 100000, found `auto`",
        ),
        (
            given(&[("--timeout", "720")], &[], &[]),
            "`--timeout`: expected a duration such as `12m`, `90s` or `1h30m`, found `720`",
        ),
        (
            given(&[], &[], &[("EVAL_TIMEOUT_SEC", "12m")]),
            "`EVAL_TIMEOUT_SEC`: expected a whole number of seconds from 1 to 2592000 (30 days), found `12m`",
        ),
        (
            given(&[("--sandbox", "docker")], &[], &[]),
            "`--sandbox`: expected a kind that needs no more keys, or the configuration's own, found `docker`\nwrite `kind: docker` with its keys below `sandbox`",
        ),
        (
            given(&[("--sandbox", "lokal")], &[], &[]),
            "`--sandbox`: expected `local`, `docker`, `vercel` or `command`, found `lokal`; the nearest known one is `local`",
        ),
        (
            given(&[("--baseline", "auto"), ("--baseline", "x.json")], &[], &[]),
            "`--baseline`: expected `auto` alone, found it with other sources",
        ),
        (
            given(&[("--fail-on", "error,,error")], &[], &[]),
            "`--fail-on`: `error` is given twice",
        ),
        (
            given(&[("--fail-on", "never,error")], &[], &[]),
            "`--fail-on`: expected `never` alone, found it with other findings",
        ),
        (
            given(&[("--fail-on", ",")], &[], &[]),
            "`--fail-on`: expected a finding such as `incomplete`, `regression`, `drop:5pp` or `below:80%`, found only separators",
        ),
        (
            given(&[("--policy", "mean:2")], &[], &[]),
            "`--policy`: expected `any`, `all`, `majority`, `mean:0.5` or `mean:0.5:complete`, the threshold from 0 to 1, found `mean:2`",
        ),
        (
            given(&[("--confirm", "-1")], &[], &[]),
            "`--confirm`: expected a whole number from 0 to 100, found `-1`",
        ),
        (
            given(&[("--history", "a.json"), ("--history", "measure")], &[], &[]),
            "`--history`: expected results that are there already: a path or `git:REF:PATH`, found `measure`",
        ),
        (
            given(&[("--baseline", "measure:main\na.json")], &[], &[]),
            "`--baseline`: expected `measure:main` alone, found it with other sources",
        ),
        (
            given(&[("--pairs", "a"), ("--pairs-json", "[]")], &[], &[]),
            "`--pairs-json`: expected one source of pairs, found `--pairs` too\ngive one of them",
        ),
    ];
    for (given, expected) in cases {
        assert_eq!(message(LEAST, &given), expected);
    }
}

#[test]
fn what_is_for_sandboxes_of_vercel_alone_is_refused_elsewhere() {
    let cases = [
        (
            given(&[], &[], &[("EVAL_SNAPSHOT_ID", "snap_1")]),
            "`EVAL_SNAPSHOT_ID`: it means something for `sandbox.kind: vercel` alone, found `local`\nleave it out, or change that",
        ),
        (
            given(&[], &[("revision", "abc")], &[]),
            "input `revision`: it means something for `sandbox.kind: vercel` alone, found `local`\nleave it out, or change that",
        ),
    ];
    for (given, expected) in cases {
        assert_eq!(message(LEAST, &given), expected);
    }
}

#[test]
fn the_variable_turns_the_parallel_mode_on_and_off() {
    let text = format!("{LEAST}concurrency: 8\n");
    let cases = [
        ("true", When::Parallel),
        ("TRUE", When::Parallel),
        ("1", When::Parallel),
        ("Yes", When::Parallel),
        (" on ", When::Parallel),
        ("false", When::Sequential),
        ("0", When::Sequential),
        ("NO", When::Sequential),
        ("off", When::Sequential),
        ("", When::Sequential),
    ];
    for (value, strategy) in cases {
        let config = read(&text, &given(&[], &[], &[("EVAL_PARALLEL_ATTEMPTS", value)]));
        assert_eq!(config.strategy, strategy, "{value:?}");
        let concurrency = match strategy {
            When::Parallel => WantedConcurrency::Auto,
            _ => WantedConcurrency::Fixed(8),
        };
        assert_eq!(config.concurrency, concurrency, "{value:?}");
    }
    assert_eq!(
        message(&text, &given(&[], &[], &[("EVAL_PARALLEL_ATTEMPTS", "maybe")])),
        "`EVAL_PARALLEL_ATTEMPTS`: expected true or false (1/0, yes/no, on/off, in any case) or `adaptive`, found `maybe`"
    );
}

#[test]
fn one_wave_yields_to_a_concurrency_of_its_own_level_or_above() {
    let text = format!("{LEAST}concurrency: 8\nmax-concurrency: 9\n");
    let wave = ("EVAL_PARALLEL_ATTEMPTS", "true");
    let concurrency = |given: &Given| {
        let config = read(&text, given);
        assert_eq!(
            (config.strategy, config.max_concurrency),
            (When::Parallel, Some(9))
        );
        config.concurrency
    };
    assert_eq!(concurrency(&given(&[], &[], &[wave])), WantedConcurrency::Auto);
    assert_eq!(
        concurrency(&given(&[], &[], &[wave, ("EVAL_CONCURRENCY", "5")])),
        WantedConcurrency::Fixed(5)
    );
    assert_eq!(
        concurrency(&given(&[("--concurrency", "6")], &[], &[wave])),
        WantedConcurrency::Fixed(6)
    );
    let flag = ("--parallel-attempts", "true");
    assert_eq!(
        concurrency(&given(&[flag], &[], &[("EVAL_CONCURRENCY", "5")])),
        WantedConcurrency::Auto
    );
    // A strategy of a higher level overrules the variable, and with it the one wave.
    assert_eq!(
        concurrency(&given(&[("--strategy", "parallel")], &[], &[wave])),
        WantedConcurrency::Fixed(8)
    );
}

#[test]
fn a_strategy_of_a_higher_level_overrules_the_variable() {
    let variable = ("EVAL_PARALLEL_ATTEMPTS", "true");
    let config = read(LEAST, &given(&[("--strategy", "sequential")], &[], &[variable]));
    assert_eq!(config.strategy, When::Sequential);
    // And the other way round.
    let config = read(
        LEAST,
        &given(&[("--parallel-attempts", "no")], &[("strategy", "parallel")], &[]),
    );
    assert_eq!(config.strategy, When::Sequential);
}

#[test]
fn two_that_disagree_at_one_level_are_refused() {
    assert_eq!(
        message(
            LEAST,
            &given(
                &[("--parallel-attempts", "true"), ("--strategy", "sequential")],
                &[],
                &[]
            )
        ),
        "`--parallel-attempts`: `--parallel-attempts true` and `--strategy sequential` contradict each other\ngive one of them"
    );
    assert_eq!(
        message(
            LEAST,
            &given(
                &[],
                &[("parallel-attempts", "false"), ("strategy", "parallel")],
                &[]
            )
        ),
        "input `parallel-attempts`: input `parallel-attempts: false` and input `strategy: parallel` contradict each other\ngive one of them"
    );
    let agree = given(
        &[("--parallel-attempts", "true"), ("--strategy", "parallel")],
        &[],
        &[],
    );
    assert_eq!(read(LEAST, &agree).strategy, When::Parallel);
}

#[test]
fn a_command_that_runs_a_whole_pair_has_no_strategy() {
    let text = format!("{LEAST}  produces: pair\n  result: 'out/*.json'\n");
    assert_eq!(
        message(&text, &given(&[], &[], &[("EVAL_PARALLEL_ATTEMPTS", "1")])),
        "`EVAL_PARALLEL_ATTEMPTS`: expected `sequential` with `produces: pair`, found `parallel`: one command runs all attempts of its pair itself"
    );
    assert_eq!(read(&text, &Given::default()).strategy, When::Sequential);
}

#[test]
fn cancelling_on_a_pass_waits_for_the_variable() {
    let text = format!("{LEAST}on-pass: cancel\n");
    assert_eq!(read(&text, &Given::default()).strategy, When::Sequential);
    assert_eq!(
        read(&text, &given(&[], &[], &[("EVAL_PARALLEL_ATTEMPTS", "on")])).strategy,
        When::Parallel
    );
}

#[test]
fn a_timeout_is_a_duration_by_flag_and_seconds_by_input_and_variable() {
    let timeout = |given: &Given| read(LEAST, given).attempt.timeout;
    assert_eq!(
        timeout(&given(&[("--timeout", "2m")], &[], &[])),
        Duration::from_secs(120)
    );
    assert_eq!(
        timeout(&given(&[], &[("timeout-sec", "90")], &[])),
        Duration::from_secs(90)
    );
    assert_eq!(
        timeout(&given(&[], &[], &[("EVAL_TIMEOUT_SEC", "60")])),
        Duration::from_secs(60)
    );
}

#[test]
fn pairs_from_outside_stand_in_for_the_files_suite() {
    let source = |given: &Given| {
        read("version: 1\nattempt: { command: run }\n", given)
            .suite
            .source
    };
    assert!(matches!(
        source(&given(&[("--pairs", "-")], &[], &[])),
        SuiteSource::Stdin
    ));
    assert!(matches!(
        source(&given(&[], &[("pairs", "/a/pairs.yml")], &[("EVAL_PAIRS", "[]")])),
        SuiteSource::File(path) if path == "/a/pairs.yml"
    ));
    assert!(matches!(
        source(&given(&[], &[], &[("EVAL_PAIRS", "[{}]")])),
        SuiteSource::Json { origin, text } if origin == "EVAL_PAIRS" && text == "[{}]"
    ));
    assert!(matches!(
        source(&given(&[("--pairs-json", "[]")], &[], &[])),
        SuiteSource::Json { origin, .. } if origin == "--pairs-json"
    ));
    let discovery = "version: 1\nattempt: { command: run }\nsuite: { evals: [a] }\n";
    let config = read(discovery, &given(&[("--pairs", "p.json")], &[], &[]));
    assert!(matches!(config.suite.source, SuiteSource::File(_)));
}

#[test]
fn lists_from_outside_are_taken_apart() {
    let config = read(
        LEAST,
        &given(
            &[("--fail-on", "regression, drop:5pp"), ("--fail-on", "error")],
            &[("baseline", "a.json\n\nb,c.json\n")],
            &[],
        ),
    );
    assert_eq!(config.fail_on, [Gate::Regression, Gate::Drop(0.05), Gate::Error]);
    assert_eq!(
        config.baseline,
        BaselineConfig::Sources(vec!["a.json".to_owned(), "b,c.json".to_owned()])
    );
}

#[test]
fn the_local_sandbox_can_be_asked_for_over_another_kind() {
    let text = format!("{LEAST}sandbox: {{ kind: docker, image: node }}\n");
    assert_eq!(
        read(&text, &given(&[("--sandbox", "local")], &[], &[]))
            .sandbox
            .kind(),
        "local"
    );
}

#[test]
fn a_comparison_has_flags_of_its_own() {
    let given = given(
        &[
            ("--policy", "mean:0.5:complete"),
            ("--group-by", "provider"),
            ("--baseline", "none"),
        ],
        &[],
        &[],
    );
    let settled = load_comparison(None, &given).unwrap();
    assert_eq!(
        settled.policy,
        Some(Policy::Mean {
            threshold: 0.5,
            complete: true
        })
    );
    assert_eq!(settled.report.group_by.as_deref(), Some("provider"));
    assert_eq!(settled.baseline, BaselineConfig::None);
}

#[test]
fn the_run_directory_is_looked_up_like_any_setting() {
    let given = given(&[], &[("output-dir", " out ")], &[]);
    assert_eq!(given.text(&settings::OUTPUT_DIR), Ok(Some("out")));
    assert_eq!(given.text(&settings::RUNS), Ok(None));
}

#[test]
fn no_two_settings_share_a_name() {
    let names: [fn(&Setting) -> Option<&'static str>; 4] = [
        |setting| setting.flag,
        |setting| setting.input,
        |setting| setting.variable,
        |setting| setting.key,
    ];
    for name in names {
        let mut all: Vec<&str> = SETTINGS.iter().filter_map(name).collect();
        let before = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), before);
    }
    for setting in SETTINGS {
        assert!(
            setting.flag.is_none_or(|flag| flag.starts_with("--")),
            "{setting:?}"
        );
        assert!(
            setting
                .variable
                .is_none_or(|variable| variable.starts_with("EVAL_")),
            "{setting:?}"
        );
    }
}

proptest! {
    #[test]
    fn no_value_panics(setting in prop::sample::select(SETTINGS), value in "\\PC{0,20}", level in 0..3) {
        let name = match level {
            0 => setting.flag,
            1 => setting.input,
            _ => setting.variable,
        };
        let pair = [(name.unwrap_or("x"), value.as_str())];
        let given = match level {
            0 => given(&pair, &[], &[]),
            1 => given(&[], &pair, &[]),
            _ => given(&[], &[], &pair),
        };
        let _ = load(Some(&file(LEAST)), &given);
        let _ = load_comparison(None, &given);
    }
}

#[test]
fn adaptive_can_be_asked_for_from_everywhere() {
    for given in [
        given(&[("--strategy", "adaptive")], &[], &[]),
        given(&[], &[("strategy", "adaptive")], &[]),
        given(&[], &[], &[("EVAL_PARALLEL_ATTEMPTS", "Adaptive")]),
    ] {
        let config = load(Some(&file(LEAST)), &given).unwrap();
        assert_eq!(config.strategy, When::Adaptive);
        assert_eq!(config.concurrency, WantedConcurrency::Auto);
    }
}
