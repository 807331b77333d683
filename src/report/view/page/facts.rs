//! The facts of a run, one a row: what was run, how, and what it took.

use super::super::{Line, Table, table};
use crate::model::{AttemptError, AttemptRecord, Boot, Comparison, ErrorClass, Summary};
use crate::report::words::{count, dollars, duration, tokens};

pub(super) fn of(summary: &Summary, comparison: Option<&Comparison>) -> Table {
    let (run, totals) = (&summary.run, &summary.totals);
    let attempts = &totals.attempts;
    let mut rows = vec![
        row("run", Line::name(&run.id)),
        row("suite", Line::name(&run.suite)),
        row(
            "started",
            Line::own(run.started_at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()),
        ),
        row("wall-clock", Line::own(duration(run.wall_seconds))),
    ];
    rows.extend(
        run.commit
            .as_ref()
            .map(|commit| row("commit", Line::name(commit))),
    );
    if let Some(comparison) = comparison {
        let side = &comparison.baseline;
        rows.push(row("baseline", Line::name(&side.source)));
        rows.extend(
            side.commit
                .as_ref()
                .map(|commit| row("baseline commit", Line::name(commit))),
        );
    }
    rows.push(row("strategy", Line::own(run.strategy.to_string())));
    rows.push(row(
        "attempts of a pair",
        Line::own(format!("{}, {}", run.runs, table::policy(run.policy))),
    ));
    rows.push(row("concurrency", super::super::concurrency(run)));
    rows.push(row("sandbox", Line::name(&run.sandbox)));
    rows.extend(boots(summary).map(|boots| row("boots", Line::own(boots))));
    rows.push(row(
        "attempts",
        Line::own(format!(
            "{} planned: {} passed, {} failed, {} timed out, {} errored, {} cancelled",
            attempts.planned,
            attempts.passed,
            attempts.failed,
            attempts.timed_out,
            attempts.errored,
            attempts.cancelled
        )),
    ));
    rows.push(row(
        "tried again",
        Line::own(count(attempts.retried, "attempt", "attempts")),
    ));
    rows.push(row("throttled", Line::own(throttled(summary))));
    rows.push(row(
        "sandboxes held",
        Line::own(format!(
            "{}, all tries together",
            duration(totals.sandbox_seconds)
        )),
    ));
    let cost = totals.cost_usd.map(|cost| Line::own(dollars(cost)));
    rows.push(row("cost", cost.unwrap_or_else(|| Line::own("n/a"))));
    let used = totals.tokens.map(|used| Line::own(tokens(used)));
    rows.push(row("tokens", used.unwrap_or_else(|| Line::own("n/a"))));
    rows.push(row("config hash", Line::name(&run.config_hash)));
    rows.push(row(
        "written by",
        Line::own("evalwave ").and_name(&summary.tool.version),
    ));
    Table {
        columns: Vec::new(),
        rows,
    }
}

fn row(name: &str, value: Line) -> Vec<Line> {
    vec![Line::own(name), value]
}

/// How sandboxes started, where any did.
fn boots(summary: &Summary) -> Option<String> {
    let boots = summary.pairs.iter().flat_map(|pair| &pair.attempts);
    let (warm, cold): (Vec<Boot>, Vec<Boot>) = boots
        .filter_map(|attempt| attempt.boot)
        .partition(|boot| *boot == Boot::Warm);
    let is_any = warm.len() + cold.len() > 0;
    is_any.then(|| format!("{} warm, {} cold", warm.len(), cold.len()))
}

/// Attempts that a provider throttled in any of their tries, and those among them that it throttled to their end.
fn throttled(summary: &Summary) -> String {
    let attempts = || summary.pairs.iter().flat_map(|pair| &pair.attempts);
    let is_throttled = |error: &AttemptError| error.class == ErrorClass::Throttled;
    let to_its_end = |attempt: &&AttemptRecord| attempt.error.as_ref().is_some_and(is_throttled);
    let ever = |attempt: &&AttemptRecord| {
        let mut earlier = attempt.earlier.iter();
        earlier.any(|failed| is_throttled(&failed.error)) || to_its_end(attempt)
    };
    let throttled = count(attempts().filter(ever).count(), "attempt", "attempts");
    match attempts().filter(to_its_end).count() {
        0 => throttled,
        ended => format!("{throttled}, {ended} of them to the end"),
    }
}
