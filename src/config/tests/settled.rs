//! The values that a file is settled to.

use std::time::Duration;

use super::{FULL, LEAST, file, read};
use crate::config::settings::Given;
use crate::config::template::{CommandTemplate, Template};
use crate::config::{
    BaselineConfig, BudgetConfig, CommandLine, Discovery, Format, IdPart, LimitConfig, OneOrMany,
    PublishWhat, SandboxConfig, SecretConfig, SuiteSource, WantedConcurrency, WorkspaceMode, load,
    load_comparison,
};
use crate::model::{Gate, OnPass, OnTimeout, Policy, Produces, Strategy as When};

#[test]
fn the_least_file_has_every_default() {
    let config = read(LEAST);
    assert_eq!(config.suite.name, "evals");
    assert!(matches!(&config.suite.source, SuiteSource::File(path) if path == "pairs.json"));
    assert!(config.suite.include.is_empty() && config.suite.exclude.is_empty());
    assert_eq!((config.runs, config.strategy), (1, When::Sequential));
    assert_eq!(
        (config.concurrency, config.max_concurrency),
        (WantedConcurrency::Auto, None)
    );
    assert_eq!(
        (config.policy, config.on_pass, config.on_timeout),
        (Policy::Any, OnPass::Continue, OnTimeout::Fail)
    );
    assert_eq!((config.retry.tries, config.retry.budget), (3, 0.2));
    assert_eq!((config.limits.len(), config.budget), (0, BudgetConfig::default()));
    assert_eq!(config.baseline, BaselineConfig::Auto);
    assert_eq!(config.fail_on, [Gate::Incomplete]);
    assert_eq!((config.compare.alpha, config.compare.margin), (0.05, 0.1));
    assert_eq!(config.report.group_by, None);

    let attempt = &config.attempt;
    assert_eq!(
        attempt.command,
        CommandTemplate::Shell(Template::parse("run").unwrap())
    );
    assert_eq!(
        (attempt.produces, attempt.format.clone()),
        (Produces::Attempt, Format::ExitCode)
    );
    assert_eq!(
        (&attempt.exit.pass[..], &attempt.exit.fail[..]),
        (&[0][..], &[1][..])
    );
    assert!(attempt.upload.git && attempt.infra.exit.is_empty() && attempt.keep.is_none());
    assert_eq!(attempt.publish.file.source(), "{eval}.json");
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    assert_eq!((attempt.timeout, attempt.grace), (minutes(12), minutes(5)));
    let phases = attempt.phases;
    assert_eq!(
        (phases.provision, phases.setup, phases.collect),
        (minutes(10), minutes(15), minutes(5))
    );

    let SandboxConfig::Local(local) = config.sandbox else {
        panic!("{:?}", config.sandbox)
    };
    assert_eq!(local.workspace, WorkspaceMode::Copy);
    assert_eq!(local.memory_per_attempt, 256_000_000);
}

#[test]
fn every_key_arrives() {
    let config = read(FULL);
    assert_eq!(config.suite.name, "benchmark");
    let SuiteSource::Discover { evals, experiments } = &config.suite.source else {
        panic!("{:?}", config.suite.source);
    };
    assert!(matches!(evals, Discovery::Glob { glob, id: IdPart::Dir } if glob == "evals/*/PROMPT.md"));
    assert!(matches!(
        experiments,
        Some(Discovery::Glob { id: IdPart::Stem, .. })
    ));
    assert_eq!(config.suite.include[0].experiment.as_deref(), Some("claude-*"));
    assert_eq!(config.suite.exclude[0].labels["suite"], "regression");
    assert_eq!(config.suite.changed.evals[0].source(), "evals/{eval}/**");
    assert_eq!(config.suite.changed.all, ["packages/**", "pnpm-lock.yaml"]);

    let attempt = &config.attempt;
    assert!(attempt.command.uses("timeout_sec") && attempt.setup.is_some() && attempt.boot.is_some());
    assert_eq!(
        attempt.result.as_ref().unwrap().source(),
        "results/{experiment}/{eval}.json"
    );
    assert_eq!(attempt.format, Format::Auto);
    assert_eq!(attempt.infra.exit, [75]);
    assert!(attempt.infra.error[0].is_match("429: RATE LIMIT"));
    assert_eq!(attempt.keep.as_ref().unwrap().max_size, 200_000_000);
    assert_eq!(attempt.publish.what, PublishWhat::Representative);
    assert_eq!(attempt.env["CI"].source(), "1");
    assert_eq!(attempt.env_from, ["LANG"]);
    let secret = |name: &str, optional| SecretConfig {
        name: name.to_owned(),
        optional,
    };
    assert_eq!(
        attempt.secrets,
        [secret("ANTHROPIC_API_KEY", false), secret("OPENAI_API_KEY", true)]
    );

    assert_eq!(config.runs, 2);
    assert_eq!(
        config.fail_on,
        [
            Gate::Incomplete,
            Gate::Regression,
            Gate::Significant,
            Gate::Error,
            Gate::Drop(0.05),
            Gate::Below(0.8),
            Gate::NotProven(0.05),
            Gate::NoBaseline,
            Gate::Inconclusive,
        ]
    );
    assert_eq!(config.report.group_by.as_deref(), Some("provider"));
    let SandboxConfig::Local(local) = &config.sandbox else {
        panic!("{:?}", config.sandbox)
    };
    assert_eq!(local.link, ["node_modules", ".venv"]);
}

#[test]
fn values_are_read_in_their_units() {
    for (written, milliseconds) in [
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("1d2h3m4s5ms", 93_784_005),
        ("300ms", 300),
        ("30d", 2_592_000_000),
    ] {
        let config = read(&format!("{LEAST}  timeout: {written}\n"));
        assert_eq!(
            config.attempt.timeout,
            Duration::from_millis(milliseconds),
            "{written}"
        );
    }
    for (written, bytes) in [
        ("1kB", 1_000),
        ("64MiB", 67_108_864),
        ("1.5 GB", 1_500_000_000),
        ("7B", 7),
    ] {
        let config = read(&format!("{LEAST}  keep: {{ path: a, max-size: {written} }}\n"));
        assert_eq!(config.attempt.keep.unwrap().max_size, bytes, "{written}");
    }
    for (written, share) in [("0%", 0.0), ("12.5%", 0.125), ("12.05%", 0.1205), ("100%", 1.0)] {
        assert_eq!(
            read(&format!("{LEAST}retry: {{ budget: {written} }}\n"))
                .retry
                .budget,
            share,
            "{written}"
        );
    }
}

#[test]
fn policies_and_gates_are_read() {
    for (written, policy) in [
        ("all", Policy::All),
        ("majority", Policy::Majority),
        (
            "{ mean: 1 }",
            Policy::Mean {
                threshold: 1.0,
                complete: false,
            },
        ),
        (
            "{ mean: 0.5, complete: true }",
            Policy::Mean {
                threshold: 0.5,
                complete: true,
            },
        ),
    ] {
        assert_eq!(
            read(&format!("{LEAST}policy: {written}\n")).policy,
            policy,
            "{written}"
        );
    }
    assert_eq!(read(&format!("{LEAST}fail-on: [never]\n")).fail_on, [Gate::Never]);
    assert_eq!(
        read(&format!("{LEAST}fail-on: regression\n")).fail_on,
        [Gate::Regression]
    );
    assert_eq!(
        read(&format!("{LEAST}baseline: none\n")).baseline,
        BaselineConfig::None
    );
    let sources = ["git:main:a.json", "out/latest"].map(str::to_owned).to_vec();
    assert_eq!(
        read(&format!("{LEAST}baseline: ['git:main:a.json', out/latest]\n")).baseline,
        BaselineConfig::Sources(sources)
    );
}

#[test]
fn pairs_come_in_every_form() {
    let source = |suite: &str| {
        read(&format!(
            "version: 1\nattempt: {{ command: run }}\nsuite:\n  {suite}\n"
        ))
        .suite
        .source
    };
    let SuiteSource::Inline(pairs) = source("pairs: [{ experiment: a, eval_id: b, tier: [x, y] }]") else {
        panic!("not inline");
    };
    assert_eq!(pairs[0]["tier"], OneOrMany(vec!["x".to_owned(), "y".to_owned()]));
    assert_eq!(pairs[0]["eval_id"], OneOrMany(vec!["b".to_owned()]));
    assert!(matches!(
        source("pairs: { command: [list, --json] }"),
        SuiteSource::Command(CommandLine::Argv(argv)) if argv == ["list", "--json"]
    ));
    let SuiteSource::Discover {
        evals: Discovery::List(ids),
        experiments: None,
    } = source("evals: [a, { id: b, labels: { tier: critical } }]")
    else {
        panic!("not a list");
    };
    assert_eq!((ids[0].id.as_str(), ids[1].id.as_str()), ("a", "b"));
    assert_eq!(ids[1].labels["tier"], OneOrMany(vec!["critical".to_owned()]));
    assert!(matches!(
        source("evals: { glob: 'evals/*.md' }"),
        SuiteSource::Discover {
            evals: Discovery::Glob { id: IdPart::Stem, .. },
            ..
        }
    ));
}

#[test]
fn every_attempt_published_has_a_path_of_its_own() {
    let config = read(&format!("{LEAST}  publish: {{ what: all }}\n"));
    assert_eq!(
        config.attempt.publish.file.source(),
        "{eval}/run-{attempt}/result.json"
    );
}

#[test]
fn placeholders_are_told_with_their_key() {
    let config = read(&format!(
        "{LEAST}  setup: [make, '{{eval}}']\n  env: {{ A: '{{model}}' }}\n"
    ));
    assert_eq!(
        config.placeholders(),
        [
            ("attempt.setup", "eval"),
            ("attempt.publish.as", "eval"),
            ("attempt.env", "model")
        ]
    );
}

#[test]
fn the_hash_follows_what_decides_the_results_and_nothing_else() {
    let hash = read(LEAST).hash();
    assert_eq!(
        hash,
        "3bb912c1759fca37ef8c5f388805b31f5096ad30dd6f4fe269dbdaa5f3ecfa6e"
    );
    for same in [
        "strategy: parallel",
        "concurrency: 3",
        "baseline: none",
        "fail-on: [never]",
        "runs: 1",
        "  timeout: 720s",
        "  grace: 1m",
        "sandbox: { workspace: shared }",
    ] {
        assert_eq!(read(&format!("{LEAST}{same}\n")).hash(), hash, "{same}");
    }
    let mut seen = vec![hash];
    for other in [
        "runs: 2",
        "policy: all",
        "on-timeout: error",
        "  setup: make",
        "  boot: make",
        "  env: { A: b }",
        "  env-from: [A]",
        "  secrets: [A]",
        "  timeout: 13m",
        "  result: a.json",
        "  exit: { fail: [2] }",
        "  infra: { exit: [2] }",
        "  infra: { error: [a] }",
    ] {
        let hash = read(&format!("{LEAST}{other}\n")).hash();
        assert!(!seen.contains(&hash), "{other}");
        seen.push(hash);
    }
}

#[test]
fn limits_budgets_and_prices_arrive() {
    let text = format!(
        "{LEAST}strategy: adaptive\nlimits:\n  - {{ label: provider=anthropic, concurrency: 200 }}\nbudget: {{ sandbox-minutes: 60, cost: 2.5, allow-unknown: true }}\nprice: {{ vcpu-hour: 0.128, gb-hour: 0.0212, models: {{ small: {{ input: 3, output: 15.0 }} }} }}\n"
    );
    let config = read(&text);
    assert_eq!(config.strategy, When::Adaptive);
    let limit = LimitConfig {
        name: "provider".to_owned(),
        value: "anthropic".to_owned(),
        concurrency: 200,
    };
    assert_eq!(config.limits, [limit]);
    assert_eq!(
        config.budget,
        BudgetConfig {
            sandbox_minutes: Some(60.0),
            cost: Some(2.5),
            allow_unknown: true
        }
    );
    assert_eq!(config.price.models["small"].output, 15.0);
    // What runs on this machine costs nothing.
    assert_eq!(config.price.sandbox_second, 0.0);
    let hired = read(&format!("{text}sandbox: {{ kind: vercel, vcpus: 4 }}\n"));
    let hour = hired.price.sandbox_second * 3600.0;
    assert!((hour - (4.0 * 0.128 + 8.0 * 0.0212)).abs() < 1e-9, "{hour}");
    let free = read(&format!("{LEAST}sandbox: {{ kind: vercel }}\n"));
    assert_eq!(free.price.sandbox_second, 0.0);
}

#[test]
fn a_run_needs_a_file_and_a_comparison_does_not() {
    assert_eq!(
        load(None, &Given::default()).unwrap_err().to_string(),
        "cannot find a configuration: expected `evalwave.yml` or `.github/evalwave.yml`, or a file named by `--config`"
    );
    let settled = load_comparison(None, &Given::default()).unwrap();
    assert_eq!((settled.policy, settled.baseline), (None, BaselineConfig::Auto));
    assert_eq!(settled.fail_on, [Gate::Incomplete]);
}

#[test]
fn a_comparison_heeds_the_file() {
    let text = format!(
        "{LEAST}policy: all\nfail-on: [regression]\ncompare: {{ margin: 5pp }}\nstrategy: adaptive\n"
    );
    let settled = load_comparison(Some(&file(&text)), &Given::default()).unwrap();
    assert_eq!(
        (settled.policy, settled.compare.margin),
        (Some(Policy::All), 0.05)
    );
    assert_eq!(settled.fail_on, [Gate::Regression]);

    let text = format!("{LEAST}gates: [{{ label: a=b, fail-on: [error] }}]\n");
    let settled = load_comparison(Some(&file(&text)), &Given::default()).unwrap();
    assert_eq!(settled.gates[0].fail_on, [Gate::Error]);
}

#[test]
fn history_confirmation_label_gates_and_quarantine_arrive() {
    let config = read(&format!(
        "{LEAST}history: 4\nconfirm: 2\ngates: [{{ label: tier=critical, fail-on: [regression, error] }}]\nflaky: [{{ eval: 'build-*', until: 2027-01-31, why: slow }}]\nbaseline: measure:v1\n"
    ));
    assert_eq!((config.history.runs, config.confirm), (4, 2));
    let gates = &config.gates[0];
    assert_eq!((&*gates.name, &*gates.value), ("tier", "critical"));
    assert_eq!(gates.fail_on, [Gate::Regression, Gate::Error]);
    let flaky = &config.flaky[0];
    assert_eq!(
        (&flaky.experiment, flaky.eval.as_deref()),
        (&None, Some("build-*"))
    );
    assert_eq!(flaky.until, Some(jiff::civil::date(2027, 1, 31)));
    assert_eq!(flaky.why.as_deref(), Some("slow"));
    assert_eq!(config.baseline, BaselineConfig::Measure(Some("v1".to_owned())));

    let least = read(LEAST);
    assert_eq!((least.history.runs, least.confirm), (10, 0));
    let flags = [
        ("--history", "a.json"),
        ("--history", "b"),
        ("--confirm", "3"),
        ("--baseline", "measure"),
    ];
    let flags = flags.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = load(Some(&file(LEAST)), &Given::new(flags, [], [])).unwrap();
    assert_eq!(config.history.sources, ["a.json", "b"]);
    assert_eq!(
        (config.confirm, config.baseline),
        (3, BaselineConfig::Measure(None))
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_file() {
    assert_eq!(read(&format!("\u{feff}{LEAST}")).hash(), read(LEAST).hash());
}
