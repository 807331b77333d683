pub(super) mod fixtures;
mod formats;
mod limits;
mod page;
mod table;

use proptest::prelude::*;

use super::{comparison_markdown, comparison_text, json, markdown, running, text};
use crate::model::comparison::{
    ComparisonVerdict, Concentration, Flip, Group, History, NotComparable, PairRef,
};
use crate::model::forecast::{Accuracy, Bound, BoundKind, Taken};
use crate::model::summary::{Conclusion, GateResult, Quarantined};
use crate::model::{
    AttemptRecord, CancelReason, ErrorClass, EvalId, ExperimentId, Outcome, Outlook, PairSummary, Range,
    Scheduling, Selection, SelectionKind, Strategy, Summary, Usage, Verdict,
};
use fixtures::{attempt, compared, errored, flip, large, pair, run_of, small};

const ROOMY: usize = 60_000;

#[test]
fn how_a_run_was_scheduled_is_said_with_what_other_strategies_would_have_taken() {
    let range = |likely: f64| Range {
        low: likely - 100.0,
        likely,
        high: likely + 100.0,
    };
    let taken = |strategy, concurrency, wall_seconds, sandbox_seconds| Taken {
        strategy,
        concurrency,
        simulated: strategy != Strategy::Parallel,
        wall_seconds,
        sandbox_seconds,
        cost_usd: None,
    };
    let scheduling = Scheduling {
        bounded_by: Bound {
            kind: BoundKind::SlowestAttempt,
            pair: Some(PairRef {
                experiment: ExperimentId::try_from("<a>").unwrap(),
                eval: EvalId::try_from("b").unwrap(),
            }),
            seconds: Some(828.0),
            why: "the slowest attempt, one of <a> × b: 828.0 s of 868.0 s".to_owned(),
        },
        strategies: vec![
            taken(Strategy::Parallel, 474, 868.0, 139_035.0),
            taken(Strategy::Adaptive, 474, 868.0, 96_604.0),
        ],
        accuracy: Some(Accuracy {
            known_pairs: 230,
            expected: Outlook {
                strategy: Strategy::Parallel,
                concurrency: 474,
                wall_seconds: range(850.0),
                sandbox_seconds: range(140_000.0),
                cost_usd: None,
            },
            median_error: Some(0.172),
        }),
    };
    let summary = Summary {
        scheduling: Some(scheduling),
        ..small()
    };
    let body = markdown(&summary, ROOMY);
    let (_, section) = body.split_once("<details><summary>Bounded by").unwrap();
    let (section, _) = section.split_once("</details>").unwrap();
    insta::assert_snapshot!(section, @"
     the slowest attempt, one of <code>&#60;a&#62;&#32;×&#32;b</code>: 13m48s of 17m12s</summary>

    | strategy | at once | wall-clock | all sandboxes |  |
    | --- | --- | --- | --- | --- |
    | parallel | 474 | 14m28s | 38h37m | this run |
    | adaptive | 474 | 14m28s | 26h50m | simulated |
    | parallel | 474 | 14m10s (12m30s to 15m50s) | 38h53m (38h51m to 38h55m) | predicted, 230 pairs known, half of the attempts within 17 % |
    ");
    assert!(text(&summary, false).contains("\nBounded by the slowest attempt, one of <a> × b"));
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap()
}

#[test]
fn a_large_run_says_the_known_numbers() {
    let body = markdown(&large(), ROOMY);
    let head: Vec<&str> = body
        .lines()
        .take_while(|line| !line.starts_with("<details>"))
        .collect();
    insta::assert_snapshot!(head.join("\n"), @r"
    ### Evals: 207/237 passed (87.3 %), −1.7 pp against <code>main</code> · within noise
    10 PASS→FAIL (8 known flaky) · 6 FAIL→PASS (4 known flaky) · 221 unchanged · 0 errored · exact paired test p = 0.45; a drop of 6.7 pp or more would have shown

    within noise: 10 PASS→FAIL and 6 FAIL→PASS are no more than chance explains (p = 0.4545); a drop of 6.7 pp would have been seen with 80 % power

    this run <code>abc1234</code> · baseline <code>def5678</code> (<code>main</code>, 2 h old) · [baseline run](<https://example.com/runs/1>)

    |  | baseline | this run | change |
    | --- | --- | --- | --- |
    | pass rate (any of 2) | 89.0 % (211/237) | 87.3 % (207/237) | −1.7 pp |
    | single attempt | n/a | 82.7 % (392/474) |  |
    | errored / timed out | 1 / 3 | 0 / 0 |  |
    | wall-clock | 28m10s | 17m12s | −39 % |
    | attempts with a result | 280 (1.18 a pair) | 474 (2.00 a pair) | 1.69 x |
    ");
    let titles: Vec<&str> = body
        .lines()
        .filter(|line| line.starts_with("<details>"))
        .collect();
    insta::assert_snapshot!(titles.join("\n"), @r"
    <details><summary>10 PASS→FAIL (8 known flaky)</summary>
    <details><summary>6 FAIL→PASS (4 known flaky)</summary>
    <details><summary>By <code>provider</code>: <code>scattered&#32;over&#32;3&#32;groups</code></summary>
    <details><summary>Attempts: 185 x 2/2 · 22 x 1/2 · 30 x 0/2</summary>
    ");
    insta::assert_snapshot!(body.lines().last().unwrap(), @"<sub>parallel, 2 attempts, any passes, concurrency <code>474&#32;&#61;&#32;pairs&#32;x&#32;runs&#32;&#40;237&#32;x&#32;2&#41;&#58;&#32;one&#32;wave</code> · a flip is a screen, not proof · evalwave <code>0&#46;1&#46;0</code></sub>");
    assert!(body.len() < 20_000, "{}", body.len());
}

#[test]
fn a_terminal_shows_flips_errors_gates_and_notices() {
    let mut summary = small();
    summary.pairs.push(pair(
        "slow",
        "sort",
        vec![errored(1, ErrorClass::NoResult, "exit 1,\nno result at r.json")],
    ));
    summary = run_of(summary.pairs);
    let mut comparison = compared(3, 3, 2);
    comparison.flips.pass_to_fail = vec![flip("fast", "sort", "2/2", "0/2", true)];
    summary.comparison = Some(comparison);
    summary.gates = vec![
        GateResult {
            gate: "regression".to_owned(),
            failed: true,
            why: "1 pair went from pass to fail".to_owned(),
        },
        GateResult {
            gate: "error".to_owned(),
            failed: false,
            why: "nothing".to_owned(),
        },
    ];
    summary.notices = vec!["concurrency 2 = pairs x runs (8) bounded by 1 GB of memory: 4 waves".to_owned()];
    let shown = text(&summary, false);
    let below_the_table: Vec<&str> = shown.lines().skip(12).collect();
    insta::assert_snapshot!(below_the_table.join("\n"), @"
    1 PASS→FAIL (1 known flaky)
      experiment  eval  before  now                first failing check
      fast        sort  2/2     0/2 (known flaky)  the page loads

    Added 0 · removed 0 · not comparable 0 · errors 1
      what   experiment  eval  why
      error  slow        sort  attempt 1: no_result in command: exit 1, no result at r.json

    1 of 2 gates failed
      regression  1 pair went from pass to fail

    Notices
      concurrency 2 = pairs x runs (8) bounded by 1 GB of memory: 4 waves

    parallel, 2 attempts, any passes, concurrency 8 = pairs x runs (4 x 2): one wave · a flip is a screen, not proof · evalwave 0.1.0
    ");
}

#[test]
fn colour_only_adds_to_the_words() {
    let colored = text(&large(), true);
    assert!(colored.contains("\x1b[1;31m10 PASS→FAIL"));
    assert_eq!(super::plain(&colored), super::plain(&text(&large(), false)));
}

#[test]
fn without_a_baseline_the_headline_is_neutral_and_says_so() {
    let mut summary = small();
    summary.notices = vec!["no baseline: nothing was named".to_owned()];
    let body = markdown(&summary, ROOMY);
    let (head, _) = body.split_once("<details>").unwrap();
    insta::assert_snapshot!(head, @r"
    ### Evals: 2/3 passed (66.7 %) · no baseline
    2 passed · 1 failed · 0 errored

    this run <code>abc1234</code>

    |  | this run |
    | --- | --- |
    | pass rate (any of 2) | 66.7 % (2/3) |
    | single attempt | 50.0 % (3/6) |
    | errored / timed out | 0 / 1 |
    | wall-clock | 17m12s |
    | attempts with a result | 6 (2.00 a pair) |

    - <code>no&#32;baseline&#58;&#32;nothing&#32;was&#32;named</code>
    ");
}

#[test]
fn without_a_result_there_is_no_rate() {
    let broken = |eval: &str, class| {
        pair(
            "a",
            eval,
            vec![errored(1, class, "m"), errored(2, ErrorClass::NoResult, "m")],
        )
    };
    let mut summary = run_of(vec![
        broken("x", ErrorClass::Provision),
        broken("y", ErrorClass::Provision),
        broken("z", ErrorClass::Setup),
        broken("w", ErrorClass::Infra),
    ]);
    summary.comparison = Some(compared(0, 0, 0));
    summary.run.conclusion = Conclusion::Empty;
    let body = markdown(&summary, ROOMY);
    assert_eq!(
        first_line(&body),
        "### Evals: no eval gave a result: no_result (4 attempts), provision (2 attempts), infra (1 attempt)"
    );
    assert!(!body.contains('%') && !body.contains("NaN"), "{body}");
    assert!(!text(&summary, false).contains('%'));
    let nothing = run_of(Vec::new());
    assert_eq!(first_line(&text(&nothing, false)), "no pair to run");
}

#[test]
fn parts_of_a_suite_and_of_a_run_say_so() {
    let mut selected = small();
    selected.run.selection = Selection {
        kind: SelectionKind::Subset,
        selected: 3,
        of: 237,
    };
    let mut stopped = small().pairs;
    for eval in ["a", "b"] {
        let never = vec![AttemptRecord::not_started(1, CancelReason::Run)];
        stopped.push(PairSummary {
            verdict: Verdict::NotRun,
            ..pair("late", eval, never)
        });
    }
    let stopped = run_of(stopped);
    let lines = [&selected, &stopped].map(|summary| first_line(&text(summary, false)).to_owned());
    insta::assert_snapshot!(lines.join("\n"), @r"
    2/3 passed (66.7 %) · no baseline · 3 of 237 pairs run
    partial: 3 of 5 pairs · 2/3 passed (66.7 %) · no baseline
    ");
}

#[test]
fn other_pairs_than_the_runs_own_are_named_as_what_rates_are_over() {
    let mut summary = small();
    let mut comparison = compared(2, 2, 1);
    comparison.added = vec![PairRef {
        experiment: summary.pairs[2].experiment.clone(),
        eval: summary.pairs[2].eval.clone(),
    }];
    comparison.not_comparable = vec![NotComparable {
        experiment: summary.pairs[1].experiment.clone(),
        eval: summary.pairs[1].eval.clone(),
        reason: "1 of 2 graded".to_owned(),
    }];
    summary.comparison = Some(comparison);
    let shown = text(&summary, false);
    let lines: Vec<&str> = shown.lines().filter(|line| !line.is_empty()).take(7).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    2/3 passed (66.7 %), −50.0 pp over the 2 pairs compared against baseline.json · within noise
    0 PASS→FAIL · 0 FAIL→PASS · 2 unchanged · 1 not comparable · 0 errored · exact paired test p = 0.45; a drop of 6.7 pp or more would have shown
    within noise: 0 PASS→FAIL and 0 FAIL→PASS are no more than chance explains (p = 0.4545); a drop of 6.7 pp would have been seen with 80 % power
    this run abc1234
                                            baseline       this run         change
    pass rate (any of 2), 2 pairs compared  100.0 % (2/2)  50.0 % (1/2)     −50.0 pp
    pass rate (any of 2), this run's pairs  n/a            66.7 % (2/3)
    ");
    assert!(
        shown.contains("Added 1 · removed 0 · not comparable 1 · errors 0"),
        "{shown}"
    );
}

#[test]
fn cost_says_what_it_covers_and_unknown_is_not_nothing() {
    let mut summary = small();
    assert!(!markdown(&summary, ROOMY).contains("cost"));
    summary.pairs[0].attempts[0].usage = Some(Usage {
        input_tokens: Some(12_000),
        output_tokens: Some(345),
        cost_usd: Some(0.256),
    });
    summary.totals.cost_usd = Some(0.256);
    summary.totals.tokens = Some(12_345);
    let body = markdown(&summary, ROOMY);
    assert!(
        body.contains("| cost, tokens | $0.26 (of 1 attempt), 12.3 k tokens (of 1 attempt) |"),
        "{body}"
    );
}

#[test]
fn a_comparison_stands_alone() {
    let mut comparison = compared(220, 194, 190);
    comparison.baseline.source = "C.json".to_owned();
    comparison.flips.pass_to_fail = vec![flip("a", "x", "pass", "fail", false)];
    comparison.flips.fail_to_pass = vec![flip("b", "y", "fail", "pass", false)];
    insta::assert_snapshot!(comparison_text(&comparison), @r"
    190/220 passed (86.4 %), −1.8 pp against C.json · within noise
    1 PASS→FAIL · 1 FAIL→PASS · 218 unchanged · exact paired test p = 0.45; a drop of 6.7 pp or more would have shown
    within noise: 1 PASS→FAIL and 1 FAIL→PASS are no more than chance explains (p = 0.4545); a drop of 6.7 pp would have been seen with 80 % power

               baseline          this run          change
    pass rate  88.2 % (194/220)  86.4 % (190/220)  −1.8 pp

    1 PASS→FAIL
      experiment  eval  before  now
      a           x     pass    fail

    1 FAIL→PASS
      experiment  eval  before  now
      b           y     fail    pass

    a flip is a screen, not proof
    ");
    let body = comparison_markdown(&comparison, ROOMY);
    assert!(body.starts_with(
        "### Evals: 190/220 passed (86.4 %), −1.8 pp against <code>C&#46;json</code> · within noise\n"
    ));
}

#[test]
fn too_small_a_comparison_says_so_once() {
    let mut comparison = compared(12, 9, 9);
    comparison.verdict = ComparisonVerdict::Inconclusive;
    comparison.test.detectable = Some(0.449);
    let shown = comparison_text(&comparison);
    assert!(first_line(&shown).ends_with("· too small to tell"));
    assert!(
        shown.contains("\ntoo small to tell: it would not have seen a drop under 44.9 pp (p = 0.4545)\n")
    );
    assert_eq!(shown.matches("44.9").count(), 1);
}

#[test]
fn attempts_that_were_tried_again_are_counted() {
    let mut summary = small();
    assert!(!text(&summary, false).contains("tried again"));
    summary.totals.attempts.retried = 1;
    assert!(text(&summary, false).contains("1 attempt tried again"));
}

#[test]
fn nothing_compared_gives_no_rate() {
    let shown = comparison_text(&compared(0, 0, 0));
    assert_eq!(
        first_line(&shown),
        "nothing compared against baseline.json · inconclusive"
    );
    assert!(shown.contains("\ninconclusive: no pair has a firm verdict on both sides\n"));
    assert!(!shown.contains('%'), "{shown}");
}

#[test]
fn the_sentence_names_groups_as_names_from_outside() {
    let mut comparison = compared(220, 194, 150);
    comparison.verdict = ComparisonVerdict::Regressed;
    comparison.test.p_value = Some(0.00001);
    comparison.groups = vec![Group {
        by: "provider".to_owned(),
        value: "a@b".to_owned(),
        compared: 220,
        passed_baseline: 194,
        passed_current: 150,
        pass_to_fail: 44,
        fail_to_pass: 0,
        delta: Some(-0.2),
        p_adjusted: Some(0.002),
    }];
    let shown = comparison_text(&comparison);
    let sentence = "regressed: the pass rate fell by more than chance explains, in all 220 pairs together (p < 0.0001), provider a@b (adjusted p = 0.002)";
    assert!(shown.contains(sentence), "{shown}");
    let body = comparison_markdown(&comparison, ROOMY);
    assert!(
        body.contains(
            "together (p < 0.0001), <code>provider</code> <code>a&#64;b</code> (adjusted p = 0.002)\n"
        ),
        "{body}"
    );
}

#[test]
fn what_earlier_runs_predict_stands_beside_what_there_is() {
    let mut comparison = compared(220, 194, 190);
    comparison.history = Some(History {
        runs: 3,
        pairs: 200,
        flaky: 12,
        expected_pass_to_fail: Some(8.67),
        expected_fail_to_pass: Some(6.33),
        each: Vec::new(),
    });
    let sentence = "3 earlier runs: noise alone predicts 8.7 PASS→FAIL and 6.3 FAIL→PASS in the 200 pairs that they have, and there are 0 and 0; 12 pairs went both ways\n";
    assert!(comparison_text(&comparison).contains(sentence));
    assert!(comparison_markdown(&comparison, ROOMY).contains(sentence));
    comparison.history = Some(History {
        runs: 1,
        pairs: 0,
        flaky: 0,
        expected_pass_to_fail: None,
        expected_fail_to_pass: None,
        each: Vec::new(),
    });
    assert!(
        comparison_text(&comparison).contains("1 earlier run: no verdict on any pair that is compared\n")
    );
}

#[test]
fn pairs_in_quarantine_are_shown_with_their_reason() {
    let mut summary = small();
    let quarantined = Quarantined {
        experiment: summary.pairs[0].experiment.clone(),
        eval: summary.pairs[0].eval.clone(),
        until: Some(jiff::civil::date(2027, 1, 31)),
        why: Some("the service is @slow".to_owned()),
    };
    summary.quarantined = vec![quarantined];
    assert!(text(&summary, false).contains("1 pair in quarantine: shown, and no gate looks at it\n"));
    let body = markdown(&summary, ROOMY);
    assert!(
        body.contains("| 2027-01-31 | <code>the&#32;service&#32;is&#32;&#64;slow</code> |"),
        "{body}"
    );
}

#[test]
fn flips_that_did_not_reproduce_are_in_the_headline() {
    let mut comparison = compared(10, 9, 7);
    comparison.flips.pass_to_fail = vec![
        Flip {
            confirmed: Some(true),
            ..flip("a", "x", "2/2", "0/2", false)
        },
        Flip {
            confirmed: Some(false),
            ..flip("a", "y", "2/2", "0/2", false)
        },
    ];
    let shown = comparison_text(&comparison);
    assert!(
        first_line(&shown).ends_with("1 of 2 PASS→FAIL did not reproduce"),
        "{shown}"
    );
    assert!(shown.contains("0/2 (confirmed)") && shown.contains("0/2 (did not reproduce)"));
}

#[test]
fn json_is_indented_and_ends_its_last_line() {
    assert_eq!(
        json(&compared(1, 1, 1).pass_rate).unwrap(),
        "{\n  \"baseline\": 1.0,\n  \"current\": 1.0,\n  \"delta\": 0.0\n}\n"
    );
}

/// A summary in which every text from outside is `hostile`.
#[test]
fn a_run_that_goes_on_shows_how_far_it_is_and_no_rate() {
    // What a sibling has made needless has ended, as what was stopped for the budget; what has no record has not.
    let cancelled = AttemptRecord::not_started;
    let summary = run_of(vec![
        pair(
            "fast",
            "add",
            vec![
                attempt(1, Outcome::Passed, 4.0),
                cancelled(2, CancelReason::Decided),
            ],
        ),
        pair(
            "fast",
            "sort",
            vec![attempt(1, Outcome::Failed, 4.0), cancelled(2, CancelReason::Run)],
        ),
        pair(
            "slow",
            "add",
            vec![
                cancelled(1, CancelReason::Budget),
                cancelled(2, CancelReason::Budget),
            ],
        ),
    ]);
    let body = running(&summary, ROOMY);
    assert!(
        body.starts_with("### Evals: running, 5 of 6 attempts have ended\n"),
        "{body}"
    );
    assert!(!body.contains('%'), "{body}");
}

fn hostile_summary(hostile: &str) -> Summary {
    let mut summary = small();
    let id = format!("x{}x", hostile.replace(char::is_control, ""));
    let mut bad = pair(
        &id,
        &id,
        vec![
            attempt(1, Outcome::Failed, 1.0),
            errored(2, ErrorClass::NoResult, hostile),
        ],
    );
    bad.attempts[0].checks_failed = vec![hostile.to_owned()];
    summary.pairs.push(bad);
    summary = run_of(summary.pairs);
    summary.tool.version = hostile.to_owned();
    summary.run.commit = Some(hostile.to_owned());
    summary.run.concurrency_reason = format!("x{hostile}");
    summary.notices = vec![hostile.to_owned()];
    summary.totals.distribution.insert(hostile.to_owned(), 1);
    summary.gates = vec![GateResult {
        gate: hostile.to_owned(),
        failed: true,
        why: hostile.to_owned(),
    }];
    let mut comparison = compared(4, 4, 3);
    comparison.baseline.source = hostile.to_owned();
    comparison.baseline.reference = Some(hostile.to_owned());
    comparison.baseline.commit = Some(hostile.to_owned());
    comparison.baseline.run_url = Some(format!("https://{hostile}"));
    comparison.flips.pass_to_fail = vec![flip(&id, &id, hostile, hostile, true)];
    comparison.warnings = vec![hostile.to_owned()];
    comparison.groups = vec![Group {
        by: hostile.to_owned(),
        value: hostile.to_owned(),
        compared: 1,
        passed_baseline: 1,
        passed_current: 0,
        pass_to_fail: 1,
        fail_to_pass: 0,
        delta: None,
        p_adjusted: None,
    }];
    comparison.concentration = Some(Concentration {
        by: hostile.to_owned(),
        p_value: None,
        named: Some(hostile.to_owned()),
        reading: hostile.to_owned(),
    });
    summary.comparison = Some(comparison);
    summary
}

/// The Markdown with everything that is encoded taken out: what is left is our own.
fn skeleton(body: &str) -> String {
    let encoded = regex::Regex::new(r"<code>[^<]*</code>|\(<https://[^>]*>\)").unwrap();
    encoded.replace_all(body, "").into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_from_outside_changes_the_markdown_around_it(
        hostile in r"[|<>`@#!*_~&;:/.()\[\]{}\\a-z0-9 \n\r\t\x1b\u{202e}\u{200b}é-]{0,40}",
    ) {
        let expected = skeleton(&markdown(&hostile_summary("harmless"), ROOMY)).replace("[baseline run]", "baseline run ");
        let body = skeleton(&markdown(&hostile_summary(&hostile), ROOMY)).replace("[baseline run]", "baseline run ");
        prop_assert_eq!(body, expected);
    }

    #[test]
    fn no_text_from_outside_commands_the_terminal(hostile in any::<String>()) {
        let shown = text(&hostile_summary(&hostile), false);
        let is_ours = |character: char| character == '\n' || !character.is_control();
        prop_assert!(shown.chars().all(is_ours), "{}", shown);
    }
}
