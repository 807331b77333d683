//! A plan as text for a terminal: what will run, how much of it at once, and what is not known.

use std::fmt::Write as _;

use crate::model::{OnPass, Produces, SelectionKind, Strategy};
use crate::plan::{PlanDocument, PlannedPairDocument};

/// Pairs that are shown.
const SHOWN: usize = 20;
/// Widest a column of ids gets, in characters.
const WIDEST: usize = 48;

/// The plan in a few aligned lines, then its first pairs.
pub fn text(doc: &PlanDocument<'_>) -> String {
    let mut text = format!("{}\n\n", headline(doc));
    for (name, value) in facts(doc) {
        let _ = writeln!(text, "  {name:<16}{value}");
    }
    if !doc.pairs.is_empty() {
        text.push('\n');
        pairs(&mut text, &doc.pairs);
    }
    text
}

fn headline(doc: &PlanDocument<'_>) -> String {
    let suite = one_line(doc.suite);
    let (pairs, runs) = (doc.pairs.len(), doc.runs);
    match doc.strategy {
        _ if pairs == 0 && doc.selection.of == 0 => format!("{suite}: the suite has no pairs"),
        _ if pairs == 0 => format!("{suite}: none of {} selected", counted(doc.selection.of, "pair")),
        // Deciding a pair early saves its other attempts.
        Strategy::Sequential | Strategy::Adaptive if runs > 1 && doc.produces == Produces::Attempt => {
            format!(
                "{suite}: {} x {}: at most {}",
                counted(pairs, "pair"),
                counted(runs as usize, "run"),
                counted(doc.attempts, "attempt")
            )
        }
        _ => format!(
            "{suite}: {} x {} = {}",
            counted(pairs, "pair"),
            counted(runs as usize, "run"),
            counted(doc.attempts, "attempt")
        ),
    }
}

fn facts(doc: &PlanDocument<'_>) -> Vec<(&'static str, String)> {
    let selection = &doc.selection;
    let strategy = match (doc.strategy, doc.on_pass) {
        (Strategy::Parallel, OnPass::Continue) => "parallel, every attempt runs to its end".to_owned(),
        (Strategy::Parallel, OnPass::Cancel) => {
            "parallel, a decided pair's other attempts are cancelled".to_owned()
        }
        (strategy, _) => strategy.to_string(),
    };
    let unknown = |seconds: Option<f64>| seconds.map_or_else(|| "unknown".to_owned(), duration);
    vec![
        (
            "selection",
            match selection.kind {
                SelectionKind::All => format!("all of {}", counted(selection.of, "pair")),
                SelectionKind::Subset => {
                    format!("{} of {}", selection.selected, counted(selection.of, "pair"))
                }
                SelectionKind::Shard => format!(
                    "{} of {}, a shard",
                    selection.selected,
                    counted(selection.of, "pair")
                ),
            },
        ),
        ("strategy", strategy),
        ("policy", doc.policy.clone()),
        ("sandbox", doc.sandbox.to_owned()),
        ("concurrency", one_line(doc.concurrency_reason)),
        ("waves", doc.waves.to_string()),
        (
            "timeout",
            format!(
                "{}, killed {} later",
                duration(doc.timeout_seconds),
                duration(doc.grace_seconds)
            ),
        ),
        ("longest attempt", unknown(doc.longest_attempt_seconds)),
        ("wall-clock", unknown(doc.wall_seconds)),
    ]
}

fn pairs(text: &mut String, pairs: &[PlannedPairDocument<'_>]) {
    let shown = &pairs[..pairs.len().min(SHOWN)];
    let width = |column: fn(&PlannedPairDocument<'_>) -> usize| shown.iter().map(column).max().unwrap_or(0);
    let experiments = width(|pair| pair.experiment.chars().count()).clamp("experiment".len(), WIDEST);
    let evals = width(|pair| pair.eval.chars().count()).clamp("eval".len(), WIDEST);
    let mut row = |experiment: &str, eval: &str, labels: &str| {
        let line = format!("  {experiment:<experiments$}  {eval:<evals$}  {labels}");
        let _ = writeln!(text, "{}", line.trim_end());
    };
    row("experiment", "eval", "labels");
    for pair in shown {
        row(pair.experiment, pair.eval, &labels(pair));
    }
    if pairs.len() > SHOWN {
        let _ = writeln!(text, "  … and {} more", pairs.len() - SHOWN);
    }
}

fn labels(pair: &PlannedPairDocument<'_>) -> String {
    let labels = pair
        .labels
        .0
        .iter()
        .flat_map(|(name, values)| values.iter().map(move |value| format!("{name}={value}")));
    let text = one_line(&labels.collect::<Vec<_>>().join(" "));
    if text.chars().count() <= WIDEST {
        return text;
    }
    let cut: String = text.chars().take(WIDEST - 1).collect();
    format!("{cut}…")
}

/// Text from outside must neither break the lines nor steer the terminal.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Seconds as `1h 5m`, `12m`, `90s` below two minutes, `0.5s` where it is not whole.
fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        return format!("{}s", (seconds * 10.0).round() / 10.0);
    }
    let whole = seconds.round();
    let (hours, minutes, rest) = (
        (whole / 3600.0).floor(),
        (whole % 3600.0 / 60.0).floor(),
        whole % 60.0,
    );
    [(hours, "h"), (minutes, "m"), (rest, "s")]
        .into_iter()
        .filter(|(amount, _)| *amount > 0.0)
        .map(|(amount, unit)| format!("{amount}{unit}"))
        .collect::<Vec<_>>()
        .join(" ")
}
