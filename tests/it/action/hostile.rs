//! Names, errors and output that try to be more than text: table, comment, summary and log stay what they are. The
//! Markdown is parsed by cmark-gfm, GitHub's own, not looked at.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{Step, Workflow, measured};
use crate::support::Suite;

/// Where `.ci/run` says that cmark-gfm is.
const CMARK: &str = "EVALWAVE_TEST_CMARK_GFM";

const HOSTILE: [&str; 20] = [
    "a | b | c |",
    "line\n| --- |\r\n\r\n# heading",
    "`code` ``more`` ```sh",
    "<!-- evalwave suite=all --> --> <!--",
    "[a link](https://example.com) <https://example.com> https://example.com",
    "![an image](https://example.com/x.png)",
    "@octocat and @octo/team",
    "#123 octo/evals#123 GH-123",
    "::error::owned",
    "##[add-mask]owned ##[error]owned",
    "\u{1b}[31mred\u{1b}[0m \u{1b}]8;;https://example.com\u{7}link\u{1b}]8;;\u{7}",
    "\u{202e}gnp.exe \u{2066}isolated\u{2069}",
    "zero\u{200b}width\u{feff}joiner\u{200d}",
    "</code></td></table></details><script>alert(1)</script>",
    "<details open><summary>mine</summary>",
    "**bold** _it_ ~~gone~~ - [x] done",
    "&lt;b&gt; &#x3c;img src=x&#x3e; &amp;",
    "\\| \\` \\< \\",
    "$(touch owned) `touch owned` ; touch owned",
    "%0A::add-mask::owned%0D::endgroup::",
];

/// A suite of one pair for each text, which is its eval's name, its error, a failed check and its output.
fn suite(texts: &[String]) -> Suite {
    let suite = Suite::new(
        "version: 1\nsuite: { name: all, pairs: pairs.json }\nattempt:\n  command: sh attempt.sh\n  result: result.json\nbaseline: before.json\nretry: { tries: 1 }\n",
    );
    // A name is one line without control characters; the texts as they are come as errors and output.
    let name = |text: &String| {
        text.chars()
            .filter(|character| !character.is_control())
            .collect::<String>()
    };
    let pairs: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| json!({ "experiment": "agent", "eval": name(text), "n": at.to_string() }))
        .collect();
    suite.write("pairs.json", &json!(pairs).to_string());
    let before: Vec<_> = texts
        .iter()
        .map(|text| json!({ "experiment": "agent", "eval": name(text), "passed": true }))
        .collect();
    suite.write("before.json", &json!(before).to_string());
    for (at, text) in texts.iter().enumerate() {
        let result = json!({ "passed": false, "error": text, "checks": [{ "name": text, "passed": false }] });
        // Every fifth pair has no result at all, only output.
        let result = if at % 5 == 4 {
            String::new()
        } else {
            result.to_string()
        };
        suite.write(&format!("given/{at}.json"), &result);
        suite.write(&format!("given/{at}.txt"), &format!("{text}\n  {text}\n"));
    }
    suite.write(
        "attempt.sh",
        "cat given/$EVALWAVE_N.txt; cat given/$EVALWAVE_N.txt >&2; cp given/$EVALWAVE_N.json result.json",
    );
    suite
}

/// The run of a suite of these texts, and its comment.
fn run(texts: &[String]) -> (Step, String) {
    let workflow = Workflow::new(suite(texts), measured());
    let step = workflow.run();
    let comments = workflow.comments();
    assert_eq!(comments.len(), 1, "{}", step.log);
    assert_eq!(step.code, 3, "{}", step.log);
    (step, comments.into_iter().next().unwrap())
}

fn hostile() -> (Step, String) {
    run(&HOSTILE.map(str::to_owned))
}

#[test]
fn nothing_in_the_log_commands_the_runner_or_a_terminal() {
    let (step, _) = hostile();
    let ours = [
        "::group::",
        "::endgroup::",
        "::error title=",
        "::notice title=",
        "::add-mask::ghs_",
    ];
    for line in step.log.lines() {
        let shown = line.trim_start();
        assert!(!line.contains("##["), "{line:?}");
        assert!(
            !shown.starts_with("::") || ours.iter().any(|start| shown.starts_with(start)),
            "{line:?}"
        );
        assert!(
            !line.contains(|character: char| character.is_control()),
            "{line:?}"
        );
        assert!(
            !line.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{200d}']),
            "{line:?}"
        );
    }
    let count = |start: &str| step.log.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("::group::"), count("::endgroup::")), (20, 20));
    assert_eq!(count("::error "), 10);
    assert!(
        step.log.contains("  | : :error::owned") || step.log.contains("  | ::error::owned"),
        "output is shown behind a bar: {}",
        step.log
    );
}

#[test]
fn nothing_breaks_out_of_comment_or_summary() {
    let Ok(cmark) = std::env::var(CMARK) else {
        eprintln!("not run: `{CMARK}` does not say where cmark-gfm is; .ci/run installs it and does");
        return;
    };
    let harmless: Vec<String> = (0..HOSTILE.len()).map(|at| format!("harmless{at:02}")).collect();
    let (harmless_step, harmless_comment) = run(&harmless);
    let (step, comment) = hostile();
    for (name, hostile, harmless) in [
        ("the comment", &comment, &harmless_comment),
        ("the summary", &step.summary, &harmless_step.summary),
    ] {
        let found = Parsed::of(&cmark, hostile);
        let expected = Parsed::of(&cmark, harmless);
        assert_eq!(found.nodes, expected.nodes, "{name}:\n{hostile}");
        assert_eq!(found.html, expected.html, "{name}:\n{hostile}");
        assert_eq!(found.outside, expected.outside, "{name}:\n{hostile}");
        assert!(
            found.nodes["table_row"] > 20,
            "the flips are a table: {:?}",
            found.nodes
        );
        assert_eq!(
            found.nodes.get("link").copied(),
            Some(1),
            "the run's own: {:?}",
            found.nodes
        );
        assert_eq!(found.nodes.get("image"), None);
    }
}

/// A document as cmark-gfm understands it.
#[derive(Debug, Default)]
struct Parsed {
    /// How many nodes of each kind there are.
    nodes: BTreeMap<String, usize>,
    /// The pieces of HTML, but for what changes from run to run.
    html: BTreeMap<String, usize>,
    /// The text that is not inside `<code>`.
    outside: String,
}

impl Parsed {
    fn of(cmark: &str, markdown: &str) -> Self {
        let mut child = Command::new(cmark)
            .args([
                "-t",
                "xml",
                "-e",
                "table",
                "-e",
                "strikethrough",
                "-e",
                "autolink",
                "-e",
                "tasklist",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(markdown.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let xml = String::from_utf8(output.stdout).unwrap();
        let node = regex::Regex::new(r"(?s)<([a-z_]+)((?:\s[^>]*)?)>([^<]*)").unwrap();
        let moving = regex::Regex::new(r"[0-9]+(?:\.[0-9]+)?").unwrap();
        let names = regex::Regex::new(r"&lt;code&gt;.*?&lt;/code&gt;").unwrap();
        let mut parsed = Self::default();
        let mut in_code = false;
        for found in node.captures_iter(&xml) {
            let kind = &found[1];
            // How text is cut into nodes says nothing.
            if !["text", "html_inline", "html_block"].contains(&kind) {
                *parsed.nodes.entry(kind.to_owned()).or_default() += 1;
                continue;
            }
            let text = moving.replace_all(&found[3], "0").into_owned();
            if kind == "text" {
                if !in_code {
                    parsed.outside += &text;
                }
                continue;
            }
            match text.as_str() {
                "&lt;code&gt;" => in_code = true,
                "&lt;/code&gt;" => in_code = false,
                _ => {}
            }
            // A block of HTML is one piece with whatever is in it: the names in it are encoded, so they are cut out.
            *parsed
                .html
                .entry(names.replace_all(&text, "name").into_owned())
                .or_default() += 1;
        }
        parsed
    }
}
