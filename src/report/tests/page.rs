//! The page says what the other renderings say, and whatever comes from outside stays text in it.

use proptest::prelude::*;

use super::fixtures::{attempt, compared, errored, flip, large, pair, run_of, small};
use super::hostile_summary;
use crate::model::attempt::FailedTry;
use crate::model::comparison::{EarlierRun, History};
use crate::model::summary::{Before, GateResult, Quarantined};
use crate::model::{ErrorClass, Outcome, Summary, Usage, Verdict};
use crate::report::{html, text};

/// What stands in an element's place to read, its entities read.
fn shown(page: &str, from: &str, to: &str) -> String {
    let (_, rest) = page.split_once(from).unwrap();
    let (inside, _) = rest.split_once(to).unwrap();
    let tags = regex::Regex::new("<[^>]*>").unwrap();
    let text = tags.replace_all(inside, "").replace('\u{a0}', " ");
    text.replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#38;", "&")
}

fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once(r#"id="data">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_run_that_took_no_time_is_drawn_all_the_same() {
    let mut summary = small();
    summary.run.wall_seconds = 0.0;
    for pair in &mut summary.pairs {
        for attempt in &mut pair.attempts {
            (attempt.seconds, attempt.started_offset) = (0.0, Some(0.0));
        }
    }
    let page = html(&summary).unwrap();
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
}

#[test]
fn the_page_has_the_headline_and_the_sentences_of_the_terminal() {
    let mut against = small();
    against.comparison = Some(compared(3, 2, 2));
    let lost = vec![errored(1, ErrorClass::NoResult, "nothing was written")];
    let nothing = run_of(vec![pair("agent", "task", lost)]);
    let mut cut = large();
    cut.totals.not_run = 7;
    for summary in [small(), against, nothing, cut, run_of(Vec::new())] {
        let page = html(&summary).unwrap();
        let terminal = text(&summary, false);
        let mut lines = terminal.lines();
        assert_eq!(shown(&page, "<h1>", "</h1>"), lines.next().unwrap());
        let counts = shown(&page, r#"<p class="counts">"#, "</p>");
        assert!(lines.any(|line| line == counts), "{counts}");
        for sentence in page.split(r#"<p class="sentence">"#).skip(1) {
            let sentence = shown(&format!(">{sentence}"), ">", "</p>");
            assert!(terminal.contains(&sentence), "{sentence}");
        }
    }
}

#[test]
fn failed_gates_quarantine_and_notices_stand_before_the_pairs() {
    let mut summary = small();
    summary.gates = vec![
        GateResult {
            gate: "below:80%".to_owned(),
            failed: true,
            why: "66.7 % passed".to_owned(),
        },
        GateResult {
            gate: "error".to_owned(),
            failed: false,
            why: "none".to_owned(),
        },
    ];
    summary.quarantined = vec![Quarantined {
        experiment: summary.pairs[0].experiment.clone(),
        eval: summary.pairs[0].eval.clone(),
        until: Some("2027-01-31".parse().unwrap()),
        why: Some("the provider's cache".to_owned()),
    }];
    summary.notices = vec!["concurrency 4: the engine's limit".to_owned()];
    let page = html(&summary).unwrap();
    let first = shown(&page, r#"<section class="first""#, "</section>");
    for part in [
        "1 of 2 gates failed",
        "below:80%: 66.7 % passed",
        "1 pair in quarantine",
        "2027-01-31",
        "concurrency 4",
    ] {
        assert!(first.contains(part), "{part}: {first}");
    }
}

#[test]
fn a_pair_carries_what_the_grid_and_its_row_show() {
    let mut summary = small();
    summary.pairs[1].before = Some(Before {
        verdict: Verdict::Pass,
        result: "2/2".to_owned(),
        seconds: Some(61.5),
    });
    summary.pairs[1].attempts[0].check_notes = vec!["404".to_owned()];
    summary.pairs[1].attempts[0].output = Some("one\ntwo".to_owned());
    let id = summary.pairs[1].id();
    let mut comparison = compared(3, 2, 1);
    comparison.flips.pass_to_fail = vec![flip(id.experiment.as_str(), id.eval.as_str(), "2/2", "0/2", true)];
    summary.comparison = Some(comparison);
    let alone = data(&html(&small()).unwrap());
    assert_eq!(
        alone["compared"], false,
        "no pair is missing in a baseline that is none"
    );
    let data = data(&html(&summary).unwrap());
    assert_eq!(data["compared"], true);
    let pair = &data["pairs"][1];
    assert_eq!((&pair["flip"], &pair["flaky"]), (&"down".into(), &true.into()));
    assert_eq!(pair["before_seconds"], 61.5);
    let attempt = &pair["attempts"][0];
    let text = |number: &serde_json::Value| data["texts"][number.as_u64().unwrap() as usize].clone();
    assert_eq!(text(&attempt["failed"][0][0]), "the page loads");
    assert_eq!(text(&attempt["failed"][0][1]), "404");
    assert_eq!(text(&attempt["output"]), "one\ntwo");
}

fn failed_try(number: u32, class: ErrorClass, usage: Option<Usage>) -> FailedTry {
    FailedTry {
        number,
        error: errored(1, class, "not the agent's").error.unwrap(),
        seconds: 3.0,
        usage,
    }
}

#[test]
fn an_attempt_says_what_all_of_its_tries_used_however_little_and_its_score_without_noise() {
    let used = |tokens, cost_usd| {
        Some(Usage {
            input_tokens: Some(tokens),
            output_tokens: Some(1),
            cost_usd: Some(cost_usd),
        })
    };
    let mut little = attempt(1, Outcome::Passed, 4.0);
    little.usage = used(10, 0.0031);
    little.score = Some(1.0 / 3.0);
    let mut again = attempt(2, Outcome::Passed, 4.0);
    again.usage = used(10, 0.25);
    again.earlier = vec![
        failed_try(1, ErrorClass::Throttled, used(100, 0.5)),
        failed_try(2, ErrorClass::Throttled, None),
    ];
    let summary = run_of(vec![pair("fast", "add", vec![little, again])]);
    let attempts = &data(&html(&summary).unwrap())["pairs"][0]["attempts"];
    assert_eq!(
        (&attempts[0]["cost"], &attempts[0]["tokens"]),
        (&"$0.0031".into(), &11.into())
    );
    assert_eq!(attempts[0]["score"], 0.3333);
    assert_eq!(
        (&attempts[1]["cost"], &attempts[1]["tokens"]),
        (&"$0.75".into(), &112.into())
    );
}

#[test]
fn an_attempt_that_was_throttled_and_then_passed_was_throttled() {
    let throttled = |summary: &Summary| shown(&html(summary).unwrap(), "<dt>throttled</dt>", "</div>");
    let first_try = |class| vec![failed_try(1, class, None)];
    let mut passed = attempt(1, Outcome::Passed, 4.0);
    passed.earlier = first_try(ErrorClass::Throttled);
    let mut lost = attempt(2, Outcome::Passed, 4.0);
    lost.earlier = first_try(ErrorClass::SandboxLost);
    let mut pairs = vec![pair("fast", "add", vec![passed, lost])];
    assert_eq!(throttled(&run_of(pairs.clone())), "1 attempt");
    let mut ended = errored(1, ErrorClass::Throttled, "429");
    ended.earlier = first_try(ErrorClass::Throttled);
    pairs.push(pair("fast", "sort", vec![ended]));
    assert_eq!(throttled(&run_of(pairs)), "2 attempts, 1 of them to the end");
    assert_eq!(throttled(&small()), "0 attempts");
}

#[test]
fn history_is_drawn_where_it_is_known() {
    let mut summary = small();
    let mut comparison = compared(3, 2, 2);
    assert!(!html(&summary).unwrap().contains("history-title"));
    let earlier = |source: &str, day: &str, passed| EarlierRun {
        source: source.to_owned(),
        commit: None,
        started_at: Some(format!("2026-01-{day}T00:00:00Z").parse().unwrap()),
        pairs: 3,
        passed,
        pass_to_fail: 1,
        fail_to_pass: 0,
    };
    comparison.history = Some(History {
        runs: 2,
        pairs: 3,
        flaky: 1,
        expected_pass_to_fail: Some(0.5),
        expected_fail_to_pass: Some(0.0),
        each: vec![earlier("second", "09", 1), earlier("first", "08", 3)],
    });
    summary.comparison = Some(comparison);
    let page = html(&summary).unwrap();
    let table = shown(&page, r#"aria-label="Earlier runs""#, "</table>");
    let order: Vec<usize> = ["first", "second", "baseline", "this run"]
        .iter()
        .map(|name| table.find(name).unwrap())
        .collect();
    assert!(order.is_sorted(), "{table}");
}

#[test]
fn five_thousand_pairs_that_all_failed_at_length_stay_small() {
    let pairs = (0..5000).map(|number| {
        let mut attempts = vec![
            attempt(1, Outcome::Failed, 60.0),
            attempt(2, Outcome::Failed, 61.0),
        ];
        for attempt in &mut attempts {
            attempt.started_offset = Some(1.5);
            attempt.checks_failed = (0..60)
                .map(|check| format!("check {check} of {number} <{}>", "x".repeat(80)))
                .collect();
            attempt.check_notes = vec![format!("{number}{}", "<".repeat(200))];
            attempt.output = Some(format!("{number}{}\n{}", attempt.index, "&".repeat(900)));
        }
        pair(
            &format!("experiment-{}", number % 50),
            &format!("eval-{}", number / 50),
            attempts,
        )
    });
    let page = html(&run_of(pairs.collect())).unwrap();
    assert!(page.len() < 8_000_000, "{}", page.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_text_from_outside_leaves_its_place(hostile in any::<String>(), markup in "[<>/a-z\"'&= !-]{0,24}") {
        let hostile = format!("</script>{markup}<!--{hostile}");
        let plain = page_skeleton(&hostile_summary("x"));
        prop_assert_eq!(plain, page_skeleton(&hostile_summary(&hostile)));
    }
}

/// The tags of a page, in their order, without what addresses and labels say.
fn page_skeleton(summary: &Summary) -> Vec<String> {
    let page = html(summary).unwrap();
    data(&page);
    let (before, rest) = page.split_once(r#"id="data">"#).unwrap();
    let (_, after) = rest.split_once("</script>").unwrap();
    let tag = regex::Regex::new(r#"<(/?[a-zA-Z!][^\s>]*)"#).unwrap();
    tag.captures_iter(&format!("{before}{after}"))
        .map(|found| found[1].to_owned())
        .collect()
}
