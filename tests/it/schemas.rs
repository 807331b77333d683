//! The JSON Schemas: true to the code, and to what a real run writes.

use serde_json::Value;

use crate::support::{Suite, ev, json, repository};

fn committed(name: &str) -> Value {
    let text = fs_err::read_to_string(repository().join("schema").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_committed_schemas_are_what_the_binary_prints() {
    for document in ["config", "summary"] {
        let printed = ev(&repository(), &format!("schema {document}")).code(0);
        let path = repository().join(format!("schema/{document}.schema.json"));
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            fs_err::write(&path, &printed.get_output().stdout).unwrap();
        }
        let committed = fs_err::read(&path).unwrap();
        assert!(
            committed == printed.get_output().stdout,
            "write it again: UPDATE_SCHEMA=1 cargo test schema"
        );
    }
}

#[test]
fn the_summary_of_a_run_is_valid_by_its_schema() {
    let script = "[ $EVALWAVE_EVAL = lost ] && exit 9; echo '{\"passed\": true, \"usage\": {\"inputTokens\": 5}}' > result.json";
    let suite = Suite::scripted(
        "a/one a/lost",
        "result: result.json",
        "baseline: before.json\nretry: { tries: 2 }",
        script,
    );
    suite.write(
        "before.json",
        r#"[{"experiment": "a", "eval": "one", "passed": false}]"#,
    );
    let (run, summary) = suite.run("--runs 2");
    run.code(3);
    let validator = jsonschema::validator_for(&committed("summary.schema.json")).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&summary)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut broken = summary.clone();
    broken["pairs"][0]["verdict"] = "maybe".into();
    assert!(!validator.is_valid(&broken));
    assert_eq!(json(&suite.ev("report out --format json")), summary);
}
