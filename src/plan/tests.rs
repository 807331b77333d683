use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::{Experience, Globs, LabelGlobs, PlanError, Request, Select, Shard, build, document, waves};
use crate::config::template::{CommandTemplate, Template};
use crate::config::{
    AttemptConfig, BaselineConfig, BudgetConfig, ChangedConfig, CompareConfig, Config, ExitConfig, Format,
    HomeMode, InfraConfig, LandlockMode, LocalConfig, NetworkMode, PhaseLimits, PriceConfig, PublishConfig,
    PublishWhat, ReportConfig, RetryConfig, SandboxConfig, SuiteConfig, SuiteSource, UploadConfig,
    WantedConcurrency, WorkspaceMode,
};
use crate::model::{
    Labels, OnPass, OnTimeout, Pair, PairId, Policy, Produces, RunPlan, SelectionKind, Strategy,
};

mod scheduling;

fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

fn config(command: &str) -> Config {
    Config {
        suite: SuiteConfig {
            name: "benchmark".to_owned(),
            source: SuiteSource::Stdin,
            is_given: false,
            include: Vec::new(),
            exclude: Vec::new(),
            changed: ChangedConfig::default(),
        },
        attempt: AttemptConfig {
            upload: UploadConfig {
                git: true,
                include: Vec::new(),
                exclude: Vec::new(),
            },
            setup: None,
            boot: None,
            command: CommandTemplate::Shell(template(command)),
            produces: Produces::Attempt,
            result: None,
            format: Format::Auto,
            exit: ExitConfig {
                pass: vec![0],
                fail: vec![1],
            },
            infra: InfraConfig::default(),
            keep: None,
            publish: PublishConfig {
                what: PublishWhat::Representative,
                file: template("{eval}.json"),
            },
            timeout: Duration::from_secs(720),
            grace: Duration::from_secs(300),
            phases: PhaseLimits {
                provision: Duration::from_secs(600),
                setup: Duration::from_secs(900),
                collect: Duration::from_secs(300),
            },
            env: BTreeMap::new(),
            env_from: Vec::new(),
            secrets: Vec::new(),
        },
        runs: 2,
        strategy: Strategy::Parallel,
        concurrency: WantedConcurrency::Auto,
        max_concurrency: None,
        policy: Policy::Any,
        on_pass: OnPass::Continue,
        on_timeout: OnTimeout::Fail,
        retry: RetryConfig {
            tries: 3,
            budget: 0.2,
        },
        limits: Vec::new(),
        budget: BudgetConfig::default(),
        price: PriceConfig::default(),
        sandbox: SandboxConfig::Local(LocalConfig {
            workspace: WorkspaceMode::Copy,
            link: Vec::new(),
            home: HomeMode::Private,
            landlock: LandlockMode::Auto,
            network: NetworkMode::Inherit,
            memory_per_attempt: 1,
        }),
        baseline: BaselineConfig::Auto,
        history: crate::config::HistoryConfig {
            runs: 10,
            sources: Vec::new(),
        },
        confirm: 0,
        gates: Vec::new(),
        flaky: Vec::new(),
        fail_on: Vec::new(),
        compare: CompareConfig::default(),
        report: ReportConfig {
            group_by: None,
            comment: crate::config::CommentMode::Never,
        },
    }
}

fn pair(experiment: &str, eval: &str, labels: &[(&str, &str)]) -> Pair {
    let mut pair = Pair {
        id: PairId::new(experiment, eval).unwrap(),
        labels: Labels::default(),
    };
    for (name, value) in labels {
        pair.labels.add(name, value);
    }
    pair
}

fn suite(experiments: usize, evals: usize) -> Vec<Pair> {
    (0..experiments)
        .flat_map(|experiment| (0..evals).map(move |eval| (experiment, eval)))
        .map(|(experiment, eval)| {
            let provider = if experiment % 2 == 0 {
                "anthropic"
            } else {
                "openai"
            };
            pair(
                &format!("agent-{experiment}"),
                &format!("build-{eval}"),
                &[("provider", provider)],
            )
        })
        .collect()
}

fn plan(config: &Config, pairs: &[Pair], select: &Select) -> Result<RunPlan, PlanError> {
    build(&Request {
        config,
        pairs,
        select,
        capacity: None,
        experience: &Experience::default(),
        is_pinned: false,
    })
}

fn bounded(config: &Config, pairs: usize, memory: usize) -> (usize, String, bool, usize) {
    let plan = build(&Request {
        config,
        pairs: &suite(1, pairs),
        select: &Select::default(),
        capacity: Some((memory, "15 GB of memory".to_owned())),
        experience: &Experience::default(),
        is_pinned: false,
    });
    let plan = plan.unwrap();
    let waves = waves(&plan);
    let concurrency = plan.concurrency;
    (concurrency.value, concurrency.reason, concurrency.bounded, waves)
}

fn ids(plan: &RunPlan) -> Vec<String> {
    plan.pairs.iter().map(|pair| pair.id.to_string()).collect()
}

fn globs(text: &str) -> Vec<String> {
    text.parse::<Globs>().unwrap().0
}

#[test]
fn everything_runs_in_one_wave_unless_something_bounds_it() {
    let mut config = config("x");
    let (value, reason, cut, waves) = bounded(&config, 237, 9999);
    assert_eq!(
        (value, reason.as_str(), cut, waves),
        (474, "474 = pairs x runs (237 x 2): one wave", false, 1)
    );
    let (value, reason, cut, waves) = bounded(&config, 237, 60);
    assert_eq!(
        (value, reason.as_str(), cut, waves),
        (
            60,
            "60 = pairs x runs (237 x 2 = 474) bounded by 15 GB of memory: 8 waves",
            true,
            8
        )
    );
    config.max_concurrency = Some(50);
    assert_eq!(
        bounded(&config, 237, 60).1,
        "50 = pairs x runs (237 x 2 = 474) bounded by max-concurrency 50: 10 waves"
    );
    config.max_concurrency = Some(9999);
    assert!(!bounded(&config, 237, 9999).2);
}

#[test]
fn the_sequential_strategy_counts_pairs() {
    let mut config = config("x");
    config.strategy = Strategy::Sequential;
    assert_eq!(
        bounded(&config, 237, 300),
        (237, "237 = pairs: one wave".to_owned(), false, 1)
    );
    assert_eq!(
        bounded(&config, 237, 100).1,
        "100 = pairs (237) bounded by 15 GB of memory: 3 waves"
    );
}

#[test]
fn a_fixed_concurrency_is_taken_as_asked_and_never_above_what_there_is() {
    let mut config = config("x");
    config.concurrency = WantedConcurrency::Fixed(50);
    assert_eq!(
        bounded(&config, 237, 60),
        (
            50,
            "50 = as asked for, of pairs x runs (237 x 2 = 474): 10 waves".to_owned(),
            false,
            10
        )
    );
    assert_eq!(
        bounded(&config, 237, 10).1,
        "10 = the 50 asked for, of pairs x runs (237 x 2 = 474), bounded by 15 GB of memory: 48 waves"
    );
    assert_eq!(
        bounded(&config, 3, 60).1,
        "6 = pairs x runs (3 x 2), fewer than the 50 asked for: one wave"
    );
    assert_eq!(bounded(&config, 3, 0).0, 1, "an engine can always take one");
}

#[test]
fn an_empty_suite_or_selection_is_a_plan_of_nothing() {
    let select = Select {
        experiments: globs("nobody"),
        ..Select::default()
    };
    let config = config("x");
    let empty = plan(&config, &[], &select).unwrap();
    assert_eq!(
        (empty.pairs.len(), waves(&empty), empty.concurrency.value),
        (0, 0, 1)
    );
    let select = Select {
        experiments: globs("agent-0"),
        labels: "provider=openai".parse::<LabelGlobs>().unwrap().0,
        ..Select::default()
    };
    let none = plan(&config, &suite(2, 2), &select).unwrap();
    assert_eq!((none.pairs.len(), none.selection.of), (0, 4));
}

#[test]
fn names_and_labels_select_pairs_in_their_order() {
    let select = Select {
        experiments: globs("agent-1, agent-{0,2}"),
        evals: globs("*-1"),
        labels: "provider=anthropic,provider=open*"
            .parse::<LabelGlobs>()
            .unwrap()
            .0,
        ..Select::default()
    };
    let plan = plan(&config("x"), &suite(4, 2), &select).unwrap();
    assert_eq!(
        ids(&plan),
        ["agent-0 × build-1", "agent-1 × build-1", "agent-2 × build-1"]
    );
    assert_eq!(plan.selection.kind, SelectionKind::Subset);
    assert_eq!((plan.selection.selected, plan.selection.of), (3, 8));
}

#[test]
fn a_glob_that_names_nothing_says_what_is_near() {
    let message = |select: Select| plan(&config("x"), &suite(2, 2), &select).unwrap_err().to_string();
    assert_eq!(
        message(Select {
            evals: globs("biuld-1"),
            ..Select::default()
        }),
        "cannot select the eval `biuld-1`: the suite has none\nthe nearest is `build-1`"
    );
    assert_eq!(
        message(Select {
            experiments: globs("zzz"),
            ..Select::default()
        }),
        "cannot select the experiment `zzz`: the suite has none\nthere is `agent-0`, `agent-1`"
    );
    let label = |label: &str| {
        message(Select {
            labels: label.parse::<LabelGlobs>().unwrap().0,
            ..Select::default()
        })
    };
    assert_eq!(
        label("provder=openai"),
        "cannot select the label `provder`: the suite has none\nthe nearest is `provider`"
    );
    assert_eq!(
        label("provider=opeani"),
        "cannot select the label `provider=opeani`: the suite has none\nthe nearest is `openai`"
    );
}

#[test]
fn flags_that_are_no_shard_or_label_are_refused() {
    for junk in ["0/3", "4/3", "1/0", "1", "a/b", "-1/3", "+1/3", "1/3/5", "", "/"] {
        assert!(junk.parse::<Shard>().is_err(), "{junk}");
    }
    assert!(" 2 / 3 ".parse::<Shard>().is_ok());
    for junk in ["provider", "=x", "provider=", "a=b,c"] {
        assert!(junk.parse::<LabelGlobs>().is_err(), "{junk}");
    }
    assert_eq!(globs(" a , ,b{c,d},e[,]"), ["a", "b{c,d}", "e[,]"]);
    assert!(globs("").is_empty());
}

#[test]
fn changed_files_select_the_pairs_that_depend_on_them() {
    let mut config = config("x");
    let pairs = [
        pair("a", "x[1]", &[]),
        pair("a", "y", &[]),
        pair("b", "x[1]", &[]),
        pair("b", "y", &[]),
    ];
    let changed = |config: &Config, files: &[&str]| {
        let select = Select {
            changed: Some(files.iter().map(Into::into).collect()),
            ..Select::default()
        };
        plan(config, &pairs, &select)
    };
    let unset = changed(&config, &["evals/y/PROMPT.md"]).unwrap_err();
    assert!(matches!(unset, PlanError::ChangedUnset));

    config.suite.changed = ChangedConfig {
        evals: vec![template("evals/{eval}/**")],
        experiments: vec![template("experiments/{experiment}.*")],
        all: vec!["packages/**".to_owned(), "lock.yaml".to_owned()],
    };
    let ids = |files: &[&str]| ids(&changed(&config, files).unwrap());
    assert_eq!(ids(&["evals/x[1]/deep/file"]), ["a × x[1]", "b × x[1]"]);
    assert_eq!(
        ids(&["evals/y"]),
        ["a × y", "b × y"],
        "a submodule is its directory"
    );
    assert_eq!(
        ids(&["experiments/b.ts", "evals/y/a"]),
        ["a × y", "b × x[1]", "b × y"]
    );
    assert_eq!(ids(&["packages/core/index.ts"]).len(), 4);
    assert_eq!(ids(&["lock.yaml"]).len(), 4);
    assert!(ids(&["README.md", "evals/x1/a", "sub/lock.yaml"]).is_empty());
    assert!(ids(&[]).is_empty());
}

#[test]
fn a_label_placeholder_needs_one_value_in_every_selected_pair() {
    let config = config("run {experiment} {tier}");
    let pairs = [
        pair("a", "x", &[("tier", "1")]),
        pair("a", "y", &[("teir", "1")]),
        pair("a", "z", &[("tier", "1"), ("tier", "2")]),
    ];
    let only = |eval: &str| {
        let select = Select {
            evals: globs(eval),
            ..Select::default()
        };
        plan(&config, &pairs, &select)
            .map(|plan| plan.pairs.len())
            .map_err(|error| error.to_string())
    };
    assert_eq!(only("x"), Ok(1));
    assert_eq!(
        only("y").unwrap_err(),
        "cannot fill `{tier}` in `attempt.command`: the pair `a × y` has no such label\nthe nearest is `teir`"
    );
    assert_eq!(
        only("z").unwrap_err(),
        "cannot fill `{tier}` in `attempt.command`: the pair `a × z` has several values for it (1, 2)\n\
         a placeholder takes a label with one value"
    );
}

#[test]
fn the_fingerprint_tells_configurations_apart_by_what_decides_results() {
    let hash = |change: fn(&mut Config)| {
        let mut config = config("run {eval}");
        change(&mut config);
        plan(&config, &[], &Select::default()).unwrap().config_hash
    };
    let same = hash(|_| {});
    assert_eq!(same.len(), 64);
    assert_eq!(same, hash(|config| config.max_concurrency = Some(3)));
    assert_eq!(same, hash(|config| config.strategy = Strategy::Sequential));
    assert_ne!(same, hash(|config| config.runs = 3));
    assert_ne!(same, hash(|config| config.policy = Policy::All));
    assert_ne!(
        same,
        hash(|config| config.attempt.command = CommandTemplate::Shell(template("run eval")))
    );
}

#[test]
fn the_document_is_json_with_null_for_what_is_unknown() {
    let config = config("x");
    let plan = plan(&config, &suite(1, 2), &Select::default()).unwrap();
    let json = serde_json::to_value(document(&plan, &config)).unwrap();
    assert_eq!(json["schema"], "evalwave.plan/1");
    assert_eq!(json["attempts"], 4);
    assert_eq!(json["concurrency"], 4);
    assert_eq!(json["waves"], 1);
    assert_eq!(json["selection"]["kind"], "all");
    assert!(json["longest_attempt_seconds"].is_null() && json["wall_seconds"].is_null());
    assert_eq!(json["pairs"][1]["eval"], "build-1");
    assert_eq!(json["pairs"][1]["runs"], 2);
    assert_eq!(json["pairs"][1]["labels"]["provider"][0], "anthropic");
}

proptest! {
    #[test]
    fn each_pair_and_attempt_is_planned_once(experiments in 0_usize..6, evals in 0_usize..6, runs in 1_u32..4) {
        let mut config = config("x");
        config.runs = runs;
        let pairs = suite(experiments, evals);
        let plan = plan(&config, &pairs, &Select::default()).unwrap();
        let planned: BTreeSet<&PairId> = plan.pairs.iter().map(|pair| &pair.id).collect();
        prop_assert_eq!(planned.len(), plan.pairs.len());
        prop_assert_eq!(planned, pairs.iter().map(|pair| &pair.id).collect());
        prop_assert_eq!(plan.attempts(), pairs.len() * runs as usize);
        prop_assert!(plan.concurrency.value * waves(&plan) >= plan.attempts());
    }

    #[test]
    fn shards_partition_the_plan(pairs in 0_usize..40, count in 1_usize..12) {
        let suite = suite(1, pairs);
        let config = config("x");
        let whole = ids(&plan(&config, &suite, &Select::default()).unwrap());
        let mut parts = Vec::new();
        let mut sizes = BTreeSet::new();
        for index in 1..=count {
            let shard = Some(format!("{index}/{count}").parse().unwrap());
            let part = plan(&config, &suite, &Select { shard, ..Select::default() }).unwrap();
            prop_assert_eq!(part.selection.kind == SelectionKind::Shard, count > 1);
            sizes.insert(part.pairs.len());
            parts.extend(ids(&part));
        }
        prop_assert!(sizes.last().unwrap() - sizes.first().unwrap() <= 1);
        let mut sorted = whole.clone();
        sorted.sort();
        parts.sort();
        prop_assert_eq!(parts, sorted);
    }

    #[test]
    fn a_selection_is_a_part_of_the_suite_in_its_order(
        glob in "(agent|build|\\*|\\?|-|[0-3]|\\[|\\{|,|\\}){0,4}",
        changed in proptest::collection::vec("(evals|build-[0-9]|/|a){1,4}", 0..3),
    ) {
        let suite = suite(4, 4);
        let mut config = config("x");
        config.suite.changed.evals = vec![template("evals/{eval}/**")];
        for select in [
            Select { experiments: globs(&glob), ..Select::default() },
            Select { evals: globs(&glob), ..Select::default() },
            Select { changed: Some(changed.iter().map(Into::into).collect()), ..Select::default() },
        ] {
            if let Ok(plan) = plan(&config, &suite, &select) {
                let selected = ids(&plan);
                let mut rest = suite.iter().map(|pair| pair.id.to_string());
                prop_assert!(selected.iter().all(|id| rest.any(|other| other == *id)));
                prop_assert_eq!(plan.selection.selected, selected.len());
            }
        }
    }

    #[test]
    fn no_flag_text_panics(text in "\\PC{0,12}") {
        let _ = text.parse::<Shard>();
        let _ = text.parse::<LabelGlobs>();
        let _ = crate::glob::id_glob(&text);
        let _ = crate::glob::path_glob(&text);
        prop_assert!(globs(&text).len() <= text.len());
    }
}
