//! GitHub's published description, trimmed (tests/openapi): holds questions and answers to it, and fills answers up to
//! the shapes that GitHub itself gives.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use serde_json::{Map, Value, json};

use super::routes::Answer;
use super::state::Exchange;

static DESCRIPTION: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../openapi/github.json")).unwrap());

/// The routes that are described, as `GET /path/{parameter}`.
pub(crate) fn routes_described() -> Vec<String> {
    routes().iter().map(name).collect()
}

/// Whether a question, and the answer to it, are as they are described; the route, or what is wrong.
pub(crate) fn described(exchange: &Exchange, prefix: &str, answer: &Answer) -> Result<String, String> {
    let line = format!("{} {}?{}", exchange.method, exchange.path, exchange.query);
    if exchange.path == format!("{}/graphql", prefix.trim_end_matches("/v3")) {
        // The other API has one route, and we have one question.
        let asks = exchange.body == json!({ "query": "query { viewer { login } }" });
        return if asks {
            Ok(line)
        } else {
            Err(format!("{line}: {}", exchange.body))
        };
    }
    let wrong = |what: String| format!("{line}: {what}");
    let path = exchange
        .path
        .strip_prefix(prefix)
        .ok_or_else(|| wrong(format!("the path does not begin with {prefix}")))?;
    let (route, parameters) = routes()
        .iter()
        .filter(|route| route["method"] == exchange.method.as_str())
        .find_map(|route| Some((route, matched(route["path"].as_str()?, path)?)))
        .ok_or_else(|| wrong("no such route".to_owned()))?;
    for (name, value) in parameters {
        valid(
            &route["parameters"]["path"][&name],
            &scalar(&route["parameters"]["path"][&name], &value),
        )
        .map_err(|error| wrong(format!("path parameter {name}: {error}")))?;
    }
    for (name, value) in pairs(&exchange.query) {
        let schema = &route["parameters"]["query"][&name];
        if schema.is_null() {
            return Err(wrong(format!("no query parameter {name}")));
        }
        valid(schema, &scalar(schema, &value)).map_err(|error| wrong(format!("{name}: {error}")))?;
    }
    match (&route["body"], &exchange.body) {
        (Value::Null, Value::Null) => {}
        (Value::Null, _) => return Err(wrong("a body where none is described".to_owned())),
        (schema, body) => valid(schema, body).map_err(|error| wrong(format!("body: {error}")))?,
    }
    let status = answer.status.to_string();
    let error = json!({ "$ref": "#/$defs/basic-error" });
    let schema = match route["responses"].get(&status) {
        Some(Value::Null) => return Ok(name(route)),
        Some(schema) => schema,
        // Not every refusal is described for every route.
        None if answer.status >= 400 => &error,
        None => return Err(wrong(format!("{status} is not described"))),
    };
    let mut body = serde_json::from_slice(&answer.body).map_err(|error| wrong(error.to_string()))?;
    mend(&mut body);
    valid(schema, &body).map_err(|error| wrong(format!("answer {status}: {error}")))?;
    Ok(name(route))
}

/// Where a fork has been deleted GitHub gives null, which its description does not tell.
fn mend(body: &mut Value) {
    match body {
        Value::Array(entries) => entries.iter_mut().for_each(mend),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match (name.as_str(), &value) {
                    ("head_repository", Value::Null) => *value = filled("minimal-repository", &json!({})),
                    ("repo", Value::Null) => *value = filled("repository", &json!({})),
                    _ => mend(value),
                }
            }
        }
        _ => {}
    }
}

/// Fills what a test has said up to a whole answer: what is required and was not said is null where it may be, else
/// the least that is allowed. What was said has to be described.
pub(super) fn filled(definition: &str, said: &Value) -> Value {
    fill(
        &json!({ "$ref": format!("#/$defs/{definition}") }),
        Some(said),
        definition,
    )
}

fn fill(schema: &Value, said: Option<&Value>, at: &str) -> Value {
    let schema = resolved(schema);
    if let Some(said) = said.filter(|said| !said.is_object() && !said.is_array()) {
        return said.clone();
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let choices = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .find_map(|key| schema[key].as_array());
    if let Some(choices) = choices.filter(|_| !schema["properties"].is_object()) {
        let nullable = choices.iter().any(|choice| choice["type"] == "null");
        return match (nullable, said) {
            (true, None) => Value::Null,
            _ => fill(&choices[0], said, at),
        };
    }
    if said.is_none() {
        if let Some(options) = schema["enum"].as_array() {
            return options.last().cloned().unwrap_or_default();
        }
        if kinds.contains(&"null") {
            return Value::Null;
        }
    }
    if let Some(items) = said.and_then(Value::as_array) {
        let items = items.iter().map(|item| fill(&schema["items"], Some(item), at));
        return items.collect();
    }
    match kinds.first() {
        Some(&"string") => match schema["format"].as_str() {
            Some("date-time") => "2026-03-01T00:00:00Z".into(),
            _ => "".into(),
        },
        Some(&"integer" | &"number") => 1.into(),
        Some(&"boolean") => false.into(),
        Some(&"array") => json!([]),
        _ => {
            let none = Map::new();
            let said = said.and_then(Value::as_object).unwrap_or(&none);
            let required = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            let names = required.chain(said.keys().map(String::as_str));
            let mut whole = Map::new();
            for name in names {
                let property = &schema["properties"][name];
                assert!(!property.is_null(), "GitHub gives no {at}.{name}");
                whole.insert(
                    name.to_owned(),
                    fill(property, said.get(name), &format!("{at}.{name}")),
                );
            }
            Value::Object(whole)
        }
    }
}

fn routes() -> &'static [Value] {
    DESCRIPTION["routes"].as_array().unwrap()
}

fn name(route: &Value) -> String {
    format!(
        "{} {}",
        route["method"].as_str().unwrap(),
        route["path"].as_str().unwrap()
    )
}

fn resolved(schema: &Value) -> &Value {
    match schema["$ref"].as_str() {
        Some(reference) => {
            let name = reference.trim_start_matches("#/$defs/");
            resolved(DESCRIPTION["$defs"].get(name).unwrap())
        }
        None => schema,
    }
}

/// The parameters of a path that is the template's.
fn matched(template: &str, path: &str) -> Option<Vec<(String, String)>> {
    let (template, path): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    if template.len() != path.len() {
        return None;
    }
    let mut parameters = Vec::new();
    for (expected, actual) in template.into_iter().zip(path) {
        match expected.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => parameters.push((name.to_owned(), decoded(actual))),
            None if expected == actual => {}
            None => return None,
        }
    }
    Some(parameters)
}

/// A query's names and values.
pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect()
}

pub(super) fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .unwrap()
        .into_owned()
}

/// Text of a path or query as the value that the schema speaks of.
fn scalar(schema: &Value, text: &str) -> Value {
    let schema = resolved(schema);
    let kinds = schema["type"].to_string() + &schema["oneOf"].to_string() + &schema["anyOf"].to_string();
    let parsed = serde_json::from_str::<Value>(text).ok();
    let fits = |value: &Value| match value {
        Value::Number(_) => kinds.contains("integer"),
        Value::Bool(_) => kinds.contains("boolean"),
        _ => false,
    };
    parsed.filter(fits).unwrap_or_else(|| text.into())
}

/// Each schema is compiled once.
fn valid(schema: &Value, value: &Value) -> Result<(), String> {
    static COMPILED: LazyLock<Mutex<HashMap<String, &'static jsonschema::Validator>>> =
        LazyLock::new(Mutex::default);
    let text = schema.to_string();
    let validator = *COMPILED.lock().unwrap().entry(text).or_insert_with_key(|text| {
        let mut whole = json!({ "allOf": [schema] });
        if text.contains("$ref") {
            whole["$defs"] = DESCRIPTION["$defs"].clone();
        }
        Box::leak(Box::new(jsonschema::draft202012::new(&whole).unwrap()))
    });
    validator
        .validate(value)
        .map_err(|error| format!("{error} at {}", error.instance_path()))
}
