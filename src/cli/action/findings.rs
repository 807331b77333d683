//! What a summary comes to in a workflow: the outputs of the step and its annotations. Writes nothing.

use camino::Utf8Path;

use crate::github::log::{Loudness, MOST_ANNOTATIONS};
use crate::model::layout::SUMMARY_FILE;
use crate::model::{Comparison, PairSummary, Summary, Verdict};

/// The outputs of a run, every one of them: what is not known is empty.
pub(super) fn outputs(summary: &Summary, directory: &Utf8Path, report: &str) -> Vec<(&'static str, String)> {
    let (run, totals) = (&summary.run, &summary.totals);
    let mut outputs = vec![
        ("conclusion", word(&run.conclusion)),
        ("concurrency", run.concurrency.to_string()),
        ("concurrency-reason", run.concurrency_reason.clone()),
        ("pass-rate", number(totals.pass_rate)),
        ("passed", totals.passed.to_string()),
        ("failed", totals.failed.to_string()),
        ("pairs", totals.pairs.to_string()),
        ("missing", (totals.errored + totals.not_run).to_string()),
        ("results-dir", directory.to_string()),
        ("summary-path", directory.join(SUMMARY_FILE).into_string()),
        ("report-path", directory.join(report).into_string()),
    ];
    outputs.extend(comparison_outputs(summary.comparison.as_ref()));
    outputs
}

/// The outputs of a comparison.
pub(super) fn comparison_outputs(comparison: Option<&Comparison>) -> Vec<(&'static str, String)> {
    let rates = comparison.map(|comparison| comparison.pass_rate);
    let text = |of: &dyn Fn(&Comparison) -> String| comparison.map(of).unwrap_or_default();
    vec![
        (
            "baseline-pass-rate",
            number(rates.and_then(|rates| rates.baseline)),
        ),
        ("delta", number(rates.and_then(|rates| rates.delta))),
        (
            "pass-to-fail",
            text(&|comparison| comparison.flips.pass_to_fail.len().to_string()),
        ),
        (
            "fail-to-pass",
            text(&|comparison| comparison.flips.fail_to_pass.len().to_string()),
        ),
        ("verdict", text(&|comparison| word(&comparison.verdict))),
        (
            "p-value",
            number(comparison.and_then(|comparison| comparison.test.p_value)),
        ),
    ]
}

/// What is shown beside the workflow: first each PASS→FAIL that is not known to be flaky, then pairs without a result,
/// then gates. Where there are more than GitHub keeps, the last one says so.
pub(super) fn annotations(summary: &Summary) -> Vec<(Loudness, String, String)> {
    let flips = summary
        .comparison
        .iter()
        .flat_map(|comparison| &comparison.flips.pass_to_fail);
    let flips = flips.filter(|flip| !flip.flaky).map(|flip| {
        let title = format!("PASS→FAIL: {} × {}", flip.experiment, flip.eval);
        (title, format!("passed {} before, {} now", flip.before, flip.now))
    });
    let errors = summary.pairs.iter().filter(|pair| pair.verdict == Verdict::Error);
    let errors = errors.map(|pair| {
        let title = format!("no result: {} × {}", pair.experiment, pair.eval);
        (title, first_error(pair).to_owned())
    });
    let gates = summary.gates.iter().filter(|gate| gate.failed);
    let gates = gates.map(|gate| (format!("gate {} failed", gate.gate), gate.why.clone()));

    let mut all: Vec<(String, String)> = flips.chain(errors).chain(gates).collect();
    if all.len() > MOST_ANNOTATIONS {
        let more = all.len() - (MOST_ANNOTATIONS - 1);
        all.truncate(MOST_ANNOTATIONS - 1);
        all.push((
            "and more".to_owned(),
            format!("{more} more findings are in the summary"),
        ));
    }
    all.into_iter()
        .map(|(title, message)| (Loudness::Error, title, message))
        .collect()
}

fn first_error(pair: &PairSummary) -> &str {
    let errors = pair.attempts.iter().filter_map(|attempt| attempt.error.as_ref());
    let mut lines = errors.filter_map(|error| error.message.lines().next());
    lines.next().unwrap_or("no attempt produced a result")
}

/// A value of a document as the document writes it.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).ok();
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
