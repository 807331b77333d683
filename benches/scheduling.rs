//! What each strategy makes of the same attempts, in simulated time: wall-clock and sandbox-seconds, as a table.
//!
//! `cargo bench --bench scheduling`, or with a trace of your own: `cargo bench --bench scheduling -- FILE`. Without a
//! file it takes `../shared/data/attempt-trace.json`, where that lies beside the checkout.

#![expect(clippy::print_stdout, reason = "the table is what this is for")]

#[path = "../tests/it/traces.rs"]
mod traces;

use std::error::Error;

use evalwave::model::OnPass;
use evalwave::schedule::{Pace, Timeline, Trace, simulate};
use traces::{Shape, benchmark, creation_ramp, lower_bound, predicted_as, read, with_giant, wrong_by_three};

/// A trace that lies beside some checkouts.
const BESIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/attempt-trace.json");
const SEEDS: std::ops::Range<u64> = 0..30;
const PARALLEL: Pace = Pace::Parallel(OnPass::Continue);

fn main() -> Result<(), Box<dyn Error>> {
    let named = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let path = named.as_deref().unwrap_or(BESIDE);
    match fs_err::read_to_string(path) {
        Ok(text) => one_trace(path, &read(&text)),
        Err(error) if named.is_some() => return Err(error.into()),
        Err(_) => println!("no trace lies beside this checkout ({BESIDE}): generated ones only\n"),
    }
    many_traces();
    Ok(())
}

/// The strategies over a few concurrencies, in seconds.
fn one_trace(name: &str, trace: &Trace) {
    let attempts = trace.pairs.len() * trace.runs as usize;
    let (slowest, all) = (lower_bound(trace, usize::MAX), lower_bound(trace, 1));
    println!("{name}: {} pairs x {}", trace.pairs.len(), trace.runs);
    println!("slowest attempt {slowest:.0} s, all attempts {all:.0} s, each with its sandbox\n");
    println!(
        "{:<12}{:>12}{:>12}{:>18}{:>18}",
        "strategy", "at once", "wall-clock", "sandbox-seconds", "lower bound"
    );
    for concurrency in [attempts, 250, 100, 50] {
        for (strategy, pace) in [
            ("parallel", PARALLEL),
            ("sequential", Pace::Sequential),
            ("adaptive", Pace::Adaptive),
        ] {
            let timeline = trace.simulate(pace, concurrency);
            println!(
                "{strategy:<12}{concurrency:>12}{:>12.0}{:>18.0}{:>18.0}",
                timeline.wall.as_secs_f64(),
                timeline.sandbox_time.as_secs_f64(),
                lower_bound(trace, concurrency),
            );
        }
    }
    println!();
}

/// Adaptive against the two others, on average over the seeds, and in the worst of them.
fn many_traces() {
    let two = benchmark(2);
    type Make = Box<dyn Fn(u64) -> Trace>;
    let of = |shape: Shape| -> Make { Box::new(move |seed| shape.trace(seed)) };
    let mut families: Vec<(String, Make)> = vec![
        ("benchmark".to_owned(), of(two)),
        (
            "wild predictions".to_owned(),
            of(Shape {
                longest_predicted: f64::INFINITY,
                ..two
            }),
        ),
        (
            "heavy tails".to_owned(),
            of(Shape {
                spread: 1.0,
                longest: 36_000.0,
                longest_predicted: 36_000.0,
                ..two
            }),
        ),
        (
            "equal durations".to_owned(),
            of(Shape {
                spread: 0.0,
                noise: 0.0,
                error: 0.0,
                ..two
            }),
        ),
        (
            "one giant".to_owned(),
            Box::new(move |seed| with_giant(&two.trace(seed))),
        ),
        (
            "all failing".to_owned(),
            of(Shape {
                all_fail: true,
                ..two
            }),
        ),
        (
            "all predicted x 3".to_owned(),
            Box::new(move |seed| predicted_as(&two.trace(seed), |_, seconds| Some(seconds * 3.0))),
        ),
        (
            "all predicted / 3".to_owned(),
            Box::new(move |seed| predicted_as(&two.trace(seed), |_, seconds| Some(seconds / 3.0))),
        ),
        (
            "wrong by 3 at random".to_owned(),
            Box::new(move |seed| wrong_by_three(&two.trace(seed), seed)),
        ),
        (
            "half predicted".to_owned(),
            Box::new(move |seed| {
                predicted_as(&two.trace(seed), |position, seconds| {
                    (position % 2 == 0).then_some(seconds)
                })
            }),
        ),
        (
            "nothing predicted".to_owned(),
            Box::new(move |seed| predicted_as(&two.trace(seed), |_, _| None)),
        ),
    ];
    families.extend((1..=8).map(|runs| (format!("runs {runs}"), of(benchmark(runs)))));

    println!(
        "237 pairs, adaptive and sequential 250 at once, {} seeds each\n",
        SEEDS.count()
    );
    println!(
        "{:<22}{:>22}{:>22}{:>14}{:>14}{:>16}",
        "", "wall / parallel's", "seconds / sequential's", "sequential's", "parallel's", "parallel at 250"
    );
    println!(
        "{:<22}{:>22}{:>22}{:>14}{:>14}{:>16}",
        "", "mean (worst)", "mean (worst)", "wall", "seconds", "/ lower bound"
    );
    for (name, make) in &families {
        let rows: Vec<[f64; 5]> = SEEDS.map(|seed| compare(&make(seed))).collect();
        row(name, &rows);
    }
    println!("\nsandboxes created at 150 a minute and 500 more each minute");
    let rows: Vec<[f64; 5]> = SEEDS.map(|seed| compare_ramped(&two.trace(seed))).collect();
    row("creation ramp", &rows);
}

fn row(name: &str, rows: &[[f64; 5]]) {
    let mean = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
    let worst = |column: usize| rows.iter().map(|row| row[column]).fold(0.0, f64::max);
    let both = |column: usize| format!("{:.3} ({:.2})", mean(column), worst(column));
    println!(
        "{name:<22}{:>22}{:>22}{:>14.2}{:>14.2}{:>16.2}",
        both(0),
        both(1),
        mean(2),
        mean(3),
        mean(4)
    );
}

/// Adaptive's wall-clock over parallel's in one wave, its sandbox-seconds over sequential's; sequential's wall-clock
/// and parallel's sandbox-seconds over the same; parallel's wall-clock at 250 over its lower bound.
fn compare(trace: &Trace) -> [f64; 5] {
    let attempts = trace.pairs.len() * trace.runs as usize;
    ratios(
        &trace.simulate(PARALLEL, attempts),
        &trace.simulate(Pace::Sequential, 250),
        &trace.simulate(Pace::Adaptive, 250),
        trace.simulate(PARALLEL, 250).wall.as_secs_f64() / lower_bound(trace, 250),
    )
}

fn compare_ramped(trace: &Trace) -> [f64; 5] {
    let attempts = trace.pairs.len() * trace.runs as usize;
    let ramped = |pace, concurrency| {
        simulate(
            trace.spec(pace, concurrency),
            |attempt, _| trace.course(attempt),
            creation_ramp(trace.overhead, 150.0, 500.0),
        )
    };
    ratios(
        &ramped(PARALLEL, attempts),
        &ramped(Pace::Sequential, 250),
        &ramped(Pace::Adaptive, 250),
        ramped(PARALLEL, 250).wall.as_secs_f64() / lower_bound(trace, 250),
    )
}

fn ratios(parallel: &Timeline, sequential: &Timeline, adaptive: &Timeline, bound: f64) -> [f64; 5] {
    let wall = |timeline: &Timeline| timeline.wall.as_secs_f64();
    let seconds = |timeline: &Timeline| timeline.sandbox_time.as_secs_f64();
    [
        wall(adaptive) / wall(parallel),
        seconds(adaptive) / seconds(sequential),
        wall(sequential) / wall(parallel),
        seconds(parallel) / seconds(sequential),
        bound,
    ]
}
