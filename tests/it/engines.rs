//! The recipes of docs/engines.md: every one is accepted, and those that can run here are run as they stand there.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::sandbox::PATIENCE;
use crate::support::{Suite, evalwave, only_in_ci, repository, stderr};

/// What every recipe's attempts do.
const COMMAND: &str = "command: echo \"{eval} by {experiment}\" >answer.txt";

struct Recipe {
    name: String,
    /// What stands between the heading and the configuration.
    said: String,
    config: String,
}

fn recipes() -> Vec<Recipe> {
    let text = fs_err::read_to_string(repository().join("docs/engines.md")).unwrap();
    text.split("\n## ")
        .skip(1)
        .filter_map(|section| {
            let (name, rest) = section.split_once('\n')?;
            let (said, rest) = rest.split_once("```yaml\n")?;
            let (config, _) = rest.split_once("```")?;
            Some(Recipe {
                name: name.to_owned(),
                said: said.trim().to_owned(),
                config: config.to_owned(),
            })
        })
        .collect()
}

fn recipe(name: &str) -> Recipe {
    let recipe = recipes().into_iter().find(|recipe| recipe.name == name).unwrap();
    assert!(recipe.said.starts_with("Run in our CI."), "{name}");
    recipe
}

#[test]
fn every_recipe_is_whole_and_says_whether_we_run_it() {
    let recipes = recipes();
    let names: Vec<&str> = recipes.iter().map(|recipe| recipe.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "docker",
            "podman",
            "Slurm",
            "ssh",
            "Kubernetes",
            "Modal",
            "E2B",
            "Daytona"
        ]
    );
    for Recipe { name, said, config } in &recipes {
        let run_here = ["docker", "Slurm", "ssh"].contains(&name.as_str());
        let says = if run_here {
            "Run in our CI."
        } else {
            "Not run by us."
        };
        assert!(said.starts_with(says), "{name}: {said}");
        assert!(config.contains(COMMAND), "{name}");
        let plan = Suite::new(config).ev("plan").code(0);
        assert_eq!(stderr(&plan), "", "{name}");
    }
}

#[test]
fn the_first_configuration_of_the_document_is_one() {
    let text = fs_err::read_to_string(repository().join("docs/engines.md")).unwrap();
    let config = text
        .split("```yaml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    Suite::new(config).ev("plan").code(0);
}

/// Tells the processes of one recipe from those of another that is tried meanwhile.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// Runs a recipe as it stands in the document, then kills a run of it and cleans up. `left` prints what there is of its
/// sandboxes.
fn run(name: &str, environment: &[(&str, &str)], left: &str) {
    let recipe = recipe(name);
    let suite = Suite::new(&recipe.config);
    let command = |arguments: &str| {
        let mut command = evalwave(suite.path());
        command.args(arguments.split_whitespace());
        command.envs(environment.iter().copied());
        command
    };
    command("run -o out").assert().code(0);
    let summary = suite.read_json("out/summary.json");
    assert_eq!(summary["totals"]["passed"], 2, "{name}: {summary}");
    for eval in ["one", "two"] {
        let kept = suite.read(&format!("out/attempts/demo__{eval}/1/files/answer.txt"));
        assert_eq!(kept, format!("{eval} by demo\n"), "{name}");
    }
    let left = || {
        let mut shell = assert_cmd::Command::new("sh");
        shell.args(["-c", left]).envs(environment.iter().copied());
        let assert = shell.assert().success();
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    assert_eq!(left(), "", "{name}");

    let seconds = 1000 + RUNS.fetch_add(1, Ordering::Relaxed);
    let marker = format!("{seconds}.{}", std::process::id());
    let hanging = recipe
        .config
        .replace(COMMAND, &format!("command: exec sleep {marker}"));
    suite.write("evalwave.yml", &hanging);
    let mut killed = std::process::Command::new(env!("CARGO_BIN_EXE_evalwave"));
    killed.args(["run", "-o", "killed"]).current_dir(suite.path());
    killed.envs(environment.iter().copied());
    let mut killed = killed
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| sleeping(&marker) == 2, "both attempts run");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_ne!(left(), "", "{name}: there is something to clean up");
    command("cleanup killed").assert().code(0);
    assert_eq!(left(), "", "{name}");
    until(|| sleeping(&marker) == 0, "both attempts are gone");
    command("cleanup killed").assert().code(0);
}

/// How many processes of this machine, in whichever container, sleep that long.
fn sleeping(seconds: &str) -> usize {
    let arguments = format!("sleep\0{seconds}\0").into_bytes();
    fs_err::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|process| fs_err::read(process.path().join("cmdline")).ok())
        .filter(|found| found.ends_with(&arguments))
        .count()
}

fn until(done: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "it does not come about that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_recipe_for_docker_runs_and_leaves_nothing() {
    let Some(host) = only_in_ci("EVALWAVE_TEST_DOCKER") else {
        return;
    };
    let environment = [
        ("DOCKER_HOST", host.as_str()),
        ("EVALS_IMAGE", "evalwave-test:base"),
    ];
    run(
        "docker",
        &environment,
        "docker ps --all --quiet --filter label=evalwave",
    );
}

#[test]
fn the_recipe_for_slurm_runs_and_leaves_nothing() {
    let Some(config) = only_in_ci("EVALWAVE_TEST_SLURM") else {
        return;
    };
    let directory = tempfile::TempDir::new().unwrap();
    let directory = directory.path().to_str().unwrap();
    let environment = [("SLURM_CONF", config.as_str()), ("EVALS_DIR", directory)];
    run(
        "Slurm",
        &environment,
        "squeue --noheader --format=%j | grep -v '/r1$'; ls \"$EVALS_DIR\"",
    );
}

#[test]
fn the_recipe_for_ssh_runs_and_leaves_nothing() {
    let Some(ssh) = only_in_ci("EVALWAVE_TEST_SSH") else {
        return;
    };
    let directory = camino::Utf8Path::new(&ssh).parent().unwrap();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap());
    let environment = [("EVALS_HOST", "evals"), ("PATH", path.as_str())];
    run(
        "ssh",
        &environment,
        "ssh \"$EVALS_HOST\" 'ls evals 2>/dev/null || true'",
    );
}
