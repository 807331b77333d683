//! `action.yml`, `core/action.yml`, the flags and the documents, held to the one table of settings.

use std::collections::BTreeSet;

use evalwave::config::settings::{SETTINGS, input_variable};
use serde_json::Value;

use crate::support::{ev, repository, stdout};

fn yaml(path: &str) -> Value {
    serde_yaml::from_str(&read(path)).unwrap()
}

fn read(path: &str) -> String {
    fs_err::read_to_string(repository().join(path)).unwrap()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn table() -> BTreeSet<&'static str> {
    SETTINGS.iter().filter_map(|setting| setting.input).collect()
}

#[test]
fn the_inputs_are_those_of_the_table_and_each_is_handed_over() {
    let action = yaml("action.yml");
    assert_eq!(keys(&action["inputs"]), table());
    let mut handed = BTreeSet::new();
    for step in action["runs"]["steps"].as_array().unwrap() {
        for (variable, value) in step.get("env").and_then(Value::as_object).into_iter().flatten() {
            if let Some(input) = value.as_str().unwrap().strip_prefix("${{ inputs.") {
                let input = input.strip_suffix(" }}").unwrap();
                assert_eq!(*variable, input_variable(input), "`{input}`");
                handed.insert(input.to_owned());
            }
        }
        // What stands in a script would be run: an input is only ever a variable.
        let script = step.get("run").and_then(Value::as_str).unwrap_or_default();
        assert!(!script.contains("${{"), "{script}");
        assert!(script.is_empty() || script.starts_with("exec "), "{script}");
        assert_eq!(step.get("shell").is_some(), step.get("run").is_some());
    }
    // That one is for the upload alone.
    handed.insert("retention-days".to_owned());
    assert_eq!(
        handed.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        table()
    );
}

#[test]
fn the_step_that_cleans_up_knows_how_the_sandboxes_were_made() {
    let action = yaml("action.yml");
    let steps = action["runs"]["steps"].as_array().unwrap();
    let run = |step: &Value| step["run"].as_str().unwrap_or_default().to_owned();
    let step = steps.iter().find(|step| run(step).contains(" cleanup ")).unwrap();
    for input in ["config", "sandbox", "github-token"] {
        assert_eq!(
            step["env"][input_variable(input)],
            format!("${{{{ inputs.{input} }}}}")
        );
    }
}

#[test]
fn every_use_is_pinned_to_a_commit() {
    let action = yaml("action.yml");
    let steps = action["runs"]["steps"].as_array().unwrap();
    let uses: Vec<&str> = steps.iter().filter_map(|step| step["uses"].as_str()).collect();
    assert_eq!(uses.len(), 2);
    for name in uses {
        let (_, commit) = name.split_once('@').unwrap();
        assert!(
            commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{name}"
        );
    }
}

#[test]
fn the_core_is_the_action_without_its_uploads() {
    let mut action = yaml("action.yml");
    let mut core = yaml("core/action.yml");
    let steps = action["runs"]["steps"].as_array_mut().unwrap();
    steps.retain(|step| step.get("uses").is_none());
    let text = core["runs"]["steps"]
        .to_string()
        .replace("/../scripts", "/scripts");
    assert_eq!(text, action["runs"]["steps"].to_string());
    action["inputs"].as_object_mut().unwrap().remove("retention-days");
    assert_eq!(action["inputs"], core["inputs"]);
    let artifact = core["outputs"].as_object_mut().unwrap().remove("artifact");
    assert!(artifact.is_some(), "whoever uploads by hand needs its name");
    assert_eq!(action["outputs"], core["outputs"]);
}

#[test]
fn the_outputs_are_those_of_the_step() {
    let action = yaml("action.yml");
    let outputs = action["outputs"].as_object().unwrap();
    assert_eq!(outputs.len(), 18);
    for (name, output) in outputs {
        assert_eq!(output["value"], format!("${{{{ steps.run.outputs.{name} }}}}"));
    }
}

#[test]
fn the_flags_of_the_table_are_flags() {
    let mut help = String::new();
    for command in ["run", "compare"] {
        help += &stdout(&ev(&repository(), &format!("{command} --help")).code(0));
    }
    for flag in SETTINGS.iter().filter_map(|setting| setting.flag) {
        let is_there = help.contains(&format!("{flag} ")) || help.contains(&format!("{flag}["));
        assert!(is_there, "{flag}");
    }
}

#[test]
fn the_document_of_the_action_has_every_row_of_the_table_and_every_output() {
    let document = read("docs/action.md");
    for setting in SETTINGS.iter().filter(|setting| setting.input.is_some()) {
        let cell = |name: Option<&str>| name.map_or_else(|| "—".to_owned(), |name| format!("`{name}`"));
        let row = format!(
            "| {} | {} | {} | {} |",
            cell(setting.input),
            cell(setting.flag),
            cell(setting.variable),
            cell(setting.key)
        );
        assert!(document.contains(&row), "docs/action.md lacks this row:\n{row}");
    }
    for output in keys(&yaml("action.yml")["outputs"]) {
        assert!(
            document.contains(&format!("`{output}`")),
            "docs/action.md lacks `{output}`"
        );
    }
}

#[test]
fn the_readme_shows_the_workflow_that_is_tested() {
    let readme = read("README.md");
    let workflow = read("examples/workflows/evals.yml");
    assert!(
        readme.contains(&format!("```yaml\n{workflow}```")),
        "README.md shows another workflow"
    );
    let comment = read("examples/workflows/comment.yml");
    assert!(read("docs/action.md").contains(&format!("```yaml\n{comment}```")));
}
