use proptest::prelude::*;
use serde_json::{Value, json};

use super::{collator, indent, render};
use crate::aggregate::Published;
use crate::model::{Labels, Outcome, PairId, PairSummary, Summary, Verdict};
use crate::report::tests::fixtures;

fn summary(pairs: &[(&str, &str, Verdict, u32)]) -> Summary {
    let pairs = pairs
        .iter()
        .map(|(experiment, eval, verdict, graded)| PairSummary {
            verdict: *verdict,
            graded_attempts: *graded,
            ..pair(experiment, eval)
        });
    fixtures::run_of(pairs.collect())
}

fn pair(experiment: &str, eval: &str) -> PairSummary {
    fixtures::pair(experiment, eval, vec![fixtures::attempt(1, Outcome::Passed, 1.0)])
}

fn document(experiment: &str, eval: &str, run: Option<u32>, text: &str) -> Published {
    Published {
        pair: PairId::new(experiment, eval).unwrap(),
        run,
        path: match run {
            Some(run) => format!("{eval}/run-{run}/result.json"),
            None => format!("{eval}.json"),
        },
        text: text.to_owned(),
    }
}

fn rows(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_row_has_what_its_document_says_and_every_value_as_it_is_written() {
    let summary = summary(&[("opus", "auth", Verdict::Pass, 2)]);
    let text = "{\"eval\":\"auth\",\"passed\":true,\"experiment\":\"opus\",\"profile\":\"no-skills\",\n\
                \"transcript\":[1],\"durationMs\":1.50e3,\"product\":[ \"auth\" ],\"checks\":[],\"attempts\":2,\
                \"skills\":{\"loaded\":[\"\\u00e9: {,}\"]},\"interface\":null}";
    let published = [document("opus", "auth", None, text)];
    insta::assert_snapshot!(render(&summary, &published, None).unwrap(), @r#"
    [
      {
        "experiment": "opus",
        "experimentSuite": "no-skills",
        "eval": "auth",
        "product": [
          "auth"
        ],
        "passed": true,
        "checks": [],
        "skills": {
          "loaded": [
            "\u00e9: {,}"
          ]
        },
        "durationMs": 1.50e3,
        "attempts": 2,
        "sourcePath": "opus/auth.json"
      }
    ]
    "#);
}

#[test]
fn labels_and_the_replaced_row_say_what_the_document_does_not() {
    let mut summary = summary(&[("opus", "auth", Verdict::Fail, 1)]);
    let mut labels = Labels::default();
    for (name, value) in [
        ("experiment_suite", "benchmark"),
        ("eval_suite", "regression"),
        ("product", "auth"),
    ] {
        labels.add(name, value);
    }
    summary.pairs[0].labels = labels;
    let before = r#"[{"experiment": "opus", "eval": "auth", "passed": true, "suite": "old", "stage": "build", "usage": 1}]"#;
    let row = &rows(&render(&summary, &[], Some(before)).unwrap())[0];
    assert_eq!(
        *row,
        json!({"experiment": "opus", "experimentSuite": "benchmark", "eval": "auth", "stage": "build",
               "product": ["auth"], "suite": "regression", "passed": false, "attempts": 1})
    );
}

#[test]
fn rows_are_replaced_dropped_and_kept_by_pair() {
    let summary = summary(&[
        ("a", "replaced", Verdict::Pass, 2),
        ("a", "gave-nothing", Verdict::Error, 0),
        ("a", "cancelled", Verdict::NotRun, 0),
        ("a", "incomplete", Verdict::Error, 1),
    ]);
    let before = r#"[
  {"experiment":  "a", "eval": "untouched", "passed": true, "x": 1.0},
  {"experiment": "a", "eval": "replaced", "run": 1, "passed": false},
  {"experiment": "a", "eval": "replaced", "run": 2, "passed": false},
  {"experiment": "a", "eval_id": "gave-nothing", "passed": true},
  {"experiment": "a", "eval": "cancelled", "passed": true},
  {"experiment": "a", "eval": "incomplete", "passed": true},
  {"experiment": "b", "eval": "gave-nothing", "passed": true}
]"#;
    let published = [
        document("a", "replaced", Some(2), r#"{"passed": true, "run": 2}"#),
        document("a", "replaced", Some(1), r#"{"passed": false, "run": 9}"#),
    ];
    let merged = render(&summary, &published, Some(before)).unwrap();
    let told: Vec<String> = rows(&merged)
        .iter()
        .map(|row| {
            format!(
                "{}/{} {} {}",
                row["experiment"], row["eval"], row["run"], row["passed"]
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    "a"/"incomplete" null true
    "a"/"replaced" 1 false
    "a"/"replaced" 2 true
    "a"/"untouched" null true
    "b"/"gave-nothing" null true
    "#);
    assert!(merged.contains(r#"{"experiment":  "a", "eval": "untouched", "passed": true, "x": 1.0}"#));
    // What is there already is found there again.
    assert_eq!(render(&summary, &published, Some(&merged)).unwrap(), merged);
}

#[test]
fn names_are_sorted_as_where_the_rows_come_from() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/collation.json");
    let expected: Vec<String> = serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap();
    let mut sorted = expected.clone();
    sorted.reverse();
    let collator = collator();
    sorted.sort_by(|one, other| collator.compare(one, other));
    assert_eq!(sorted, expected);
}

#[test]
fn what_is_no_array_of_rows_is_not_merged_into() {
    let summary = summary(&[]);
    let problems: Vec<String> = [
        "{}",
        "[1]",
        "[{\"experiment\": \"a\"}]",
        "",
        "[{\"experiment\": \"a\", \"eval\": 1}]",
        "[{}",
    ]
    .iter()
    .map(|text| render(&summary, &[], Some(text)).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(problems.join("\n"), @r"
    it is no JSON array of rows
    row 1 is no object with the texts `experiment` and `eval`
    row 1 is no object with the texts `experiment` and `eval`
    it is no JSON array of rows
    row 1 is no object with the texts `experiment` and `eval`
    it is no JSON array of rows
    ");
    assert_eq!(render(&summary, &[], Some("[]")).unwrap(), "[]\n");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        r#"[a-z"\\{}\[\],: é]{0,6}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(r#"[a-z":{]{0,3}"#, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_indented_as_a_pretty_printer_does(value in any_json()) {
        for written in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let mut text = String::new();
            indent(&written, 0, &mut text);
            prop_assert_eq!(&text, &serde_json::to_string_pretty(&value).unwrap());
        }
    }

    #[test]
    fn no_text_to_merge_into_panics(text in r#"[\[\]{}":,a-e1 \\]{0,60}"#) {
        let _ = render(&summary(&[("a", "b", Verdict::Pass, 1)]), &[], Some(&text));
        let _ = render(&summary(&[]), &[document("a", "b", None, &text)], None);
    }

    /// A document of a harness may be anything, but the rows are always JSON.
    #[test]
    fn any_document_gives_rows_that_are_json(value in any_json()) {
        let summary = summary(&[("a", "b", Verdict::Pass, 1)]);
        let text = json!({"checks": value, "passed": true, "usage": value}).to_string();
        let rendered = render(&summary, &[document("a", "b", None, &text)], None).unwrap();
        prop_assert_eq!(&rows(&rendered)[0]["checks"], &value);
    }
}
