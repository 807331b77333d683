//! `evalwave init` and its presets: each with its harness, which a script stands in for.

mod supabase;

use camino::Utf8PathBuf;

use crate::support::{Suite, ev, evalwave, git, repository, stderr, stdout};

/// A repository for a harness, with programs that are found before the real ones.
struct Project {
    suite: Suite,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let suite = Suite::new("");
        fs_err::remove_file(suite.path().join("evalwave.yml")).unwrap();
        for (path, text) in files {
            suite.write(path, text);
        }
        Self { suite }
    }

    /// A program that runs a script.
    fn program(&self, name: &str, script: &str) {
        self.suite
            .write(&format!("bin/{name}"), &format!("#!/bin/sh\nset -e\n{script}\n"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let path = self.suite.path().join("bin").join(name);
            fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn ev(&self, arguments: &[&str]) -> assert_cmd::assert::Assert {
        let path = std::env::var("PATH").unwrap_or_default();
        evalwave(self.suite.path())
            .args(arguments)
            .env("PATH", format!("{}:{path}", self.suite.path().join("bin")))
            .env("FIXTURES", fixtures())
            .env("OPENAI_API_KEY", "a-key-for-tests")
            .env("ANTHROPIC_API_KEY", "another-key-for-tests")
            .assert()
    }
}

fn fixtures() -> Utf8PathBuf {
    repository().join("tests/fixtures/formats")
}

const SUPABASE: &str = r#"{"name": "@supabase-evals/framework"}"#;
const PROMPT: &str = "---\nstage: build\nproduct: [auth]\n---\nDo it.\n";

/// What a repository holds that is written for a preset's harness.
fn files_of(preset: &str) -> Vec<(&'static str, &'static str)> {
    match preset {
        "supabase-evals" => vec![
            ("apps/framework/package.json", SUPABASE),
            ("evals/build-001/PROMPT.md", PROMPT),
            ("experiments/opus.ts", ""),
        ],
        "supabase-evals-runs" => vec![
            ("apps/framework/package.json", SUPABASE),
            ("evals/benchmark/build-001/PROMPT.md", PROMPT),
            ("experiments/opus.ts", ""),
        ],
        "agent-eval" => vec![
            (
                "package.json",
                r#"{"devDependencies": {"@vercel/agent-eval": "^2.0.0"}}"#,
            ),
            ("evals/add-page/PROMPT.md", ""),
            ("evals/other/PROMPT.md", ""),
            ("experiments/opus.ts", ""),
        ],
        "inspect" => vec![(
            "suite/sums.py",
            "from inspect_ai import Task, task\n\n@task\ndef sums():\n    return Task()\n",
        )],
        "harbor" => vec![
            ("work/tasks/one/task.toml", ""),
            ("work/tasks/one/instruction.md", ""),
        ],
        "promptfoo" => vec![("promptfooconfig.yaml", "prompts: []\n")],
        _ => vec![("README.md", "")],
    }
}

/// The programs that stand in for a preset's harness: they leave what the harness itself left once.
fn programs_of(preset: &str) -> Vec<(&'static str, &'static str)> {
    match preset {
        "supabase-evals" => vec![("pnpm", SUPABASE_RUNNER)],
        "supabase-evals-runs" => vec![("pnpm", SUPABASE_RUNNER_OF_RUNS)],
        "agent-eval" => vec![
            ("npm", "[ \"$*\" = ci ]"),
            (
                "npx",
                "[ \"$*\" = 'agent-eval run opus --force' ]\n\
                 for eval in evals/*; do\n\
                   to=results/opus/2026-01-01/${eval#evals/}/run-1; mkdir -p $to; cp FIXTURES/agent-eval/passed.json $to/result.json\n\
                 done",
            ),
        ],
        "inspect" => vec![(
            "python3",
            "[ \"$*\" = '-m venv .venv' ]\n\
             mkdir -p .venv/bin\n\
             printf '#!/bin/sh\\n' > .venv/bin/pip\n\
             printf '#!/bin/sh\\n[ \"$2 $4\" = \"suite/sums.py openai/gpt-5-mini\" ] && mkdir logs && cp FIXTURES/inspect/passed.json logs/a.json\\n' > .venv/bin/inspect\n\
             chmod +x .venv/bin/*",
        )],
        "harbor" => vec![(
            "python3",
            "mkdir -p .venv/bin\n\
             printf '#!/bin/sh\\n' > .venv/bin/pip\n\
             printf '#!/bin/sh\\n[ \"$4 $6\" = \"work/tasks/one claude-code\" ] && mkdir -p trials/attempt && cp FIXTURES/harbor/passed.json trials/attempt/result.json\\n' > .venv/bin/harbor\n\
             chmod +x .venv/bin/*",
        )],
        // It ends with 100 where a test fails.
        "promptfoo" => vec![(
            "npx",
            "cp FIXTURES/promptfoo/failed.json promptfoo-result.json; exit 100",
        )],
        _ => vec![],
    }
}

/// Writes `results/<experiment>/<eval>.json` for `eval -- --experiment E --eval V --runs 1 --timeout-sec 720`; the
/// outcome is in outcomes/<experiment>/<eval>, a letter an attempt, where there is such a file.
const SUPABASE_RUNNER: &str = r#"
[ "$1" = install ] && exit 0
[ "$1 $2 $3 $5 $7 $8 $9" = "eval -- --experiment --eval --runs 1 --timeout-sec" ]
experiment=$4 eval=$6
letters=$(cat "outcomes/$experiment/$eval" 2>/dev/null || echo pppp)
case $(echo "$letters" | cut -c "$EVALWAVE_ATTEMPT") in
  p) passed=true ;;
  f) passed=false ;;
  *) echo "  -> ERROR the sandbox went away" >&2; exit 1 ;;
esac
mkdir -p "results/$experiment/$eval/attempt-1"
echo "work of attempt $EVALWAVE_ATTEMPT" > "results/$experiment/$eval/attempt-1/notes.txt"
cat > "results/$experiment/$eval.json" <<EOF
{
  "experiment": "$experiment",
  "experimentDisplay": { "agent": "claude-code", "modelProvider": "anthropic", "modelId": "m" },
  "eval": "$eval",
  "stage": "build",
  "product": ["auth"],
  "passed": $passed,
  "checks": [{ "name": "it works", "passed": $passed }],
  "attempts": 1,
  "transcript": [{ "n": 1.50 }]
}
EOF
"#;

/// The same since a file is a run.
const SUPABASE_RUNNER_OF_RUNS: &str = r#"
[ "$1" = install ] && exit 0
experiment=$4 eval=$6
letters=$(cat "outcomes/$experiment/$eval" 2>/dev/null || echo pppp)
case $(echo "$letters" | cut -c "$EVALWAVE_ATTEMPT") in
  p) passed=true ;;
  f) passed=false ;;
  *) exit 1 ;;
esac
mkdir -p "results/$experiment/$eval/run-1"
cat > "results/$experiment/$eval/run-1/result.json" <<EOF
{ "experiment": "$experiment", "eval": "$eval", "interface": "cli", "passed": $passed, "run": 1,
  "usage": [{ "model": "m", "inputTokens": 10, "outputTokens": 2 }, { "model": "n", "inputTokens": 1, "outputTokens": 1 }],
  "durationMs": 1234 }
EOF
"#;

fn project_of(preset: &str) -> Project {
    let project = Project::new(&files_of(preset));
    for (name, script) in programs_of(preset) {
        project.program(name, &script.replace("FIXTURES", fixtures().as_str()));
    }
    project
}

/// The presets, as their files are called.
fn presets() -> Vec<String> {
    let directory = repository().join("presets");
    let mut names: Vec<String> = directory
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_owned())
        .filter(|name| name != "workflow")
        .collect();
    names.sort();
    names
}

#[test]
fn every_preset_is_recognised_planned_and_runs_its_harness() {
    let mut known: Vec<&str> = vec![
        "agent-eval",
        "harbor",
        "inspect",
        "plain",
        "promptfoo",
        "supabase-evals",
        "supabase-evals-runs",
    ];
    known.sort_unstable();
    assert_eq!(presets(), known, "each preset has its project in this test");
    for preset in known {
        let project = project_of(preset);
        let init = project.ev(&["init"]).code(0);
        let said = stderr(&init);
        match preset {
            "plain" => assert!(said.contains("no harness is recognised"), "{said}"),
            _ => assert!(said.contains(&format!("the preset is `{preset}`")), "{said}"),
        }
        assert!(said.contains("wrote `evalwave.yml`"), "{said}");
        assert!(
            stdout(&init).contains("pair"),
            "{preset} ends with the plan: {}",
            stdout(&init)
        );

        let run = project.ev(&["run", "-o", "out", "--format", "json"]);
        let summary = crate::support::json(&run);
        let verdict = match preset {
            "promptfoo" => "fail",
            _ => "pass",
        };
        for pair in summary["pairs"].as_array().unwrap() {
            assert_eq!(pair["verdict"], verdict, "{preset}: {pair:#}");
        }
    }
}

#[test]
fn nothing_is_ever_overwritten() {
    let project = project_of("promptfoo");
    project.suite.write(
        "evalwave.yml",
        "version: 1\nsuite: { evals: [mine] }\nattempt: { command: 'true', secrets: [MINE] }\n",
    );
    project.suite.write(".github/workflows/evals.yml", "mine\n");
    let init = project.ev(&["init"]).code(0);
    assert!(stderr(&init).contains("`evalwave.yml` is there already and stays as it is"));
    assert!(stderr(&init).contains("`.github/workflows/evals.yml` is there already and stays as it is"));
    assert!(project.suite.read("evalwave.yml").contains("mine"));
    assert_eq!(project.suite.read(".github/workflows/evals.yml"), "mine\n");

    // A workflow beside a configuration that was there has the secrets of that one.
    fs_err::remove_file(project.suite.path().join(".github/workflows/evals.yml")).unwrap();
    project.ev(&["init"]);
    let workflow = project.suite.read(".github/workflows/evals.yml");
    assert!(
        workflow.contains("MINE: ${{ secrets.MINE }}") && !workflow.contains("OPENAI"),
        "{workflow}"
    );
}

#[test]
fn nothing_is_written_beside_a_configuration_that_is_wrong() {
    let project = project_of("promptfoo");
    project.suite.write("evalwave.yml", "version: 1\nsuit: {}\n");
    let refused = project.ev(&["init"]).code(2);
    assert!(stderr(&refused).contains("suit"), "{}", stderr(&refused));
    assert!(!project.suite.path().join(".github").exists());
}

#[test]
fn the_workflow_is_the_repositorys_with_its_branch() {
    let suite = Suite::new("");
    fs_err::remove_file(suite.path().join("evalwave.yml")).unwrap();
    git(suite.path(), &["init", "--initial-branch", "trunk"]);
    suite.write("agent/evals/a/PROMPT.md", "do it\n");
    ev(&suite.path().join("agent/evals"), "init --preset plain");
    let workflow = suite.read(".github/workflows/evals.yml");
    assert!(workflow.contains("branches: ['trunk']"), "{workflow}");
    assert!(
        workflow.contains("          config: 'agent/evals/evalwave.yml'\n"),
        "{workflow}"
    );
    assert!(suite.path().join("agent/evals/evalwave.yml").exists());
    // Where the remote's default branch is not known, it is looked for by its usual names before the own one is taken.
    git(suite.path(), &["commit", "--allow-empty", "-m", "one"]);
    git(
        suite.path(),
        &["update-ref", "refs/remotes/origin/master", "HEAD"],
    );
    fs_err::remove_file(suite.path().join(".github/workflows/evals.yml")).unwrap();
    let init = ev(&suite.path().join("agent/evals"), "init");
    let said = "it runs on pushes to `master`, which pull requests are compared with";
    assert!(stderr(&init).contains(said), "{}", stderr(&init));
    let workflow = suite.read(".github/workflows/evals.yml");
    assert!(workflow.contains("branches: ['master']"), "{workflow}");
    git(suite.path(), &["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let head = [
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
    ];
    git(suite.path(), &head);
    ev(suite.path(), "init --preset plain");
    fs_err::remove_file(suite.path().join(".github/workflows/evals.yml")).unwrap();
    ev(suite.path(), "init --preset plain");
    let workflow = suite.read(".github/workflows/evals.yml");
    assert!(
        workflow.contains("branches: [main]") && !workflow.contains("config:"),
        "{workflow}"
    );
}

#[test]
fn what_is_not_clear_is_asked_for() {
    let both: Vec<_> = files_of("promptfoo")
        .into_iter()
        .chain(files_of("inspect"))
        .collect();
    let project = Project::new(&both);
    let refused = project.ev(&["init"]).code(2);
    let said = stderr(&refused);
    assert!(
        said.contains("--preset promptfoo: `promptfooconfig.yaml` is there"),
        "{said}"
    );
    assert!(
        said.contains("--preset inspect: `suite/sums.py` has a task of inspect_ai"),
        "{said}"
    );
    assert!(!project.suite.path().join("evalwave.yml").exists());
    project.ev(&["init", "--preset", "inspect"]).success();
    let written = fs_err::read_to_string(project.suite.path().join("evalwave.yml")).unwrap();
    assert!(written.contains("suite/*.py"), "{written}");
    // What is there needs no preset.
    fs_err::remove_file(project.suite.path().join(".github/workflows/evals.yml")).unwrap();
    let again = project.ev(&["init"]).success();
    assert!(stderr(&again).contains("wrote `.github/workflows/evals.yml`"));

    let refused = project.ev(&["init", "--preset", "nose"]).code(2);
    assert!(stderr(&refused).contains("expected one of supabase-evals"));
    for label in ["a'b", "${{ x }}", "a\nb", &"ü".repeat(51)] {
        project
            .ev(&["init", "--preset", "plain", "--label", label])
            .code(2);
    }
    project
        .ev(&["init", "--preset", "plain", "--label", &"ü".repeat(50)])
        .success();
}

#[test]
fn the_workflow_asks_for_little_and_is_clean_by_linters() {
    for (preset, label) in [
        ("inspect", None),
        ("promptfoo", Some("run evals")),
        ("plain", None),
    ] {
        let project = project_of(preset);
        let mut arguments = vec!["init"];
        arguments.extend(label.iter().flat_map(|label| ["--label", *label]));
        project.ev(&arguments).code(0);
        let workflow = project.suite.read(".github/workflows/evals.yml");
        assert!(workflow.contains("permissions: {}") && workflow.contains("vars.EVAL_PARALLEL_ATTEMPTS"));
        assert!(!workflow.contains("pull_request_target"));
        assert_eq!(
            workflow.contains("github.event.label.name == 'run evals'"),
            label.is_some()
        );
        let path = project.suite.path().join(".github/workflows/evals.yml");
        let config = repository().join(".github/zizmor.yml");
        let linters: [(&str, Vec<&str>); 2] = [
            (
                "ZIZMOR",
                vec![
                    "--offline",
                    "--persona",
                    "pedantic",
                    "--config",
                    config.as_str(),
                    "--quiet",
                    path.as_str(),
                ],
            ),
            ("ACTIONLINT", vec![path.as_str()]),
        ];
        for (name, arguments) in linters {
            match std::env::var(format!("EVALWAVE_TEST_{name}")) {
                Ok(linter) => {
                    let linted = assert_cmd::Command::new(linter).args(arguments).assert();
                    linted.code(0);
                }
                Err(_) => eprintln!("skipped: EVALWAVE_TEST_{name} names no linter"),
            }
        }
    }
}

#[test]
fn python_files_that_hold_no_task_are_no_evals() {
    let mut files = files_of("inspect");
    files.extend([
        ("suite/__init__.py", ""),
        ("suite/scoring.py", "from inspect_ai.scorer import scorer\n"),
        (
            "suite/more.py",
            "import inspect_ai\n\n@inspect_ai.task\ndef more():\n    return inspect_ai.Task()\n",
        ),
        (
            "suite/also.py",
            "import inspect_ai as ai\n\nif True:\n    @ai.task(name=\"also\")\n    def also():\n        return ai.Task()\n",
        ),
        ("suite/deeper/other.py", ""),
    ]);
    let project = Project::new(&files);
    let init = project.ev(&["init"]).code(0);
    let written = project.suite.read("evalwave.yml");
    assert!(
        written.contains("exclude: [{ eval: \"{__init__,conftest,setup,scoring}\" }]"),
        "{written}"
    );
    let planned = stdout(&init);
    assert!(planned.contains("3 pairs"), "{planned}");
    for (eval, is_planned) in [
        ("sums", true),
        ("more", true),
        ("also", true),
        ("scoring", false),
        ("__init__", false),
    ] {
        assert_eq!(planned.contains(eval), is_planned, "{eval}: {planned}");
    }
}
