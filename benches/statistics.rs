//! What the statistics find in simulated suites, and what they find that is not there: a table, from fixed seeds.
//!
//! `cargo bench --bench statistics`, or with a number of trials: `cargo bench --bench statistics -- 10000`.

use evalwave::compare::compare;

#[path = "../tests/it/statistics/suite.rs"]
mod suite;
#[path = "../tests/it/statistics/trials.rs"]
mod trials;

const TRIALS: u64 = 2000;

#[expect(clippy::print_stdout, reason = "the table is what this is for")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let of: u64 = arguments
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(TRIALS);
    let percent = |found: u64, of: u64| format!("{:.1} %", found as f64 / of as f64 * 100.0);
    println!("{of} trials each\n");

    println!("false alarms of `significant` in identical runs (at most 5 %)");
    println!(
        "  {:>5} {:>6} {:>10} {:>10} {:>10}",
        "pairs", "flaky", "1 attempt", "2 attempts", "3 attempts"
    );
    for pairs in [20, 100, 220] {
        for flaky in [0.0, 0.05, 0.1, 0.2, 0.3] {
            let [one, two, three] =
                [1, 2, 3].map(|runs| percent(trials::false_alarms(of, pairs, flaky, runs), of));
            println!("  {pairs:>5} {flaky:>6} {one:>10} {two:>10} {three:>10}");
        }
    }

    println!("\ndrops found by `significant` (220 pairs, a tenth of them flaky)");
    println!(
        "  {:>6} {:>10} {:>10} {:>10}",
        "drop", "1 attempt", "2 attempts", "3 attempts"
    );
    for drop in [0.02, 0.05, 0.1, 0.2] {
        let [one, two, three] = [1, 2, 3].map(|runs| percent(trials::power(of, drop, runs), of));
        println!("  {:>3} pp {one:>10} {two:>10} {three:>10}", drop * 100.0);
    }

    println!("\none experiment of ten falls from .9 to .5, 22 pairs, 3 attempts (at least 95 %)");
    println!("  found {}", percent(trials::collapse(of), of));

    println!("\na provider throttled in 3 of 10 passing pairs (at least 95 %)");
    for runs in [1, 2] {
        println!(
            "  {runs} attempts: named {}",
            percent(trials::throttled(of, runs), of)
        );
    }
    println!("\nidentical runs, providers flaky in 5, 15 and 30 % of their pairs (at most 1 %)");
    for runs in [1, 2] {
        println!(
            "  {runs} attempts: named {}",
            percent(trials::named_for_nothing(of, runs), of)
        );
    }

    println!("\nthe drop called detectable, found by the exact test (70 to 90 %)");
    println!(
        "  {:>5}  {:<32} {:>10} {:>10} {:>10} {:>10}",
        "pairs", "kind of suite", "1 attempt", "2 attempts", "3 attempts", "5 attempts"
    );
    for pairs in [10, 20, 40, 100, 220] {
        for (name, kind) in trials::KINDS {
            let [one, two, three, five] = [1, 2, 3, 5].map(|runs| {
                let (found, counted) = trials::detected(of / 5, 5, pairs, kind, runs);
                if counted == 0 {
                    "n/a".to_owned()
                } else {
                    percent(found, counted)
                }
            });
            println!("  {pairs:>5}  {name:<32} {one:>10} {two:>10} {three:>10} {five:>10}");
        }
    }

    println!("\na comparison as a whole (10,000 pairs: at most 100 ms)");
    for (pairs, runs) in [(40, 10), (100, 5), (500, 1), (10_000, 1), (10_000, 10)] {
        let milliseconds = milliseconds(pairs, runs);
        println!("  {pairs:>6} pairs, {runs:>2} attempts {milliseconds:>8.1} ms");
    }
}

/// How long two runs of a suite take to be compared.
#[expect(clippy::disallowed_methods, reason = "the time is what is measured")]
fn milliseconds(pairs: usize, runs: u32) -> f64 {
    let mut random = suite::Random(1);
    let suite = suite::Suite::new(pairs, |_| 0.3, &mut random);
    let [before, now] = ["before", "now"].map(|name| suite.run(name, runs, &mut random));
    let started = std::time::Instant::now();
    std::hint::black_box(compare(&before, &now, &trials::options()));
    started.elapsed().as_secs_f64() * 1000.0
}
