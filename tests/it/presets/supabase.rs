//! The presets for supabase/evals: its pairs, its directories, its publishing step.

use serde_json::{Value, json};

use super::project_of;
use crate::support::{repository, stdout};

/// Pairs as supabase/evals' own runner takes them.
fn four_keys(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<Value> = pairs
        .iter()
        .map(|(experiment, eval)| {
            json!({ "eval_id": eval, "experiment": experiment, "experiment_suite": "benchmark", "eval_suite": "regression" })
        })
        .collect();
    Value::from(pairs).to_string()
}

#[test]
fn the_supabase_preset_is_a_drop_in() {
    let project = project_of("supabase-evals");
    for (pair, letters) in [
        ("opus-5/auth-001", "fp"),
        ("opus-5.4-mini/auth-001", "ff"),
        ("opus-5/lost-001", "ee"),
        ("opus-5/half-001", "ef"),
    ] {
        project.suite.write(&format!("outcomes/{pair}"), letters);
    }
    project.ev(&["init"]).code(0);
    let pairs = four_keys(&[
        ("opus-5.4-mini", "auth-001"),
        ("opus-5", "auth-001"),
        ("opus-5", "lost-001"),
        ("opus-5", "half-001"),
    ]);
    let run = project.ev(&["run", "-o", "out", "--pairs-json", &pairs, "--parallel-attempts"]);
    run.code(3);

    let directory = project.suite.path().join("out");
    let mut published: Vec<String> = directory
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_owned())
        .filter(|name| name.starts_with("raw-results-"))
        .collect();
    published.sort();
    assert_eq!(
        published,
        [
            "raw-results-opus-5.4-mini__auth-001",
            "raw-results-opus-5__auth-001",
            "raw-results-opus-5__half-001"
        ]
    );
    let document = project
        .suite
        .read_json("out/raw-results-opus-5__auth-001/auth-001.json");
    // The passing attempt stands for the pair; only attempts that gave a result are counted.
    assert_eq!(
        (&document["passed"], &document["attempts"]),
        (&json!(true), &json!(2))
    );
    assert!(
        project
            .suite
            .read("out/raw-results-opus-5__auth-001/auth-001.json")
            .contains("1.50")
    );
    let tree = "out/raw-results-opus-5__auth-001/auth-001/attempt-1/notes.txt";
    assert_eq!(project.suite.read(tree), "work of attempt 2\n");
    let half = project
        .suite
        .read_json("out/raw-results-opus-5__half-001/half-001.json");
    assert_eq!((&half["passed"], &half["attempts"]), (&json!(false), &json!(1)));

    let before = r#"[
  {
    "experiment": "codex",
    "eval": "auth-001",
    "passed": true,
    "attempts": 1,
    "sourcePath": "codex/auth-001.json"
  },
  {
    "experiment": "opus-5",
    "eval": "auth-001",
    "prompt": "Do it.",
    "passed": false,
    "attempts": 1,
    "sourcePath": "opus-5/auth-001.json"
  },
  {
    "experiment": "opus-5",
    "eval": "lost-001",
    "passed": true,
    "attempts": 1,
    "sourcePath": "opus-5/lost-001.json"
  }
]
"#;
    project.suite.write("eval-results.json", before);
    let merged = project
        .ev(&[
            "report",
            "out",
            "--format",
            "results",
            "--merge",
            "eval-results.json",
        ])
        .code(0);
    insta::assert_snapshot!(stdout(&merged), @r#"
    [
      {
        "experiment": "codex",
        "eval": "auth-001",
        "passed": true,
        "attempts": 1,
        "sourcePath": "codex/auth-001.json"
      },
      {
        "experiment": "opus-5",
        "experimentSuite": "benchmark",
        "experimentDisplay": {
          "agent": "claude-code",
          "modelProvider": "anthropic",
          "modelId": "m"
        },
        "eval": "auth-001",
        "stage": "build",
        "product": [
          "auth"
        ],
        "suite": "regression",
        "passed": true,
        "checks": [
          {
            "name": "it works",
            "passed": true
          }
        ],
        "prompt": "Do it.",
        "attempts": 2,
        "sourcePath": "opus-5/auth-001.json"
      },
      {
        "experiment": "opus-5",
        "experimentSuite": "benchmark",
        "experimentDisplay": {
          "agent": "claude-code",
          "modelProvider": "anthropic",
          "modelId": "m"
        },
        "eval": "half-001",
        "stage": "build",
        "product": [
          "auth"
        ],
        "suite": "regression",
        "passed": false,
        "checks": [
          {
            "name": "it works",
            "passed": false
          }
        ],
        "attempts": 1,
        "sourcePath": "opus-5/half-001.json"
      },
      {
        "experiment": "opus-5.4-mini",
        "experimentSuite": "benchmark",
        "experimentDisplay": {
          "agent": "claude-code",
          "modelProvider": "anthropic",
          "modelId": "m"
        },
        "eval": "auth-001",
        "stage": "build",
        "product": [
          "auth"
        ],
        "suite": "regression",
        "passed": false,
        "checks": [
          {
            "name": "it works",
            "passed": false
          }
        ],
        "attempts": 2,
        "sourcePath": "opus-5.4-mini/auth-001.json"
      }
    ]
    "#);
    // What is published is a source, too.
    project.suite.write("merged.json", &stdout(&merged));
    let compared = project.ev(&[
        "compare",
        "--baseline",
        "eval-results.json",
        "--current",
        "merged.json",
        "--format",
        "json",
    ]);
    let compared = crate::support::json(&compared.code(0));
    assert_eq!(compared["flips"]["fail_to_pass"][0]["eval"], "auth-001");
}

#[test]
fn the_supabase_preset_of_runs_publishes_a_file_a_run_and_only_complete_sets() {
    let project = project_of("supabase-evals-runs");
    for (eval, letters) in [("even", "pf"), ("worse", "ff"), ("partial", "pe"), ("none", "ee")] {
        project.suite.write(&format!("outcomes/opus/{eval}"), letters);
    }
    project.ev(&["init"]).code(0);
    let pairs = four_keys(&[
        ("opus", "even"),
        ("opus", "worse"),
        ("opus", "partial"),
        ("opus", "none"),
    ]);
    let run = project.ev(&[
        "run",
        "-o",
        "out",
        "--pairs-json",
        &pairs,
        "--parallel-attempts",
        "--format",
        "json",
    ]);
    let summary = crate::support::json(&run.code(3));
    let verdicts: Vec<&str> = summary["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| pair["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["pass", "fail", "error", "error"]);
    assert_eq!(summary["pairs"][0]["attempts"][0]["usage"]["input_tokens"], 11);
    for run in [1, 2] {
        let file = format!("out/raw-results-opus__even/even/run-{run}/result.json");
        assert_eq!(project.suite.read_json(&file)["run"], run);
    }
    let before = r#"[
  {"experiment": "opus", "eval": "even", "run": 1, "passed": false},
  {"experiment": "opus", "eval": "none", "run": 1, "passed": true},
  {"experiment": "opus", "eval": "partial", "run": 1, "passed": true},
  {"experiment": "opus", "eval": "partial", "run": 2, "passed": true}
]"#;
    project.suite.write("rows.json", before);
    let merged = project
        .ev(&["report", "out", "--format", "results", "--merge", "rows.json"])
        .code(0);
    let rows: Vec<Value> = serde_json::from_str(&stdout(&merged)).unwrap();
    let told: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "{} {} {} {}",
                row["eval"], row["run"], row["passed"], row["sourcePath"]
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    "even" 1 true "opus/even/run-1/result.json"
    "even" 2 false "opus/even/run-2/result.json"
    "partial" 1 true null
    "partial" 2 true null
    "worse" 1 false "opus/worse/run-1/result.json"
    "worse" 2 false "opus/worse/run-2/result.json"
    "#);
}

/// Both layouts, against the publishing step itself, byte for byte.
#[test]
fn merged_rows_are_what_the_publishing_step_of_supabase_evals_makes() {
    let Ok(node) = std::env::var("EVALWAVE_TEST_NODE") else {
        eprintln!("skipped: EVALWAVE_TEST_NODE names no node");
        return;
    };
    let asked = [
        ("opus-5.4-mini", "b"),
        ("opus-5", "b"),
        ("opus-5", "a-2"),
        ("opus-5", "a.1"),
        ("opus_5", "lost"),
    ];
    for preset in ["supabase-evals", "supabase-evals-runs"] {
        let project = project_of(preset);
        project.suite.write("outcomes/opus-5/b", "fp");
        project.suite.write("outcomes/opus-5/a-2", "ff");
        project.suite.write("outcomes/opus_5/lost", "ee");
        project.ev(&["init"]).code(0);
        let pairs = four_keys(&asked);
        project.suite.write("pairs.json", &pairs);
        project
            .ev(&["run", "-o", "out", "--pairs", "pairs.json", "--parallel-attempts"])
            .code(3);
        let before = json!([
            { "experiment": "zeta", "eval": "b", "passed": true, "attempts": 1 },
            { "experiment": "opus-5", "eval": "b", "passed": true, "attempts": 1, "sourcePath": "old" },
            { "experiment": "opus_5", "eval": "lost", "passed": true, "attempts": 1 },
            { "experiment": "opus-5", "eval": "other", "passed": true, "attempts": 1 },
        ]);
        let before = serde_json::to_string_pretty(&before).unwrap();
        project.suite.write("rows.json", &before);
        let ours = project
            .ev(&["report", "out", "--format", "results", "--merge", "rows.json"])
            .code(0);
        let theirs = assert_cmd::Command::new(&node)
            .arg(repository().join("tests/oracles/export.mjs"))
            .args(["out", "rows.json", "pairs.json"])
            .current_dir(project.suite.path())
            .assert()
            .success();
        assert_eq!(stdout(&ours), stdout(&theirs), "{preset}");
    }
}
