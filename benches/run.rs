//! What whole runs cost, every file written, beside `xargs` doing the same in the same minute: a table, and no verdict.
//!
//! `cargo bench --bench run`. On `/dev/shm`, and once more in the build directory for comparison: a real file system
//! slows down with every file that is deleted.

#![expect(clippy::disallowed_methods, reason = "it measures processes by the clock")]

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;

type Failure = Box<dyn std::error::Error>;

/// The binary that was built with this benchmark.
const EVALWAVE: &str = env!("CARGO_BIN_EXE_evalwave");
/// The fastest of so many counts: whatever else the machine does only adds.
const TIMES: usize = 5;

/// As many attempts, so many at once.
struct Load {
    command: &'static str,
    attempts: usize,
    at_once: usize,
}

const LOADS: [Load; 3] = [
    Load {
        command: "/bin/true",
        attempts: 200,
        at_once: 50,
    },
    Load {
        command: "/bin/sleep 1",
        attempts: 200,
        at_once: 50,
    },
    Load {
        command: "/bin/sleep 1",
        attempts: 1000,
        at_once: 1000,
    },
];

#[expect(clippy::print_stdout, reason = "the table is what this is for")]
fn main() -> Result<(), Failure> {
    println!(
        "{:<28}{:>9}{:>10}{:>10}{:>8}{:>14}{:>10}",
        "", "at once", "xargs", "evalwave", "ratio", "ms/attempt more", "peak MB"
    );
    for (place, directory) in [("tmpfs", "/dev/shm"), ("disk", env!("CARGO_TARGET_TMPDIR"))] {
        for load in &LOADS {
            let times = if load.command == "/bin/true" { TIMES } else { 2 };
            let floor = fastest(times, || xargs(load))?;
            let suite = Suite::new(directory.into(), load)?;
            let run = fastest(times, || suite.run())?;
            let more = (run.seconds() - floor.seconds()) * 1000.0 / load.attempts as f64;
            println!(
                "{:<28}{:>9}{:>9.2}s{:>9.2}s{:>8.2}{:>15.2}{:>10.1}",
                format!("{place}: {} x {}", load.attempts, load.command),
                load.at_once,
                floor.seconds(),
                run.seconds(),
                run.seconds() / floor.seconds(),
                more,
                run.peak_megabytes,
            );
        }
    }
    println!("\n{:<28}{:>10}{:>10}", "10,000 pairs", "ms", "peak MB");
    let big = Big::new("/dev/shm".into())?;
    for (name, arguments) in [
        (
            "plan",
            vec!["plan", "-c", big.config.as_str(), "--format", "json"],
        ),
        (
            "plan with forecasts",
            vec![
                "plan",
                "-c",
                big.config.as_str(),
                "--baseline",
                big.known.as_str(),
                "--format",
                "json",
            ],
        ),
        (
            "compare",
            vec![
                "compare",
                "--baseline",
                big.before.as_str(),
                "--current",
                big.after.as_str(),
                "--format",
                "json",
            ],
        ),
        ("--version", vec!["--version"]),
    ] {
        let measured = fastest(TIMES, || measure(Command::new(EVALWAVE).args(&arguments)))?;
        println!(
            "{name:<28}{:>10.1}{:>10.1}",
            measured.seconds() * 1000.0,
            measured.peak_megabytes
        );
    }
    Ok(())
}

/// What a process took.
#[derive(Clone, Copy)]
struct Measured {
    wall: Duration,
    /// Its own memory, without its children's.
    peak_megabytes: f64,
}

impl Measured {
    fn seconds(&self) -> f64 {
        self.wall.as_secs_f64()
    }
}

fn fastest(
    times: usize,
    mut measure: impl FnMut() -> Result<Measured, Failure>,
) -> Result<Measured, Failure> {
    let mut best: Option<Measured> = None;
    for _ in 0..times {
        let measured = measure()?;
        let peak = best
            .map_or(0.0, |best| best.peak_megabytes)
            .max(measured.peak_megabytes);
        let faster = best.filter(|best| best.wall < measured.wall).unwrap_or(measured);
        best = Some(Measured {
            peak_megabytes: peak,
            ..faster
        });
    }
    best.ok_or_else(|| "nothing was measured".into())
}

/// Runs a command to its end; its peak memory is read when it has closed its output, just before it is gone.
fn measure(command: &mut Command) -> Result<Measured, Failure> {
    let started = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let sampling = std::thread::spawn(move || {
        let mut peak = 0.0_f64;
        while let Ok(status) = fs_err::read_to_string(&status_file) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
            let Some(kilobytes) = kilobytes else { break };
            peak = peak.max(kilobytes / 1024.0);
            std::thread::park_timeout(Duration::from_millis(2));
        }
        peak
    });
    let mut output = Vec::new();
    child.stdout.take().ok_or("no output")?.read_to_end(&mut output)?;
    let status = child.wait()?;
    let wall = started.elapsed();
    if !status.success() {
        return Err(format!("{command:?} ended with {status}").into());
    }
    let peak_megabytes = sampling.join().map_err(|_| "the sampling thread broke")?;
    Ok(Measured { wall, peak_megabytes })
}

/// The floor: the same commands, so many at once, and nothing kept.
fn xargs(load: &Load) -> Result<Measured, Failure> {
    let script = format!(
        "seq {} | xargs -P{} -I% {}",
        load.attempts, load.at_once, load.command
    );
    measure(Command::new("sh").args(["-c", &script]))
}

/// An empty workspace whose attempts run one command.
struct Suite {
    directory: tempfile::TempDir,
}

impl Suite {
    fn new(parent: &Utf8Path, load: &Load) -> Result<Self, Failure> {
        let directory = tempfile::TempDir::new_in(parent)?;
        let pairs: Vec<_> = (0..load.attempts)
            .map(|number| json!({ "experiment": "x", "eval": format!("e{number}") }))
            .collect();
        let command: Vec<&str> = load.command.split(' ').collect();
        // JSON is YAML; the memory is reckoned small so that it does not bound the concurrency.
        let config = json!({
            "version": 1,
            "suite": { "name": "bench", "pairs": pairs },
            "attempt": { "command": command, "format": "exit-code", "upload": { "git": false, "exclude": ["**"] } },
            "strategy": "parallel",
            "concurrency": load.at_once,
            "sandbox": { "kind": "local", "memory-per-attempt": "1MB" },
            "baseline": "none",
        });
        fs_err::write(directory.path().join("evalwave.yml"), config.to_string())?;
        Ok(Self { directory })
    }

    fn run(&self) -> Result<Measured, Failure> {
        measure(
            Command::new(EVALWAVE)
                .args(["run", "-o", "out", "--overwrite", "--format", "json"])
                .env("TMPDIR", self.directory.path())
                .current_dir(self.directory.path()),
        )
    }
}

/// Suites of 10,000 pairs, as a configuration and as results.
struct Big {
    _directory: tempfile::TempDir,
    config: Utf8PathBuf,
    before: Utf8PathBuf,
    after: Utf8PathBuf,
    /// A summary that knows how long its attempts took.
    known: Utf8PathBuf,
}

impl Big {
    fn new(parent: &Utf8Path) -> Result<Self, Failure> {
        let directory = tempfile::TempDir::new_in(parent)?;
        let root = Utf8PathBuf::try_from(directory.path().to_owned())?;
        let ids =
            || (0..10_000).map(|number| (format!("agent-{}", number % 25), format!("task-{}", number / 25)));
        let pairs: Vec<_> = ids()
            .map(|(experiment, eval)| json!({ "experiment": experiment, "eval": eval }))
            .collect();
        let rows = |period: usize| -> Vec<_> {
            let passed = |number: usize| !number.is_multiple_of(period);
            ids()
                .enumerate()
                .map(|(number, (experiment, eval))| {
                    json!({ "experiment": experiment, "eval": eval, "passed": passed(number), "attempts": 2 })
                })
                .collect()
        };
        let attempt = |index: usize, seconds: usize| {
            json!({
                "index": index, "outcome": "passed", "tries": 1, "seconds": seconds + 40,
                "phases": { "command": seconds },
            })
        };
        let measured: Vec<_> = ids()
            .enumerate()
            .map(|(number, (experiment, eval))| {
                let seconds = 60 + number * 7919 % 700;
                json!({
                    "experiment": experiment, "eval": eval, "verdict": "pass", "firm": true, "representative": 1,
                    "passed_attempts": 2, "graded_attempts": 2, "planned_attempts": 2, "seconds": seconds,
                    "attempts": [attempt(1, seconds), attempt(2, seconds * 9 / 10)],
                })
            })
            .collect();
        let known = json!({
            "schema": "evalwave.summary/1",
            "tool": { "name": "evalwave", "version": "0.1.0" },
            "run": {
                "id": "20260302-100000-00000001", "started_at": "2026-03-02T10:00:00Z", "wall_seconds": 900,
                "complete": true, "conclusion": "success", "strategy": "parallel", "runs": 2, "concurrency": 20_000,
                "policy": "any", "sandbox": "local", "suite": "big", "commit": null, "config_hash": "0",
                "concurrency_reason": "", "selection": { "kind": "all", "selected": 10_000, "of": 10_000 },
            },
            "totals": {
                "pairs": 10_000, "passed": 10_000, "failed": 0, "errored": 0, "not_run": 0, "pass_rate": 1.0,
                "attempts": {
                    "planned": 20_000, "graded": 20_000, "passed": 20_000, "failed": 0, "timed_out": 0, "errored": 0,
                    "cancelled": 0, "retried": 0,
                },
                "attempt_pass_rate": 1.0, "all_pass_rate": 1.0, "distribution": { "2/2": 10_000 },
                "sandbox_seconds": 1.0, "cost_usd": null, "tokens": null,
            },
            "pairs": measured,
        });
        let config =
            "version: 1\nsuite: { name: big, pairs: pairs.json }\nattempt: { command: 'true' }\nruns: 2\n";
        fs_err::write(root.join("evalwave.yml"), config)?;
        fs_err::write(root.join("pairs.json"), serde_json::to_string(&pairs)?)?;
        fs_err::write(root.join("before.json"), serde_json::to_string(&rows(7))?)?;
        fs_err::write(root.join("after.json"), serde_json::to_string(&rows(9))?)?;
        fs_err::write(root.join("known.json"), known.to_string())?;
        Ok(Self {
            _directory: directory,
            config: root.join("evalwave.yml"),
            before: root.join("before.json"),
            after: root.join("after.json"),
            known: root.join("known.json"),
        })
    }
}
