//! Every wrong file gives one message, and no bytes panic.

use proptest::prelude::*;

use super::{FULL, LEAST, file, message, read};
use crate::config::settings::Given;
use crate::config::{Source, load};

/// One case of `wrong.txt`: the whole file, and the whole message.
pub(super) struct Wrong {
    pub(super) group: String,
    pub(super) text: String,
    pub(super) message: String,
}

pub(super) fn wrong_cases() -> Vec<Wrong> {
    let mut group = String::new();
    let mut cases: Vec<Wrong> = Vec::new();
    let mut indent = "";
    for line in include_str!("wrong.txt").lines().skip(1) {
        if let Some(name) = line.strip_prefix("==== ") {
            name.clone_into(&mut group);
        } else if let Some(kind) = line.strip_prefix("## ") {
            let (before, inner) = match kind {
                "file" => ("", ""),
                "top" => (LEAST, ""),
                "attempt" => (LEAST, "  "),
                "suite" => ("version: 1\nattempt:\n  command: run\nsuite:\n", "  "),
                other => panic!("no kind of case: {other}"),
            };
            indent = inner;
            cases.push(Wrong {
                group: group.clone(),
                text: before.to_owned(),
                message: String::new(),
            });
        } else if let Some(case) = cases.last_mut() {
            if let Some(said) = line.strip_prefix("> ") {
                let separator = if case.message.is_empty() { "" } else { "\n" };
                case.message.push_str(&format!("{separator}{said}"));
            } else if !line.is_empty() {
                case.text.push_str(&format!("{indent}{line}\n"));
            }
        }
    }
    cases
}

#[test]
fn every_wrong_file_gives_its_one_message() {
    let cases = wrong_cases();
    assert!(cases.len() > 200, "only {} cases were read", cases.len());
    let mut differ = String::new();
    for case in cases {
        let said = message(&case.text);
        if said != case.message {
            differ.push_str(&format!(
                "{}\nexpected: {}\nsaid:     {said}\n\n",
                case.text, case.message
            ));
        }
    }
    assert!(differ.is_empty(), "\n{differ}");
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_are() {
    let refused = |bytes: &[u8]| {
        let source = Source { name: "a.yml", bytes };
        load(Some(&source), &Given::default()).unwrap_err().to_string()
    };
    assert_eq!(
        refused(b"version: 1\nna\xC3\xA4me: \xFF"),
        "a.yml:2:8: expected UTF-8, found the byte 0xFF"
    );
    assert_eq!(
        refused(b"\xFE\xFF\0v"),
        "a.yml:1:1: expected UTF-8, found the byte 0xFE"
    );
    assert_eq!(
        refused(b"version: 1\nsuite: \x07"),
        "a.yml:2:8: expected text, found the control character U+0007"
    );
    assert_eq!(
        refused(b""),
        "a.yml:1:1: expected a mapping with `version`, `suite` and `attempt`, found an empty file"
    );
}

#[test]
fn hostile_names_cannot_write_to_the_terminal() {
    assert_eq!(
        message(&format!("{LEAST}\"a\\e[31m\\n\": 1\n")).lines().next(),
        Some("evalwave.yml:6:1: `a\\u{1b}[31m\\n`: unknown key, the nearest known one is `attempt`")
    );
    let long = "x".repeat(1_000);
    assert_eq!(
        message(&format!("{LEAST}runs: {long}\n")),
        format!(
            "evalwave.yml:6:7: `runs`: expected a whole number from 1 to 1000, found `{}…`",
            "x".repeat(60)
        )
    );
}

#[test]
fn aliases_are_followed_but_not_into_the_millions() {
    let config = read(&format!(
        "{LEAST}  infra:\n    exit: &codes [75, 76]\n  exit:\n    fail: *codes\n"
    ));
    assert_eq!(config.attempt.exit.fail, [75, 76]);

    let mut bomb = "version: 1\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let said = message(&bomb);
    assert!(
        said.contains("the aliases make it too large\nwrite the values out"),
        "{said}"
    );

    assert!(message(&format!("{LEAST}runs: &a [*a, *a]\n")).starts_with("evalwave.yml:"));

    let env = |more: &str| message(&format!("{LEAST}  env: {{ A: &v \"1\", B: &v \"2\", {more} }}\n"));
    assert_eq!(
        env("C: &w \"3\", D: *v"),
        "evalwave.yml:6:24: the anchor `&v` is there twice, and which of them `*v` is cannot be told\ngive each anchor a name of its own"
    );
    assert_eq!(env("C: &w \"3\", D: *w"), "no error");
    // What only looks like them is none.
    let script = "  setup: |\n    f &v; f &v 2>&1; ls *v *.v && f \"&v\" '*v'\n  # &v &v *v\n";
    let config = read(&format!(
        "{LEAST}{script}  env: {{ A: &v \"1\", D: *v, C: \"&v *v\" }}\n"
    ));
    let value = |name: &str| config.attempt.env[name].source().to_owned();
    assert_eq!([value("A"), value("D"), value("C")], ["1", "1", "&v *v"]);
    for (depth, column) in [(200, 129), (100_000, 501)] {
        let said = message(&"[".repeat(depth));
        assert!(said.starts_with(&format!("evalwave.yml:1:{column}: ")), "{said}");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = load(Some(&Source { name: "a", bytes: &bytes }), &Given::default());
    }

    #[test]
    fn no_damage_to_a_file_panics(from in 0..FULL.len(), length in 0..40_usize, with in "[\\PC\n\t \"'{}\\[\\]:,&*!|>%-]{0,12}") {
        let mut bytes = FULL.as_bytes().to_vec();
        let to = (from + length).min(bytes.len());
        bytes.splice(from..to, with.bytes());
        let _ = load(Some(&Source { name: "a", bytes: &bytes }), &Given::default());
    }

    #[test]
    fn every_error_about_a_file_says_its_line(from in 0..FULL.len(), with in "[a-z0-9 {}\\[\\]:,-]{0,6}") {
        let mut text = FULL.to_owned();
        text.insert_str(from, &with);
        if let Err(error) = load(Some(&file(&text)), &Given::default()) {
            let said = error.to_string();
            let placed = said.starts_with("evalwave.yml:") || said.contains("(evalwave.yml:");
            prop_assert!(placed, "{}", said);
        }
    }
}
