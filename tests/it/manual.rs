//! Completions and the manual: a shell completes by them, a reader of manuals reads them.

use assert_cmd::Command;

use crate::support::{ev, repository, stderr, stdout};

/// Where `.ci/run` says that bash is.
const BASH: &str = "EVALWAVE_TEST_BASH";
/// Where `.ci/run` says that mandoc is.
const MANDOC: &str = "EVALWAVE_TEST_MANDOC";

/// Completes the last of its arguments and prints what there is to choose from.
const COMPLETE: &str = r#"
source "$SCRIPT"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
$(complete -p evalwave | sed 's/.*-F \([^ ]*\).*/\1/') evalwave "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
echo "${COMPREPLY[*]}"
"#;

fn tool(variable: &str) -> Option<String> {
    let tool = std::env::var(variable).ok();
    if tool.is_none() {
        eprintln!("not run: `{variable}` does not say where the tool is; .ci/run installs it and does");
    }
    tool
}

fn commands() -> Vec<String> {
    let help = stdout(&ev(&repository(), "--help").code(0));
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let Some(bash) = tool(BASH) else { return };
    let directory = tempfile::TempDir::new().unwrap();
    let script = directory.path().join("evalwave.bash");
    fs_err::write(&script, stdout(&ev(&repository(), "completions bash").code(0))).unwrap();
    let complete = |words: &[&str]| {
        let done = Command::new(&bash)
            .args(["--norc", "-c", COMPLETE, "bash", "evalwave"])
            .args(words)
            .env("SCRIPT", &script)
            .assert()
            .success();
        stdout(&done).trim_end().to_owned()
    };
    assert_eq!(complete(&["ca"]), "calibrate");
    assert_eq!(complete(&["run", "--base"]), "--baseline");
    assert_eq!(complete(&["run", "--format", ""]), "text json");
    assert_eq!(complete(&["schema", "co"]), "config");
}

#[test]
fn every_shell_has_a_script_and_another_one_is_told_which_there_are() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&ev(&repository(), &format!("completions {shell}")).code(0));
        assert!(script.contains("parallel-attempts"), "{shell}");
    }
    let refused = stderr(&ev(&repository(), "completions csh").code(2));
    assert!(
        refused.contains("bash, elvish, fish, powershell, zsh"),
        "{refused}"
    );
}

#[test]
fn every_command_has_a_page_that_a_reader_of_manuals_reads() {
    let commands = commands();
    assert!(commands.contains(&"run".to_owned()), "{commands:?}");
    let pages = std::iter::once(String::new()).chain(commands);
    let mandoc = tool(MANDOC);
    for command in pages {
        let page = stdout(&ev(&repository(), &format!("man {command}")).code(0));
        let Some(mandoc) = &mandoc else { continue };
        let read = |arguments: &[&str]| {
            let done = Command::new(mandoc)
                .args(arguments)
                .write_stdin(page.as_bytes())
                .assert()
                .code(0);
            stdout(&done)
        };
        assert_eq!(read(&["-T", "lint", "-W", "error"]), "", "{command}");
        let text = read(&["-T", "ascii"]).replace("\u{8}", "");
        assert!(text.contains("SSYYNNOOPPSSIISS"), "{command}: {text}");
    }
    let run = stdout(&ev(&repository(), "man run").code(0));
    assert!(
        run.contains("evalwave\\-run") && run.contains("Exit codes"),
        "{run}"
    );
    let refused = stderr(&ev(&repository(), "man walk").code(2));
    assert!(
        refused.contains("no command `walk`") && refused.contains("`run`"),
        "{refused}"
    );
}
