//! The documentation: its commands run, its output is real, its links lead somewhere.

use crate::support::{ev, evalwave, repository, stdout};

/// Documents with commands to run.
const DOCUMENTS: [&str; 3] = ["README.md", "CONTRIBUTING.md", "docs/statistics.md"];

fn read(name: &str) -> String {
    fs_err::read_to_string(repository().join(name)).unwrap()
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// Output with what changes from run to run made the same.
fn steady(text: &str) -> String {
    let moving =
        regex::Regex::new(r"\b\d+(?:\.\d)? ?s\b|\b\d{8}-\d{6}-[0-9a-f]{8}\b|\bthis run [0-9a-f]{7}\b")
            .unwrap();
    let text = moving.replace_all(text, "…");
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
        .collect()
}

/// Every command of these documents, with how it is run here. A command that is in none of these is not tested.
#[test]
fn every_command_in_the_documents_is_known_to_a_test() {
    for document in DOCUMENTS {
        let text = read(document);
        for line in blocks(&text, "sh").iter().flat_map(|block| block.lines()) {
            let command = line.split(" #").next().unwrap().trim();
            let tested = match command {
                // The whole of CI, and the tests themselves.
                "" | "cargo test" | ".ci/run" => true,
                _ => command.starts_with("cargo run --release -- "),
            };
            assert!(tested, "{document}: `{command}` is run by no test");
        }
    }
}

#[test]
fn the_evalwave_commands_of_the_documents_do_what_they_say() {
    let scratch = tempfile::TempDir::new().unwrap();
    for document in DOCUMENTS {
        let text = read(document);
        let commands = blocks(&text, "sh");
        let commands = commands.iter().flat_map(|block| block.lines());
        for line in commands.filter_map(|line| line.strip_prefix("cargo run --release -- ")) {
            let arguments = line.split(" #").next().unwrap().trim();
            let mut command = evalwave(&repository());
            command.args(arguments.split_whitespace());
            if arguments.starts_with("run ") {
                command
                    .arg("-o")
                    .arg(scratch.path().join("run"))
                    .arg("--overwrite");
            }
            command.assert().code(0);
        }
    }
}

#[test]
fn the_output_that_the_readme_shows_is_what_the_quickstart_prints() {
    let readme = read("README.md");
    let shown = blocks(&readme, "text")
        .into_iter()
        .next()
        .expect("README shows the main job's output");
    let scratch = tempfile::TempDir::new().unwrap();
    let run = evalwave(&repository())
        .args(["run", "-c", "examples/quickstart/evalwave.yml", "-o"])
        .arg(scratch.path().join("run"))
        .assert()
        .code(0);
    assert_eq!(steady(&shown), steady(&stdout(&run)));
}

#[test]
fn the_example_of_the_statistics_is_what_compare_says() {
    let shown = blocks(&read("docs/statistics.md"), "text")
        .into_iter()
        .next()
        .unwrap();
    let arguments = "compare --baseline tests/fixtures/before.json --current tests/fixtures/after.json";
    let printed = stdout(&ev(&repository(), arguments).code(0));
    let (head, _) = printed.split_once("\n\n").unwrap();
    assert_eq!(shown.trim_end(), head);
}

#[test]
fn every_relative_link_leads_to_a_file() {
    let link = regex::Regex::new(r"\]\(([^)#:]+)(#[^)]*)?\)").unwrap();
    let more = ["ARCHITECTURE.md", "docs/action.md", "docs/scheduling.md"];
    for document in DOCUMENTS.into_iter().chain(more) {
        let text = read(document);
        let directory = repository().join(document);
        for found in link.captures_iter(&text) {
            let target = directory.parent().unwrap().join(&found[1]);
            assert!(target.exists(), "{document}: {}", &found[1]);
        }
    }
}
