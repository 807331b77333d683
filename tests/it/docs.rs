//! The documentation: its commands run, its output is real, its links lead somewhere.

use camino::{Utf8Path, Utf8PathBuf};

use crate::support::{ev, evalwave, git, quickstart, repository, stdout};

/// Documents with commands to run.
const DOCUMENTS: [&str; 5] = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/statistics.md",
    "docs/formats.md",
    "docs/presets.md",
];

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
    // What bounded a run is the slowest attempt, or a start that came late on a busy machine.
    let moving = regex::Regex::new(
        r"(?m)^Bounded by .*$|\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d)? ?s\b|\b\d+h\d+m\b|\b\d{8}-\d{6}-[0-9a-f]{8}\b|\bthis run [0-9a-f]{7}\b",
    )
    .unwrap();
    let text = moving.replace_all(text, "…");
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
        .collect()
}

/// Documents without commands for this repository.
const MORE: [&str; 8] = [
    "ARCHITECTURE.md",
    "docs/action.md",
    "docs/configuration.md",
    "docs/report.md",
    "docs/scheduling.md",
    "docs/troubleshooting.md",
    "examples/local-llm/README.md",
    GUIDES,
];

/// Guides for another repository than this one: their files are written into a copy of the quickstart, where their
/// commands run.
const GUIDES: &str = "docs/how-to.md";

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
            // What is written goes elsewhere than into this repository.
            let empty = tempfile::TempDir::new().unwrap();
            let directory = match arguments.starts_with("init") {
                true => Utf8PathBuf::try_from(empty.path().to_owned()).unwrap(),
                false => repository(),
            };
            let run = scratch.path().join("run");
            let arguments = arguments.replace("evalwave-out/latest", run.to_str().unwrap());
            if arguments.contains("--preset promptfoo") {
                fs_err::write(directory.join("promptfooconfig.yaml"), "").unwrap();
            }
            let mut command = evalwave(&directory);
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
    let (run, _) = quickstart();
    assert_eq!(steady(&shown), steady(&stdout(&run.code(0))));
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
    for document in DOCUMENTS.into_iter().chain(MORE) {
        let text = read(document);
        let directory = repository().join(document);
        for found in link.captures_iter(&text) {
            let target = directory.parent().unwrap().join(&found[1]);
            assert!(target.exists(), "{document}: {}", &found[1]);
        }
    }
}

fn copy(from: &Utf8Path, to: &Utf8Path) {
    fs_err::create_dir_all(to).unwrap();
    for entry in from.read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(entry.path(), &target);
        } else {
            fs_err::copy(entry.path(), &target).unwrap();
        }
    }
}

#[test]
fn the_guides_work_in_a_repository_of_somebody_else() {
    let scratch = tempfile::TempDir::new().unwrap();
    let root = Utf8Path::from_path(scratch.path()).unwrap();
    copy(&repository().join("examples/quickstart"), root);
    // The agent that never comes to an end shows nothing here.
    fs_err::remove_file(root.join("agents/sleepy.sh")).unwrap();
    let text = read(GUIDES);
    let files = blocks(&text, "yaml");
    let files: Vec<(&str, &String)> = files
        .iter()
        .filter_map(|block| Some((block.strip_prefix("# ")?.lines().next()?, block)))
        .collect();
    for (name, block) in &files {
        fs_err::write(root.join(name), block).unwrap();
    }
    git(root, &["init", "-q"]);
    git(root, &["add", "."]);
    git(root, &["commit", "-q", "-m", "suite"]);
    let commands = blocks(&text, "sh");
    let commands: Vec<&str> = commands.iter().flat_map(|block| block.lines()).collect();
    for line in &commands {
        let command = line.split(" #").next().unwrap();
        let words = shlex::split(command).unwrap();
        let (program, arguments) = words.split_first().unwrap();
        assert_eq!(program, "evalwave", "`{line}` is run by no test");
        let done = evalwave(root).args(arguments).assert().code(0);
        assert_ne!(stdout(&done), "", "{line}");
    }
    for (name, _) in files {
        let named = commands.iter().any(|command| command.contains(name));
        assert!(named, "`{name}` is used by no command");
    }
}

#[test]
fn every_message_of_the_troubleshooting_is_in_the_source() {
    let source: String = sources(&repository().join("src"))
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    // As the messages are printed: strings that go on in the next line in one, what is escaped as it is.
    let joined = regex::Regex::new(r"\\\n\s*").unwrap().replace_all(&source, "");
    let source = joined.replace("{{", "{").replace("}}", "}").replace("\\n", "\n");
    let messages = blocks(&read("docs/troubleshooting.md"), "text");
    assert!(messages.len() > 20, "{}", messages.len());
    for message in &messages {
        let parts = message.trim_end().split('…').map(regex::escape);
        // What differs is a placeholder there, or the end of one string and the start of another.
        let pattern = parts.collect::<Vec<_>>().join("(?s:.{0,160}?)");
        let found = regex::Regex::new(&pattern).unwrap().is_match(&source);
        assert!(found, "no message of evalwave: {message}");
    }
}

/// Everything that the program is made of, its unit tests left out.
fn sources(directory: &Utf8Path) -> String {
    let mut text = String::new();
    for entry in directory.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        let name = path.file_name().unwrap();
        if path.is_dir() && name != "tests" {
            text += &sources(&path);
        } else if path.extension() == Some("rs") && !name.ends_with("tests.rs") {
            let file = fs_err::read_to_string(&path).unwrap();
            text += file.split("#[cfg(test)]").next().unwrap();
        }
    }
    text
}

#[test]
fn the_suite_with_a_real_model_is_planned() {
    let planned = ev(&repository(), "plan -c examples/local-llm/evalwave.yml").code(0);
    let planned = stdout(&planned);
    assert!(
        planned.contains("12 pairs") && planned.contains("36"),
        "{planned}"
    );
}
