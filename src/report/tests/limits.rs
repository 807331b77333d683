//! What fits into a comment, and what goes first where it does not.

use super::ROOMY;
use super::fixtures::{attempt, compared, errored, flip, large, pair, run_of};
use crate::model::{ErrorClass, Outcome, Summary};
use crate::report::{comparison_markdown, markdown};

#[test]
fn at_most_25_flips_are_shown_those_not_known_to_be_flaky_first() {
    let mut comparison = compared(100, 90, 60);
    comparison.flips.pass_to_fail = (0..30)
        .map(|number| flip("a", &format!("e{number:02}"), "2/2", "0/2", number < 10))
        .collect();
    let body = comparison_markdown(&comparison, ROOMY);
    assert!(body.contains("… and 5 more"));
    assert!(body.find("e10").unwrap() < body.find("e00").unwrap());
    assert!(!body.contains("e09"));
}

#[test]
fn sections_lose_rows_then_go_whole_and_headline_and_table_never_do() {
    let whole = markdown(&large(), ROOMY);
    for limit in (0..whole.len()).step_by(91) {
        let body = markdown(&large(), limit);
        assert!(body.starts_with("### Evals: 207/237 passed (87.3 %)"));
        assert!(body.contains("| wall-clock | 28m10s | 17m12s | −39 % |"));
        assert_eq!(
            body.matches("<details>").count(),
            body.matches("</details>").count()
        );
        let sections = body.matches("<details>").count();
        assert!(body.len() <= limit || sections == 0);
        if sections < 4 && body.contains("<sub>parallel") && limit > 2_000 {
            assert!(
                body.contains(&format!("{} more sections do not fit in here", 4 - sections)),
                "{body}"
            );
        }
        let flips = body.contains("<summary>10 PASS→FAIL");
        assert!(sections == 0 || flips, "what goes last is what fell: {body}");
    }
}

/// So many pairs of long hostile names, of which one half fails after it passed, the other errors at length.
fn worst(pairs: usize) -> Summary {
    let long = "@<|`\u{202e}🦀".repeat(400);
    let of = |number: usize| {
        let name = format!("{number:04}{}", &long[..242]);
        let attempts = match number % 2 {
            0 => vec![attempt(1, Outcome::Failed, 1.0), attempt(2, Outcome::Failed, 1.0)],
            _ => vec![errored(1, ErrorClass::NoResult, &long); 2],
        };
        let mut pair = pair(&name, &name, attempts);
        pair.attempts[0].checks_failed = vec![long.clone()];
        pair
    };
    let mut summary = run_of((0..pairs).map(of).collect());
    let mut comparison = compared(pairs, pairs, 0);
    let flipped = summary.pairs.iter().map(|pair| {
        let (experiment, eval) = (pair.experiment.as_str(), pair.eval.as_str());
        flip(experiment, eval, "2/2", "0/2", false)
    });
    comparison.flips.pass_to_fail = flipped.collect();
    summary.comparison = Some(comparison);
    summary.notices = vec![long.clone(); 30];
    summary
}

#[test]
fn the_worst_comment_is_below_its_limit_with_headline_and_table_at_any_size() {
    for pairs in [1, 220, 5_000] {
        let body = markdown(&worst(pairs), ROOMY);
        assert!(body.len() <= ROOMY, "{pairs}: {}", body.len());
        let head = &body[..body.len().min(400)];
        assert!(
            head.starts_with(&format!("### Evals: 0/{}", pairs.div_ceil(2))),
            "{head}"
        );
        assert!(body.contains("\n| pass rate"), "{pairs}");
        assert!(body.contains("<sub>"), "{pairs}");
        assert!(body.contains("PASS→FAIL</summary>"), "{pairs}");
        assert_eq!(
            body.matches("<details>").count(),
            body.matches("</details>").count()
        );
    }
}
