//! The reference of `evalwave.yml`: generated from its JSON Schema, and equal to it.

use serde_json::{Map, Value};

use crate::support::{ev, json, repository};

const DOCUMENT: &str = "docs/configuration.md";

const HEAD: &str = "\
# Configuration

Every key of `evalwave.yml`, from `evalwave schema config`. An unknown key is an error that names the nearest known one.
`evalwave plan` reads the file, says what is wrong with it, and shows what would run.

Durations are written like `90s`, `12m` or `1h30m`; sizes like `200MB`; shares like `20%`. Paths are relative to the
file's directory, for `.github/evalwave.yml` to the repository's root. A key without a value counts as not written; a
name of your own (of a variable in `env`, of a label) needs one.

A flag wins over an input of the action, that over a variable (`EVAL_RUNS`, …), that over this file.
[action.md](action.md) has the inputs; `evalwave run --help` has the flags.

<!-- Generated: UPDATE_DOCS=1 cargo test configuration -->
";

/// What a schema does not say, by key.
const NOTES: [(&str, &str); 2] = [
    (
        "attempt",
        "\
Placeholders in commands, paths and `env`: `{experiment}`, `{eval}`, `{attempt}`, `{runs}`, `{timeout_sec}`, and each
label by its name; `{{` is a brace. In a command that is text they are inserted shell-quoted, in a list as they are; where
no quotes are sure to do, as within backticks, a value that needs them is an error. The same values are in the
environment: `EVALWAVE_EXPERIMENT`, `EVALWAVE_EVAL`, `EVALWAVE_ATTEMPT`, `EVALWAVE_TRY`.
",
    ),
    (
        "fail-on",
        "\
| finding | the run fails if |
| --- | --- |
| `incomplete` | a pair has no result, for reasons that are not the agent's (exit code 3) |
| `regression` | a pair flipped PASS→FAIL that is not known to be flaky, and with `confirm` did so again or got no fresh verdict |
| `significant` | pairs pass less often than in the baseline, and that is more than noise |
| `error` | an attempt errored for good, all its tries used |
| `drop:5pp` | the pass rate is more than so many points under the baseline's |
| `below:80%` | the pass rate is under it |
| `not-proven:5pp` | a drop of so many points is not ruled out, with 95 % confidence |
| `no-baseline` | there is nothing to compare with |
| `inconclusive` | the comparison is too small to tell |
| `never` | never: it stands alone |

Each but `incomplete` gives exit code 1. [statistics.md](statistics.md) tells how they are reckoned.
",
    ),
];

/// A reference as its target.
fn target<'a>(schema: &'a Value, value: &'a Value) -> (Option<&'a str>, &'a Value) {
    match value["$ref"].as_str() {
        Some(reference) => {
            let name = reference.trim_start_matches("#/$defs/");
            (Some(name), &schema["$defs"][name])
        }
        None => (None, value),
    }
}

/// The forms that a value may have, `null` aside.
fn forms<'a>(schema: &'a Value, value: &'a Value) -> Vec<(Option<&'a str>, &'a Value)> {
    let (name, value) = target(schema, value);
    match value["anyOf"].as_array().or(value["oneOf"].as_array()) {
        Some(alternatives) => alternatives
            .iter()
            .filter(|form| form["type"] != "null")
            .flat_map(|form| forms(schema, form))
            .collect(),
        None => vec![(name, value)],
    }
}

/// What the values of a map may be, where its keys are anybody's.
fn map_values(form: &Value) -> Option<&Value> {
    let by_pattern = form["patternProperties"]
        .as_object()
        .and_then(|by| by.values().next());
    let known = form["properties"].is_object();
    by_pattern.or(Some(&form["additionalProperties"]).filter(|values| values.is_object() && !known))
}

/// What may be written, in words.
fn written(schema: &Value, value: &Value) -> String {
    let mut words = Vec::new();
    for (_, form) in forms(schema, value) {
        let word = one(schema, form);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" or ")
}

fn one(schema: &Value, form: &Value) -> String {
    let code = |value: &Value| format!("`{}`", value.as_str().map_or(value.to_string(), str::to_owned));
    if !form["const"].is_null() {
        return code(&form["const"]);
    }
    if let Some(values) = form["enum"].as_array() {
        let values = values.iter().filter(|value| !value.is_null());
        return values.map(code).collect::<Vec<_>>().join(", ");
    }
    if *form == Value::Object(Map::new()) {
        return "anything".to_owned();
    }
    let types = match &form["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect::<Vec<_>>(),
    };
    let words = types
        .iter()
        .filter(|kind| **kind != "null")
        .map(|kind| match *kind {
            "integer" => match (form["minimum"].as_u64(), form["maximum"].as_u64()) {
                (Some(least), Some(most)) if least == most => format!("`{least}`"),
                (Some(least), Some(most)) => format!("{least} to {most}"),
                _ => "integer".to_owned(),
            },
            "array" => {
                let items = written(schema, &form["items"]);
                match items.contains(" or ") {
                    true => format!("list of ({items})"),
                    false => format!("list of {items}"),
                }
            }
            "string" => "text".to_owned(),
            "boolean" => "`true`, `false`".to_owned(),
            "object" => match map_values(form) {
                Some(values) => format!("map of names to {}", written(schema, values)),
                None => "keys".to_owned(),
            },
            other => other.to_owned(),
        });
    words.collect::<Vec<_>>().join(" or ")
}

/// The description, and what it says of the default.
fn meaning(schema: &Value, value: &Value) -> (String, String) {
    let own = value["description"].as_str();
    let description = own.or(target(schema, value).1["description"].as_str()).unwrap();
    let (text, default) = match description.split_once(" Default: ") {
        Some((text, default)) => {
            // Whatever follows the default's own sentence belongs to the meaning.
            let (default, rest) = default.split_once(". ").unwrap_or((default, ""));
            let default = default.trim_end_matches('.');
            (
                format!("{text} {rest}").trim().to_owned(),
                default.replace('\n', " "),
            )
        }
        None => (description.to_owned(), String::new()),
    };
    (text.replace('\n', " ").replace('|', "\\|"), default)
}

/// What sets a form apart from others: the value of its `kind`.
fn kind(schema: &Value, form: &Value) -> Option<String> {
    let (_, kind) = forms(schema, &form["properties"]["kind"]).into_iter().next()?;
    let value = kind["const"]
        .as_str()
        .or(kind["enum"].get(0).and_then(Value::as_str));
    value.map(str::to_owned)
}

/// Rows for the keys of an object, those of objects below it too.
fn rows(schema: &Value, path: &str, object: &Value, rows: &mut Vec<String>) {
    let none = Map::new();
    let required: Vec<&str> = object["required"]
        .as_array()
        .map_or(Vec::new(), |keys| keys.iter().filter_map(Value::as_str).collect());
    for (key, value) in object["properties"].as_object().unwrap_or(&none) {
        let path = match path {
            "" => key.clone(),
            path => format!("{path}.{key}"),
        };
        let (text, default) = meaning(schema, value);
        let words = written(schema, value).replace('|', "\\|");
        let default = match (default.as_str(), required.contains(&key.as_str())) {
            ("", true) => "required",
            // Its keys have defaults of their own.
            ("", _) if words == "keys" => "see below",
            ("", _) => "none",
            (default, _) => default,
        };
        rows.push(format!("| `{path}` | {words} | {default} | {text} |"));
        below(schema, &path, value, rows);
    }
}

/// Whether an object's keys are ours, and so have a meaning each: those of a pair are labels.
fn is_explained(form: &Value) -> bool {
    let keys = form["properties"].as_object();
    keys.is_some_and(|keys| {
        keys.values()
            .all(|key| key["$ref"].is_string() || key["description"].is_string())
    })
}

/// The keys of the objects that a value may be, or hold as a list.
fn below(schema: &Value, path: &str, value: &Value, found: &mut Vec<String>) {
    for (_, form) in forms(schema, value) {
        if is_explained(form) && kind(schema, form).is_none() {
            rows(schema, path, form, found);
        }
        if form["items"].is_object() {
            below(schema, &format!("{path}[]"), &form["items"], found);
        }
        if form["additionalProperties"].is_object() {
            below(
                schema,
                &format!("{path}.<name>"),
                &form["additionalProperties"],
                found,
            );
        }
    }
}

fn reference(schema: &Value) -> String {
    let mut text = HEAD.to_owned();
    let required = schema["required"].as_array().unwrap();
    for (key, value) in schema["properties"].as_object().unwrap() {
        let mut object = Map::new();
        object.insert(key.clone(), value.clone());
        let top = serde_json::json!({ "properties": object, "required": required });
        let mut lines = Vec::new();
        rows(schema, "", &top, &mut lines);
        text += &format!("\n## {key}\n\n{}", table(&lines));
        for (_, form) in forms(schema, value) {
            if let Some(kind) = kind(schema, form) {
                let mut lines = Vec::new();
                rows(schema, key, form, &mut lines);
                text += &format!("\n### {key}.kind: {kind}\n\n{}", table(&lines));
            }
        }
        if let Some((_, note)) = NOTES.iter().find(|(of, _)| of == key) {
            text += &format!("\n{note}");
        }
    }
    text
}

fn table(lines: &[String]) -> String {
    let rows = lines.iter().map(|line| format!("{line}\n"));
    format!(
        "| key | type | default | meaning |\n| --- | --- | --- | --- |\n{}",
        rows.collect::<String>()
    )
}

#[test]
fn the_reference_of_the_configuration_is_what_the_schema_says() {
    let schema = json(&ev(&repository(), "schema config").code(0));
    let expected = reference(&schema);
    let path = repository().join(DOCUMENT);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs_err::write(&path, &expected).unwrap();
    }
    assert!(
        fs_err::read_to_string(&path).unwrap_or_default() == expected,
        "write it again: UPDATE_DOCS=1 cargo test configuration"
    );
}

/// Each key of the schema has its row, with a meaning.
#[test]
fn every_key_that_the_schema_knows_is_explained() {
    let schema = json(&ev(&repository(), "schema config").code(0));
    let text = reference(&schema);
    let definitions = schema["$defs"].as_object().unwrap().values();
    for definition in definitions.filter(|definition| is_explained(definition)) {
        for key in definition["properties"]
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
        {
            let row = text.lines().find(|line| {
                let path = line.strip_prefix("| `").and_then(|rest| rest.split('`').next());
                path.is_some_and(|path| path.rsplit(['.', ']']).next() == Some(key))
            });
            let row = row.unwrap_or_else(|| panic!("no row for `{key}`"));
            assert!(!row.contains("|  |"), "{row}");
            assert!(!row.contains("| `true`, `false` | none |"), "{row}");
        }
    }
}
