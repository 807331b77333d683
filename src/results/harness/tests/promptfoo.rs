//! Which experiments, evals and attempts the rows of promptfoo's output are.

use super::only;
use crate::config::Format;
use crate::model::ReadingVerdict;
use crate::results::harness::rows;

/// Each row of an output: provider, number of its prompt among all providers', the prompt's label, what else it has.
fn named(answers: &[(&str, u32, &str, &str)]) -> String {
    let answers: Vec<String> = answers
        .iter()
        .map(|(provider, prompt, label, more)| {
            format!(
                r#"{{"success": true, "provider": {{"id": "{provider}"}}, "promptIdx": {prompt}, "prompt": {{"label": "{label}"}}, {more}}}"#
            )
        })
        .collect();
    let output = format!(r#"{{"results": {{"results": [{}]}}}}"#, answers.join(", "));
    let rows = rows(output.as_bytes()).unwrap().unwrap();
    let told = rows
        .iter()
        .map(|row| format!("{} × {} run {}", row.experiment, row.eval, row.run));
    told.collect::<Vec<_>>().join("\n")
}

const SUMS: &str = r#""testCase": {"description": "sums"}, "vars": {"n": 1}"#;

#[test]
fn one_prompt_for_several_providers_is_one_prompt() {
    insta::assert_snapshot!(named(&[("a", 0, "p", SUMS), ("b", 1, "p", SUMS)]), @r"
    a × sums run 1
    b × sums run 1
    ");
}

#[test]
fn several_prompts_of_a_provider_are_told_apart() {
    insta::assert_snapshot!(
        named(&[("a", 0, "p", SUMS), ("a", 1, "q", SUMS), ("b", 2, "p", SUMS), ("b", 3, "q", SUMS)]),
        @r"
    a · p × sums run 1
    a · q × sums run 1
    b · p × sums run 1
    b · q × sums run 1
    "
    );
    // Without names of their own they are numbered as their provider has them.
    insta::assert_snapshot!(
        named(&[("a", 0, "", SUMS), ("a", 1, "", SUMS), ("b", 2, "p", SUMS), ("b", 3, "p", SUMS)]),
        @r"
    a · prompt 1 × sums run 1
    a · prompt 2 × sums run 1
    b · prompt 1 × sums run 1
    b · prompt 2 × sums run 1
    "
    );
}

#[test]
fn tests_of_one_description_are_told_apart_by_their_variables() {
    let other = r#""testCase": {"description": "sums"}, "vars": {"n": 2}"#;
    let words = r#""testCase": {"description": "words"}, "vars": {"n": 1}"#;
    insta::assert_snapshot!(
        named(&[("a", 0, "p", SUMS), ("a", 0, "p", other), ("a", 0, "p", words), ("b", 1, "p", SUMS)]),
        @r#"
    a × sums {"n":1} run 1
    a × sums {"n":2} run 1
    a × words run 1
    b × sums run 1
    "#
    );
}

#[test]
fn tests_that_differ_only_in_what_they_assert_are_no_repetitions() {
    let test = |at: u32, asserted: &str| {
        format!(
            r#""testIdx": {at}, "testCase": {{"assert": [{{"type": "contains", "value": "{asserted}"}}]}}, "vars": {{}}"#
        )
    };
    // Rows are written as they end; the tests keep their numbers.
    let [first, again, second, twice] = [test(0, "A"), test(1, "A"), test(2, "B"), test(3, "B")];
    let told = named(&[
        ("a", 0, "p", &second),
        ("a", 0, "p", &first),
        ("a", 0, "p", &again),
        ("a", 0, "p", &twice),
    ]);
    insta::assert_snapshot!(told, @r"
    a × {} · test 2 run 1
    a × {} · test 1 run 1
    a × {} · test 1 run 2
    a × {} · test 2 run 2
    ");
    let described = |asserted: &str| {
        format!(
            r#""testCase": {{"description": "words", "assert": [{{"type": "equals", "value": "{asserted}"}}]}}, "vars": {{"n": 1}}"#
        )
    };
    insta::assert_snapshot!(named(&[("a", 0, "p", &described("A")), ("a", 0, "p", &described("B"))]), @r"
    a × words · test 1 run 1
    a × words · test 2 run 1
    ");
    let row = |passed: bool, test: &str| format!(r#"{{"success": {passed}, {test}}}"#);
    let output = format!(
        r#"{{"results": {{"results": [{}, {}]}}}}"#,
        row(true, &first),
        row(false, &second)
    );
    assert_eq!(
        only(&Format::Promptfoo, output.as_bytes()).verdict,
        ReadingVerdict::Failed
    );
}

#[test]
fn repetitions_that_were_broken_off_keep_their_numbers() {
    let words = r#""testCase": {"description": "words"}"#;
    insta::assert_snapshot!(named(&[("a", 0, "p", SUMS), ("a", 0, "p", words), ("a", 0, "p", SUMS)]), @r"
    a × sums run 1
    a × words run 1
    a × sums run 2
    ");
}
