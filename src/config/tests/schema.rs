//! The JSON Schema of `evalwave.yml` against the parser.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::wrong::wrong_cases;
use super::{FULL, LEAST, file, message};
use crate::config::settings::Given;
use crate::config::{load, schema};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/config.schema.json");

fn validator() -> &'static jsonschema::Validator {
    static VALIDATOR: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| jsonschema::validator_for(&schema()).unwrap());
    &VALIDATOR
}

fn json(text: &str) -> serde_json::Value {
    serde_yaml::from_str(text).unwrap()
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "whether to write the schema anew is asked of whoever runs the test"
)]
fn the_committed_schema_is_up_to_date() {
    let generated = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs_err::write(COMMITTED, &generated).unwrap();
    }
    let committed = fs_err::read_to_string(COMMITTED).unwrap_or_default();
    assert!(
        committed == generated,
        "run the tests with UPDATE_SCHEMA=1 and commit {COMMITTED}"
    );
}

#[test]
fn the_schema_accepts_what_the_parser_accepts() {
    for text in [LEAST, FULL] {
        assert_eq!(message(text), "no error");
        let errors: Vec<String> = validator()
            .iter_errors(&json(text))
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:#?}\n{text}");
    }
    for more in [
        "runs:",
        "policy: { mean: 0.5, complete: true }",
        "concurrency: 12",
        "fail-on: never",
        "baseline: [a, 'git:main:b']",
        "  command: [run, '']",
        "  timeout: 1h30m",
        "  exit: { pass: [0, 3], fail: [] }",
    ] {
        let text = if more.starts_with("  command") {
            LEAST.replace("  command: run", more)
        } else {
            format!("{LEAST}{more}\n")
        };
        assert_eq!(message(&text), "no error", "{more}");
        assert!(validator().is_valid(&json(&text)), "{more}");
    }
}

#[test]
fn every_format_is_accepted_by_the_schema_and_the_parser() {
    let formats = [
        "auto",
        "evals",
        "junit",
        "agent-eval",
        "inspect",
        "harbor",
        "promptfoo",
        "jsonl",
    ];
    let plain = formats.map(|format| format!("{LEAST}  result: r\n  format: {format}\n"));
    let placed = ["{ passed: /a/b~1c }", "{ score: /s, threshold: 0.5 }"]
        .map(|json| format!("{LEAST}  result: r\n  format: json\n  json: {json}\n"));
    for text in plain.into_iter().chain(placed) {
        assert_eq!(message(&text), "no error", "{text}");
        assert!(validator().is_valid(&json(&text)), "{text}");
    }
}

#[test]
fn the_schema_refuses_what_the_parser_refuses_in_a_single_value() {
    let groups = ["version", "keys", "numbers", "choices"];
    let mut accepted = String::new();
    for case in wrong_cases()
        .into_iter()
        .filter(|case| groups.contains(&case.group.as_str()))
    {
        if validator().is_valid(&json(&case.text)) {
            accepted.push_str(&format!("{}{}\n\n", case.text, case.message));
        }
    }
    assert!(accepted.is_empty(), "\n{accepted}");
}

#[test]
fn every_key_is_described() {
    fn undescribed(schema: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            if value.get("description").is_none() {
                found.push(format!("{path}.{key}"));
            }
        }
    }
    let schema = schema();
    let mut found = Vec::new();
    undescribed(&schema, "", &mut found);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        if name != "Pair" {
            undescribed(definition, name, &mut found);
        }
    }
    assert!(found.is_empty(), "{found:?}");
}

proptest! {
    #[test]
    fn no_file_is_right_for_the_parser_and_wrong_for_the_schema(
        from in 0..FULL.len(),
        length in 0..12_usize,
        with in "[a-z0-9 .%:,-]{0,4}",
    ) {
        let mut text = FULL.to_owned();
        text.replace_range(from..(from + length).min(FULL.len()), &with);
        if load(Some(&file(&text)), &Given::default()).is_ok() {
            prop_assert!(validator().is_valid(&json(&text)), "{}", text);
        }
    }
}
