//! The table of a run against its baseline: what is not known says so, and is never 0.

use super::{Compared, Line, Table};
use crate::model::comparison::{Side, Spent};
use crate::model::{Boot, Comparison, Policy, Summary, Usage};
use crate::report::words::{count, dollars, duration, points, rate, relative, tokens};

const UNKNOWN: &str = "n/a";

pub(super) fn of_summary(summary: &Summary, comparison: Option<&Comparison>) -> Table {
    let mut rows = Vec::new();
    let totals = &summary.totals;
    let decided = totals.passed + totals.failed;
    let compared = comparison.map(Compared::of).filter(|compared| compared.of > 0);
    let name = format!("pass rate{}", decided_by(summary));
    let whole = fraction(totals.passed, decided);
    match compared {
        Some(compared) if compared.of == decided => {
            rows.push(pass_rates(name, compared));
        }
        Some(compared) => {
            let over = format!(
                "{name}, {}",
                count(compared.of, "pair compared", "pairs compared")
            );
            rows.push(pass_rates(over, compared));
            rows.extend(whole.map(|whole| row(format!("{name}, this run's pairs"), None, whole, None)));
        }
        None => rows.extend(whole.map(|whole| row(name, None, whole, None))),
    }
    let attempts = &totals.attempts;
    let baseline = comparison.map(|comparison| &comparison.baseline);
    if summary.run.runs > 1 && decided > 0 {
        let passed = totals.attempt_pass_rate.map(|_| attempts.passed);
        let before = baseline.and_then(|side| fraction(side.attempts_passed?, side.attempts?));
        let now = passed.and_then(|passed| fraction(passed, attempts.graded));
        let now = now.unwrap_or_else(|| format!("{UNKNOWN} (stops when decided)"));
        rows.push(row("single attempt", before, now, None));
    }
    let errors = |errored: usize, timed_out: usize| format!("{errored} / {timed_out}");
    let before = baseline.and_then(|side| Some(errors(side.attempts_errored?, side.attempts_timed_out?)));
    let now = errors(attempts.errored, attempts.timed_out);
    rows.push(row("errored / timed out", before, now, None));
    let is_part = totals.not_run > 0 || comparison.is_some_and(|comparison| comparison.not_selected > 0);
    rows.push(wall_clock(
        baseline.and_then(|side| side.wall_seconds),
        summary.run.wall_seconds,
        is_part,
    ));
    let before = baseline.and_then(|side| Some((side.attempts?, side.pairs)));
    rows.push(graded(before, (attempts.graded, decided), is_part));
    rows.extend(cost(baseline, spent(summary)));
    finish(rows, comparison.is_some())
}

pub(super) fn of_comparison(comparison: &Comparison) -> Table {
    let mut rows = Vec::new();
    let compared = Compared::of(comparison);
    if compared.of > 0 {
        rows.push(pass_rates("pass rate".to_owned(), compared));
    }
    let (baseline, current) = (&comparison.baseline, &comparison.current);
    let is_part = comparison.not_selected > 0;
    if let Some(seconds) = current.wall_seconds {
        rows.push(wall_clock(baseline.wall_seconds, seconds, is_part));
    }
    let attempts = |side: &Side| Some((side.attempts?, side.pairs));
    if let Some(now) = attempts(current) {
        rows.push(graded(attempts(baseline), now, is_part));
    }
    rows.extend(cost(Some(baseline), (current.cost_usd, current.tokens)));
    finish(rows, true)
}

/// The policy in words.
pub(super) fn policy(policy: Policy) -> String {
    match policy {
        Policy::Any => "any passes".to_owned(),
        Policy::All => "all must pass".to_owned(),
        Policy::Majority => "most must pass".to_owned(),
        Policy::Mean { threshold, complete } => {
            let complete = if complete { ", none missing" } else { "" };
            format!("mean score ≥ {threshold}{complete}")
        }
    }
}

/// How many sandboxes started warm, where any did.
pub(super) fn warm(summary: &Summary) -> Option<String> {
    let boots = || {
        summary
            .pairs
            .iter()
            .flat_map(|pair| &pair.attempts)
            .filter_map(|attempt| attempt.boot)
    };
    let warm = boots().filter(|boot| *boot == Boot::Warm).count();
    (warm > 0).then(|| format!("{warm}/{} warm", boots().count()))
}

fn finish(rows: Vec<[Option<String>; 4]>, with_baseline: bool) -> Table {
    let columns = match with_baseline {
        true => vec!["", "baseline", "this run", "change"],
        false => vec!["", "this run"],
    };
    let rows = rows.into_iter().map(|[name, baseline, current, change]| {
        let cell = |text: Option<String>| Line::own(text.unwrap_or_default());
        match with_baseline {
            true => {
                let baseline = baseline.unwrap_or_else(|| UNKNOWN.to_owned());
                vec![cell(name), Line::own(baseline), cell(current), cell(change)]
            }
            false => vec![cell(name), cell(current)],
        }
    });
    Table {
        columns,
        rows: rows.collect(),
    }
}

fn row(
    name: impl Into<String>,
    baseline: Option<String>,
    current: String,
    change: Option<String>,
) -> [Option<String>; 4] {
    [Some(name.into()), baseline, Some(current), change]
}

fn pass_rates(name: String, compared: Compared) -> [Option<String>; 4] {
    let current = fraction(compared.current, compared.of).unwrap_or_default();
    let change = compared.delta().map(points);
    row(name, fraction(compared.baseline, compared.of), current, change)
}

/// A part of a run is no change against a whole one.
fn wall_clock(before: Option<f64>, now: f64, is_part: bool) -> [Option<String>; 4] {
    let change = before.and_then(|before| relative(before, now));
    let change = change.filter(|_| !is_part);
    row("wall-clock", before.map(duration), duration(now), change)
}

/// Attempts that gave a result, of how many pairs with a verdict.
fn graded(before: Option<(usize, usize)>, now: (usize, usize), is_part: bool) -> [Option<String>; 4] {
    let shown = |(attempts, pairs): (usize, usize)| match pairs {
        0 => attempts.to_string(),
        _ => format!("{attempts} ({:.2} a pair)", attempts as f64 / pairs as f64),
    };
    let change = before
        .filter(|(attempts, _)| *attempts > 0 && !is_part)
        .map(|(attempts, _)| format!("{:.2} x", now.0 as f64 / attempts as f64));
    row("attempts with a result", before.map(shown), shown(now), change)
}

/// What the attempts of a run used, with how many of them say so.
fn spent(summary: &Summary) -> (Option<Spent<f64>>, Option<Spent<u64>>) {
    let attempts = || summary.pairs.iter().flat_map(|pair| &pair.attempts);
    let known = |is_known: fn(Usage) -> bool| {
        let of = attempts().filter(|attempt| attempt.usages().any(is_known));
        of.count()
    };
    let cost = summary.totals.cost_usd.map(|total| Spent {
        total,
        attempts: known(|usage| usage.cost_usd.is_some()),
    });
    let tokens = summary.totals.tokens.map(|total| Spent {
        total,
        attempts: known(|usage| usage.input_tokens.is_some() || usage.output_tokens.is_some()),
    });
    (cost, tokens)
}

/// Cost and tokens, with how many attempts they cover: the others are unknown, not free.
fn cost(
    baseline: Option<&Side>,
    now: (Option<Spent<f64>>, Option<Spent<u64>>),
) -> Option<[Option<String>; 4]> {
    let before = baseline.and_then(|side| used(side.cost_usd, side.tokens));
    let now = used(now.0, now.1);
    if before.is_none() && now.is_none() {
        return None;
    }
    Some(row(
        "cost, tokens",
        before,
        now.unwrap_or_else(|| UNKNOWN.to_owned()),
        None,
    ))
}

fn used(cost: Option<Spent<f64>>, used: Option<Spent<u64>>) -> Option<String> {
    let of = |attempts| format!("of {}", count(attempts, "attempt", "attempts"));
    let cost = cost.map(|cost| format!("{} ({})", dollars(cost.total), of(cost.attempts)));
    let tokens = used.map(|used| format!("{} ({})", tokens(used.total), of(used.attempts)));
    let parts: Vec<String> = cost.into_iter().chain(tokens).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn fraction(passed: usize, of: usize) -> Option<String> {
    Some(format!("{} ({passed}/{of})", rate(passed, of)?))
}

fn decided_by(summary: &Summary) -> String {
    let runs = summary.run.runs;
    match summary.run.policy {
        _ if runs < 2 => String::new(),
        Policy::Any => format!(" (any of {runs})"),
        Policy::All => format!(" (all of {runs})"),
        Policy::Majority => format!(" (most of {runs})"),
        Policy::Mean { threshold, .. } => format!(" (mean of {runs} ≥ {threshold})"),
    }
}
