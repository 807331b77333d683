//! A plan as text for a terminal: what will run, how much of it at once, and what is not known.

use std::fmt::Write as _;

use crate::model::{OnPass, Outlook, Produces, Range, SelectionKind, Strategy};
use crate::plan::{PlanDocument, PlannedPairDocument, amount};

use super::escape::plain;
use super::words::{count, dollars, duration, padded, width};

/// Pairs that are shown.
const SHOWN: usize = 20;
/// Widest a column of ids gets.
const WIDEST: usize = 48;

/// The plan in a few aligned lines, then its first pairs.
pub fn text(doc: &PlanDocument<'_>) -> String {
    let mut text = format!("{}\n\n", headline(doc));
    for (name, value) in facts(doc) {
        let _ = writeln!(text, "  {name:<16}{value}");
    }
    if let Some(forecast) = doc.forecast.filter(|forecast| !forecast.strategies.is_empty()) {
        text.push('\n');
        strategies(&mut text, &forecast.strategies);
    }
    if !doc.pairs.is_empty() {
        text.push('\n');
        pairs(&mut text, &doc.pairs);
    }
    text
}

fn headline(doc: &PlanDocument<'_>) -> String {
    let suite = plain(doc.suite);
    let (pairs, runs) = (doc.pairs.len(), doc.runs);
    match doc.strategy {
        _ if pairs == 0 && doc.selection.of == 0 => format!("{suite}: the suite has no pairs"),
        _ if pairs == 0 => format!("{suite}: none of {} selected", pairs_of(doc.selection.of)),
        // Deciding a pair early saves its other attempts.
        Strategy::Sequential | Strategy::Adaptive if runs > 1 && doc.produces == Produces::Attempt => {
            format!(
                "{suite}: {} x {}: at most {}",
                pairs_of(pairs),
                count(runs as usize, "run", "runs"),
                count(doc.attempts, "attempt", "attempts")
            )
        }
        _ => format!(
            "{suite}: {} x {} = {}",
            pairs_of(pairs),
            count(runs as usize, "run", "runs"),
            count(doc.attempts, "attempt", "attempts")
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
    let mut costs = Vec::new();
    if doc.measures_baseline {
        costs.push((
            "baseline",
            format!(
                "the base revision runs beside this one and costs as much again: {} more",
                count(doc.attempts, "attempt", "attempts")
            ),
        ));
    }
    if doc.confirm > 0 {
        let sides = if doc.measures_baseline {
            ", on both sides"
        } else {
            ""
        };
        costs.push((
            "confirm",
            format!(
                "{} of each pair that flips{sides}",
                count(doc.confirm as usize, "fresh attempt", "fresh attempts")
            ),
        ));
    }
    if !costs.is_empty() {
        costs.push((
            "at most",
            format!("{} in all", count(doc.most_attempts, "attempt", "attempts")),
        ));
    }
    let unknown = |seconds: Option<f64>| seconds.map_or_else(|| "unknown".to_owned(), duration);
    let mut facts = vec![
        (
            "selection",
            match selection.kind {
                SelectionKind::All => format!("all of {}", pairs_of(selection.of)),
                SelectionKind::Subset => {
                    format!("{} of {}", selection.selected, pairs_of(selection.of))
                }
                SelectionKind::Shard => {
                    format!("{} of {}, a shard", selection.selected, pairs_of(selection.of))
                }
            },
        ),
        ("strategy", strategy),
        ("policy", doc.policy.clone()),
        ("sandbox", doc.sandbox.to_owned()),
        ("concurrency", plain(doc.concurrency_reason)),
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
    ];
    let limits = doc
        .limits
        .iter()
        .map(|limit| format!("{} of {}={}", limit.concurrency, limit.name, limit.value));
    let limits: Vec<String> = limits.collect();
    if !limits.is_empty() {
        facts.push(("limits", plain(&format!("at once {}", limits.join(", ")))));
    }
    facts.extend(expected(doc));
    facts.extend(costs);
    facts
}

/// What the run is expected to take and cost, and what it may.
fn expected(doc: &PlanDocument<'_>) -> Vec<(&'static str, String)> {
    let run = doc.forecast.map(|forecast| forecast.run);
    let cap = |what: Option<String>| what.map_or_else(String::new, |what| format!(", budget {what}"));
    let unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let minutes_cap = doc.budget.sandbox_seconds.map(|seconds| amount(seconds / 60.0));
    let mut expected = vec![
        (
            "wall-clock",
            unknown(run.map(|run| range(run.wall_seconds, duration))),
        ),
        (
            "sandbox-minutes",
            unknown(run.map(|run| range(run.sandbox_seconds, minutes))) + &cap(minutes_cap),
        ),
    ];
    let cost = run.and_then(|run| run.cost_usd).map(|cost| range(cost, dollars));
    if cost.is_some() || doc.budget.cost_usd.is_some() {
        expected.push(("cost", unknown(cost) + &cap(doc.budget.cost_usd.map(dollars))));
    }
    if let Some(forecast) = doc
        .forecast
        .filter(|forecast| forecast.known_pairs < doc.pairs.len())
    {
        let known = format!(
            "known of {} of {}, the others are taken from their eval or experiment, else for the longest",
            forecast.known_pairs,
            pairs_of(doc.pairs.len())
        );
        expected.push(("durations", known));
    }
    expected
}

/// Each strategy at a few concurrencies.
fn strategies(text: &mut String, outlooks: &[Outlook]) {
    let has_cost = outlooks.iter().any(|outlook| outlook.cost_usd.is_some());
    let mut row = |strategy: &str, at_once: &str, wall: &str, sandboxes: &str, cost: &str| {
        let line = format!("  {strategy:<12}{at_once:>7}  {wall:<28}{sandboxes:<24}{cost}");
        let _ = writeln!(text, "{}", line.trim_end());
    };
    let cost = if has_cost { "cost" } else { "" };
    row("strategy", "at once", "wall-clock", "sandbox-minutes", cost);
    for outlook in outlooks {
        let cost = outlook.cost_usd.map(|cost| range(cost, dollars));
        row(
            &outlook.strategy.to_string(),
            &outlook.concurrency.to_string(),
            &range(outlook.wall_seconds, duration),
            &range(outlook.sandbox_seconds, minutes),
            &cost.unwrap_or_default(),
        );
    }
}

/// `14m28s (13m00s to 16m00s)`.
fn range(range: Range, shown: fn(f64) -> String) -> String {
    let (low, high) = (shown(range.low), shown(range.high));
    let likely = shown(range.likely);
    if low == high {
        likely
    } else {
        format!("{likely} ({low} to {high})")
    }
}

/// Of seconds: whole minutes, with a decimal where there are few.
fn minutes(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    let decimals = usize::from(minutes < 9.95);
    format!("{minutes:.decimals$}")
}

fn pairs(text: &mut String, pairs: &[PlannedPairDocument<'_>]) {
    let shown = &pairs[..pairs.len().min(SHOWN)];
    let widest = |column: fn(&PlannedPairDocument<'_>) -> usize| shown.iter().map(column).max().unwrap_or(0);
    let experiments = widest(|pair| width(pair.experiment)).clamp("experiment".len(), WIDEST);
    let evals = widest(|pair| width(pair.eval)).clamp("eval".len(), WIDEST);
    let mut row = |experiment: &str, eval: &str, labels: &str| {
        let (experiment, eval) = (padded(experiment, experiments), padded(eval, evals));
        let line = format!("  {experiment}  {eval}  {labels}");
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
    let text = plain(&labels.collect::<Vec<_>>().join(" "));
    console::truncate_str(&text, WIDEST, "…").into_owned()
}

fn pairs_of(number: usize) -> String {
    count(number, "pair", "pairs")
}

#[cfg(test)]
mod tests {
    use super::{WIDEST, text, width};
    use crate::model::{
        Forecast, Labels, OnPass, Outlook, PlannedBudget, Produces, Range, Selection, SelectionKind, Strategy,
    };
    use crate::plan::{PlanDocument, PlannedPairDocument};

    fn document(evals: &[String], of: usize) -> PlanDocument<'_> {
        static LABELS: Labels = Labels(std::collections::BTreeMap::new());
        let pair = |eval| PlannedPairDocument {
            experiment: "opus",
            eval,
            labels: &LABELS,
            runs: 2,
            predicted_seconds: None,
        };
        PlanDocument {
            schema: "evalwave.plan/1",
            suite: "benchmark",
            selection: Selection {
                kind: SelectionKind::Subset,
                selected: evals.len(),
                of,
            },
            strategy: Strategy::Parallel,
            on_pass: OnPass::Continue,
            policy: "any".to_owned(),
            runs: 2,
            produces: Produces::Attempt,
            attempts: 2 * evals.len(),
            measures_baseline: false,
            confirm: 0,
            most_attempts: 2 * evals.len(),
            sandbox: "local",
            concurrency: 44,
            concurrency_reason: "44 = pairs x runs (22 x 2): one wave",
            concurrency_bounded: false,
            waves: 1,
            timeout_seconds: 720.0,
            grace_seconds: 90.0,
            longest_attempt_seconds: None,
            wall_seconds: None,
            forecast: None,
            limits: &[],
            budget: PlannedBudget::default(),
            config_hash: "",
            pairs: evals.iter().map(|eval| pair(eval.as_str())).collect(),
        }
    }

    #[test]
    fn a_plan_is_short_and_says_what_is_unknown() {
        let evals: Vec<String> = (0..22).map(|eval| format!("build-{eval}")).collect();
        let mut labels = Labels::default();
        labels.add("note", "a\u{1b}[31mb");
        labels.add("tags", "x");
        labels.add("tags", &"long ".repeat(12));
        let mut document = document(&evals, 30);
        document.pairs[0].labels = &labels;
        let text = text(&document);
        let lines: Vec<&str> = text.lines().collect();
        insta::assert_snapshot!(lines[..16].join("\n"), @"
        benchmark: 22 pairs x 2 runs = 44 attempts

          selection       22 of 30 pairs
          strategy        parallel, every attempt runs to its end
          policy          any
          sandbox         local
          concurrency     44 = pairs x runs (22 x 2): one wave
          waves           1
          timeout         12m00s, killed 1m30s later
          longest attempt unknown
          wall-clock      unknown
          sandbox-minutes unknown

          experiment  eval      labels
          opus        build-0   note=ab tags=x tags=long long long long long lo…
          opus        build-1
        ");
        assert_eq!(lines.len(), 14 + 20 + 1);
        assert_eq!(lines.last(), Some(&"  … and 2 more"));
    }

    #[test]
    fn columns_stay_in_line_behind_wide_names() {
        let evals = ["評価テスト".to_owned(), "plain".to_owned(), "🚀".to_owned()];
        let mut labels = Labels::default();
        labels.add("note", &"長い".repeat(20));
        let mut document = document(&evals, 3);
        document.pairs.iter_mut().for_each(|pair| pair.labels = &labels);
        let text = text(&document);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("note=")).collect();
        let before: Vec<usize> = rows
            .iter()
            .map(|row| width(row.split_once("note=").unwrap().0))
            .collect();
        assert_eq!(before, [26, 26, 26], "{text}");
        let labels = width(&rows[0][rows[0].find("note=").unwrap()..]);
        assert!((WIDEST - 1..=WIDEST).contains(&labels), "{labels} {text}");
    }

    #[test]
    fn what_a_measured_baseline_and_confirmation_cost_is_told_as_an_upper_bound() {
        let evals = ["a".to_owned(), "b".to_owned()];
        let mut document = document(&evals, 2);
        (
            document.measures_baseline,
            document.confirm,
            document.most_attempts,
        ) = (true, 3, 20);
        let text = text(&document);
        let lines: Vec<&str> = text.lines().skip(12).take(3).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
          baseline        the base revision runs beside this one and costs as much again: 4 attempts more
          confirm         3 fresh attempts of each pair that flips, on both sides
          at most         20 attempts in all
        ");
    }

    #[test]
    fn a_plan_with_durations_says_what_each_strategy_would_take_and_cost() {
        let evals: Vec<String> = (0..3).map(|eval| format!("build-{eval}")).collect();
        let look = |strategy, concurrency, wall: f64, sandboxes: f64| Outlook {
            strategy,
            concurrency,
            wall_seconds: Range {
                low: wall - 60.0,
                likely: wall,
                high: wall + 90.0,
            },
            sandbox_seconds: Range {
                low: sandboxes,
                likely: sandboxes,
                high: sandboxes,
            },
            cost_usd: Some(Range {
                low: 1.0,
                likely: 1.5,
                high: 2.25,
            }),
        };
        let forecast = Forecast {
            known_pairs: 2,
            run: look(Strategy::Parallel, 6, 868.0, 1_200.0),
            strategies: vec![
                look(Strategy::Sequential, 3, 1_534.0, 420.0),
                look(Strategy::Parallel, 6, 868.0, 1_200.0),
            ],
        };
        let mut document = document(&evals, 3);
        document.forecast = Some(&forecast);
        document.budget.sandbox_seconds = Some(3_600.0);
        let text = text(&document);
        let (_, shown) = text.split_once("longest attempt unknown\n").unwrap();
        let (shown, _) = shown.split_once("\n  experiment").unwrap();
        insta::assert_snapshot!(shown, @"
          wall-clock      14m28s (13m28s to 15m58s)
          sandbox-minutes 20, budget 60
          cost            $1.50 ($1.00 to $2.25)
          durations       known of 2 of 3 pairs, the others are taken from their eval or experiment, else for the longest

          strategy    at once  wall-clock                  sandbox-minutes         cost
          sequential        3  25m34s (24m34s to 27m04s)   7.0                     $1.50 ($1.00 to $2.25)
          parallel          6  14m28s (13m28s to 15m58s)   20                      $1.50 ($1.00 to $2.25)
        ");
    }

    #[test]
    fn a_plan_of_nothing_says_why() {
        assert!(text(&document(&[], 0)).starts_with("benchmark: the suite has no pairs\n"));
        assert!(text(&document(&[], 4)).starts_with("benchmark: none of 4 pairs selected\n"));
    }

    #[test]
    fn a_strategy_that_stops_early_needs_at_most_all_attempts() {
        let evals = ["a".to_owned()];
        let mut document = document(&evals, 1);
        document.strategy = Strategy::Sequential;
        assert!(text(&document).starts_with("benchmark: 1 pair x 2 runs: at most 2 attempts\n"));
    }
}
