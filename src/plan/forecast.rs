//! What a plan is expected to take and cost: simulated runs with durations and outcomes drawn from experience.

use std::time::Duration;

use super::experience::Experience;
use super::scheduled::{self, duration};
use crate::config::PriceConfig;
use crate::model::{Forecast, Outcome, Outlook, PlannedPair, Produces, Range, RunPlan, Strategy};
use crate::schedule::{Pace, Span, Timeline, Trace, TraceAttempt, TracePair};

/// Runs that are drawn, and fewer where there are so many attempts that it would take seconds: the more attempts, the
/// less their sums differ.
const DRAWS: usize = 21;
const FEWEST_DRAWS: usize = 3;
const MANY_ATTEMPTS: usize = 2_000;

/// How much one strategy runs at once: a few numbers, the planned one first.
pub(super) struct Choice {
    pub(super) strategy: Strategy,
    pub(super) concurrencies: Vec<usize>,
}

impl Choice {
    /// What is planned, half of it, and everything at once.
    pub(super) fn new(strategy: Strategy, planned: usize, all: usize) -> Self {
        let mut concurrencies = vec![planned];
        for other in [planned / 2, all] {
            if other > 0 && !concurrencies.contains(&other) {
                concurrencies.push(other);
            }
        }
        Self {
            strategy,
            concurrencies,
        }
    }
}

/// What is expected; `None` where no duration is known at all. Pairs without one are taken for the longest known. No
/// command takes longer than `allowed`, in seconds.
pub(super) fn forecast(
    plan: &RunPlan,
    experience: &Experience,
    choices: &[Choice],
    allowed: f64,
    price: &PriceConfig,
) -> Option<Forecast> {
    let longest = plan
        .pairs
        .iter()
        .filter_map(|pair| pair.predicted_seconds)
        .reduce(f64::max)?;
    let attempts = plan.attempts().max(1);
    let draws = (DRAWS * MANY_ATTEMPTS / attempts.max(MANY_ATTEMPTS)).max(FEWEST_DRAWS);
    let traces: Vec<Trace> = (0..draws)
        .map(|draw| trace(plan, experience, [longest, allowed], draw))
        .collect();
    let costs = costs(plan, experience, price.sandbox_second);
    let look = |strategy, concurrency| {
        let pace = Pace::new(strategy, plan.on_pass);
        outlook(&traces, costs.as_ref(), pace, strategy, concurrency)
    };
    let strategies = choices.iter().flat_map(|choice| {
        let concurrencies = choice.concurrencies.iter();
        concurrencies.map(|concurrency| look(choice.strategy, *concurrency))
    });
    Some(Forecast {
        known_pairs: plan
            .pairs
            .iter()
            .filter(|pair| experience.knows(&pair.id))
            .count(),
        run: look(plan.strategy, plan.concurrency.value),
        // A command that runs its whole pair leaves nothing to a strategy.
        strategies: match plan.produces {
            Produces::Attempt => strategies.collect(),
            Produces::Pair => Vec::new(),
        },
    })
}

/// One run as it could be.
fn trace(plan: &RunPlan, experience: &Experience, [longest, allowed]: [f64; 2], draw: usize) -> Trace {
    let runs = scheduled::starts_per_pair(plan);
    let ratios = experience.ratios();
    let mut dice = Dice(draw as u64);
    let specs = scheduled::pairs(plan);
    let pairs = plan.pairs.iter().zip(specs).map(|(pair, spec)| {
        let usual = pair.predicted_seconds.unwrap_or(longest);
        let passes = experience.passes(&pair.id);
        let mut attempt = || {
            let ratio = ratios[((dice.share() * ratios.len() as f64) as usize).min(ratios.len() - 1)];
            TraceAttempt {
                command: duration((usual * ratio).min(allowed)).unwrap_or_default(),
                outcome: if dice.share() < passes {
                    Outcome::Passed
                } else {
                    Outcome::Failed
                },
                score: None,
            }
        };
        TracePair {
            attempts: (0..runs).map(|_| attempt()).collect(),
            spec,
        }
    });
    Trace {
        pairs: pairs.collect(),
        overhead: plan.overhead_seconds.and_then(duration).unwrap_or_default(),
        policy: scheduled::scheduling_policy(plan),
        runs,
        limits: scheduled::limits(plan),
    }
}

fn outlook(
    traces: &[Trace],
    costs: Option<&Costs>,
    pace: Pace,
    strategy: Strategy,
    concurrency: usize,
) -> Outlook {
    let timelines: Vec<(&Trace, Timeline)> = traces
        .iter()
        .map(|trace| (trace, trace.simulate(pace, concurrency)))
        .collect();
    let seconds = |of: fn(&Timeline) -> Duration| {
        range(
            timelines
                .iter()
                .map(|(_, timeline)| of(timeline).as_secs_f64())
                .collect(),
        )
    };
    Outlook {
        strategy,
        concurrency,
        wall_seconds: seconds(|timeline| timeline.wall),
        sandbox_seconds: seconds(|timeline| timeline.sandbox_time),
        cost_usd: costs.map(|costs| {
            range(
                timelines
                    .iter()
                    .map(|(trace, timeline)| costs.of(trace, timeline))
                    .collect(),
            )
        }),
    }
}

/// What the attempts of a run cost, in USD.
pub(super) struct Costs {
    /// One of each pair, besides its sandbox.
    pub(super) attempts: Vec<f64>,
    /// A sandbox for a second.
    pub(super) sandbox_second: f64,
}

impl Costs {
    /// All of them together. One that is stopped has cost its share by then.
    pub(super) fn of(&self, trace: &Trace, timeline: &Timeline) -> f64 {
        let of_span = |span: &Span| {
            let whole = trace.course(span.attempt).0.as_secs_f64();
            let held = span.end.saturating_sub(span.start);
            let share = match span.stopped {
                true if whole > 0.0 => held.saturating_sub(trace.overhead).as_secs_f64() / whole,
                _ => 1.0,
            };
            self.attempts[span.attempt.pair] * share.min(1.0)
        };
        let attempts: f64 = timeline.spans.iter().map(of_span).sum();
        attempts + timeline.sandbox_time.as_secs_f64() * self.sandbox_second
    }
}

/// What is known of it; `None` where that is not all. If no earlier result reports anything, those of this run will not
/// either, and sandboxes that have a price are all that does.
fn costs(plan: &RunPlan, experience: &Experience, sandbox_second: f64) -> Option<Costs> {
    let known = |pair: &PlannedPair| experience.cost(&pair.id);
    let attempts = match sandbox_second > 0.0 && !experience.knows_costs() {
        true => vec![0.0; plan.pairs.len()],
        false => plan.pairs.iter().map(known).collect::<Option<_>>()?,
    };
    Some(Costs {
        attempts,
        sandbox_second,
    })
}

fn range(mut values: Vec<f64>) -> Range {
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let position = (share * values.len().saturating_sub(1) as f64).round() as usize;
        values
            .get(position)
            .map_or(0.0, |value| (value * 1000.0).round() / 1000.0)
    };
    Range {
        low: at(0.1),
        likely: at(0.5),
        high: at(0.9),
    }
}

/// SplitMix64, so that the same plan has the same forecast everywhere.
struct Dice(u64);

impl Dice {
    /// From 0 to below 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
