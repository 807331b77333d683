//! A calibration: how noisy a suite is, and what each gate would have done on runs without a change.

use super::{Line, Section, Table, Tone, Topic, View, words};
use crate::compare::calibrate::{Calibration, FlakyPair, GateRate, Outlook, Pairing};
use crate::report::words::{count, p_number, rate};

/// Most flaky pairs that are shown.
const FLAKIEST: usize = 10;

pub(in crate::report) fn of(calibration: &Calibration) -> View {
    let flips = &calibration.flips;
    let runs = count(calibration.runs.len(), "run", "runs");
    let comparisons = count(calibration.comparisons.len(), "comparison", "comparisons");
    let share = rate(flips.flips, flips.compared);
    let headline = match &share {
        Some(share) => {
            format!("{runs} of the same thing: {share} of their pairs flip from one run to another")
        }
        None => format!("{runs} of the same thing: they have no pair in common"),
    };
    let counts = format!(
        "{} in {comparisons} of {} in all · {} of {} went both ways",
        count(flips.flips, "flip", "flips"),
        count(flips.compared, "pair", "pairs"),
        calibration.flaky.len(),
        count(calibration.pairs, "pair", "pairs"),
    );
    let mut sections = vec![
        section(
            "Runs",
            run_columns(),
            calibration.runs.iter().map(run_row).collect(),
            0,
        ),
        section(
            "Each run with each later one",
            vec![
                "baseline",
                "run",
                "compared",
                "PASS→FAIL",
                "FAIL→PASS",
                "p",
                "verdict",
            ],
            calibration.comparisons.iter().map(pairing_row).collect(),
            0,
        ),
        section(
            "Flakiest pairs",
            vec!["experiment", "eval", "passed", "attempts"],
            calibration.flaky.iter().take(FLAKIEST).map(flaky_row).collect(),
            calibration.flaky.len().saturating_sub(FLAKIEST),
        ),
        section(
            "What two runs of this suite would see, by attempts of each pair",
            vec!["runs", "detectable drop", "any passes", "all pass"],
            calibration
                .outlook
                .iter()
                .map(|outlook| outlook_row(outlook, calibration.noise.is_some()))
                .collect(),
            0,
        ),
    ];
    sections.retain(|section| !section.table.rows.is_empty());
    sections.extend(super::sections::notices(calibration.warnings.iter()));
    View {
        tone: Tone::Neutral,
        headline: Line::own(headline),
        counts: Line::own(counts),
        sentences: Vec::new(),
        provenance: None,
        table: gates(calibration),
        sections,
        footer: Line::own(
            "detectable drop: of the share of passing attempts, with 80 % power at 5 % · any passes, all pass: unbiased pass@k and pass^k",
        ),
    }
}

fn section(title: &str, columns: Vec<&'static str>, rows: Vec<Vec<Line>>, more: usize) -> Section {
    Section {
        topic: Topic::Others,
        tone: Tone::Neutral,
        title: Line::own(title),
        table: Table { columns, rows },
        more,
    }
}

fn gates(calibration: &Calibration) -> Table {
    let informed = calibration
        .gates
        .iter()
        .any(|gate| gate.failed_with_history.is_some());
    let mut columns = vec!["gate", "would have failed"];
    if informed {
        columns.push("with the other runs as history");
    }
    let row = |gate: &GateRate| {
        let of = |failed: usize| Line::own(format!("{failed} of {}", gate.of));
        let mut row = vec![Line::name(&gate.gate), of(gate.failed)];
        row.extend(gate.failed_with_history.map(of));
        row
    };
    Table {
        columns,
        rows: calibration.gates.iter().map(row).collect(),
    }
}

fn run_columns() -> Vec<&'static str> {
    vec!["run", "passed", "pass rate", "95 % interval"]
}

fn run_row(run: &crate::compare::calibrate::CalibratedRun) -> Vec<Line> {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let interval = run.low.zip(run.high);
    vec![
        Line::name(&run.source),
        Line::own(format!("{}/{}", run.passed, run.pairs)),
        Line::own(rate(run.passed, run.pairs).unwrap_or_else(unknown)),
        Line::own(interval.map_or_else(unknown, |(low, high)| {
            format!("{} to {} %", percent(low), percent(high))
        })),
    ]
}

fn pairing_row(pairing: &Pairing) -> Vec<Line> {
    vec![
        Line::name(&pairing.baseline),
        Line::name(&pairing.current),
        Line::own(pairing.compared.to_string()),
        Line::own(pairing.pass_to_fail.to_string()),
        Line::own(pairing.fail_to_pass.to_string()),
        Line::own(pairing.p_value.map_or_else(unknown, p_number)),
        Line::own(words::verdict(pairing.verdict)),
    ]
}

fn flaky_row(pair: &FlakyPair) -> Vec<Line> {
    vec![
        Line::name(&pair.experiment),
        Line::name(&pair.eval),
        Line::own(format!("{}/{}", pair.passed, pair.of)),
        Line::own(&*pair.attempts),
    ]
}

fn outlook_row(outlook: &Outlook, is_noise_known: bool) -> Vec<Line> {
    let share = |share: Option<f64>, unit: &str| {
        Line::own(share.map_or_else(unknown, |share| format!("{:.1} {unit}", share * 100.0)))
    };
    vec![
        Line::own(outlook.runs.to_string()),
        match outlook.detectable {
            None if is_noise_known => Line::own("none"),
            drop => share(drop, "pp"),
        },
        share(outlook.any_passes, "%"),
        share(outlook.all_pass, "%"),
    ]
}

fn unknown() -> String {
    "n/a".to_owned()
}
