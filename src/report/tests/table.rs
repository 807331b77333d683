//! The tables of a terminal: what stands in them, and where.

use super::fixtures::{attempt, compared, pair, run_of, small};
use crate::model::Outcome;
use crate::model::comparison::Spent;
use crate::report::{comparison_text, text};

#[test]
fn columns_stay_in_line_behind_wide_names() {
    let failed = |index| attempt(index, Outcome::Failed, 1.0);
    let summary = run_of(vec![
        pair("模型", "評価テスト", vec![failed(1)]),
        pair("opus", "deploy", vec![failed(1)]),
        pair("🚀", "e\u{301}val", vec![failed(1)]),
    ]);
    let shown = text(&summary, false);
    let rows: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("the page loads"))
        .collect();
    let before = |row: &&str| console::measure_text_width(row.split_once("the page loads").unwrap().0);
    let columns: Vec<usize> = rows.iter().map(before).collect();
    assert_eq!(columns.len(), 3, "{shown}");
    assert!(
        columns.iter().all(|column| *column == columns[0]),
        "{columns:?} {shown}"
    );
}

#[test]
fn what_the_baseline_cost_stands_beside_what_the_run_did() {
    let mut summary = small();
    let mut comparison = compared(3, 2, 2);
    comparison.baseline.cost_usd = Some(Spent {
        total: 0.001,
        attempts: 6,
    });
    summary.comparison = Some(comparison.clone());
    let row = |shown: &str| {
        let row = shown
            .lines()
            .find(|line| line.starts_with("cost, tokens"))
            .unwrap();
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        row(&text(&summary, false)),
        "cost, tokens $0.001 (of 6 attempts) n/a"
    );
    comparison.current.tokens = Some(Spent {
        total: 1200,
        attempts: 1,
    });
    assert_eq!(
        row(&comparison_text(&comparison)),
        "cost, tokens $0.001 (of 6 attempts) 1200 tokens (of 1 attempt)"
    );
}
