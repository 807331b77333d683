//! Whole runs in sandboxes of Vercel: the real binary against the fake that Vercel's official client accepts.

mod faults;
mod repository;
mod runs;
mod snapshots;

use std::process::{Child, Stdio};

use camino::Utf8PathBuf;
use serde_json::Value;

use crate::support::engine_of_vercel::bwrap;
use crate::support::vercel::{Faults, Light, Limits, Machines, PROJECT, Rule, State, TEAM, TOKEN, Vercel};
use crate::support::{Suite, evalwave};

/// The fake, a suite for it, and what the binary is told of it.
struct Bench {
    vercel: Vercel,
    suite: Suite,
}

/// Rates that no test waits for.
const FAST: &str =
    "{ vcpus-per-minute: [1000000, 1, 1000000], requests-per-minute: 10000000, deletes-per-second: 10000 }";

impl Bench {
    /// Commands take the time that they name and do nothing.
    fn light(faults: Vec<Rule>, config: &str) -> Self {
        let light = Light {
            scale: 1.0,
            ..Light::default()
        };
        Self::with(Machines::light(light), Limits::none(), faults, config)
    }

    /// Commands run; `None` where there is nothing to run them with.
    fn real(faults: Vec<Rule>, config: &str) -> Option<Self> {
        let machines = Machines::real(bwrap()?).unwrap();
        Some(Self::with(machines, Limits::none(), faults, config))
    }

    /// `config` is all of the suite's but its sandboxes, to which it may add.
    fn with(machines: Machines, limits: Limits, faults: Vec<Rule>, config: &str) -> Self {
        let vercel = Vercel::start(0, State::new(limits, Faults::new(7, faults)), machines).unwrap();
        let sandbox = format!(
            "version: 1\nbaseline: none\nstrategy: parallel\nsandbox:\n  kind: vercel\n  base-url: {}\n",
            vercel.base_url()
        );
        let suite = Suite::new(&config.replacen("SANDBOX\n", &sandbox, 1).replace("FAST", FAST));
        Self { vercel, suite }
    }

    fn command(&self, arguments: &str) -> assert_cmd::Command {
        let mut command = evalwave(self.suite.path());
        command
            .args(arguments.split_whitespace())
            .env("VERCEL_TOKEN", TOKEN)
            .env("VERCEL_TEAM_ID", TEAM)
            .env("VERCEL_PROJECT_ID", PROJECT);
        command
    }

    fn ev(&self, arguments: &str) -> assert_cmd::assert::Assert {
        self.command(arguments).assert()
    }

    /// The same, under way.
    fn start(&self, arguments: &str) -> Child {
        self.started(&self.command(arguments))
    }

    fn started(&self, program: &assert_cmd::Command) -> Child {
        let mut command = std::process::Command::new(program.get_program());
        command
            .args(program.get_args())
            .current_dir(self.suite.path())
            .env_clear();
        for (name, value) in program.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Waits until the fake is as it should be, which has to come while the program runs.
    fn wait_for(&self, program: &mut Child, wanted: impl Fn(&State) -> bool) {
        while !wanted(&self.vercel.state()) {
            assert!(program.try_wait().unwrap().is_none(), "the program ended early");
            std::thread::yield_now();
        }
    }

    fn summary(&self) -> Value {
        self.suite.read_json("out/summary.json")
    }

    fn sandboxes(&self) -> usize {
        self.vercel.state().sandboxes.len()
    }

    /// Sandboxes besides those by whose names snapshots are found, which run no more.
    fn left(&self) -> Vec<String> {
        let state = self.vercel.state();
        assert_eq!(state.counts.live, 0);
        let names = state.sandboxes.keys();
        names
            .filter(|name| !name.starts_with("evalwave-warm-"))
            .cloned()
            .collect()
    }
}

/// What Ctrl-C does to a program.
fn interrupt(program: &Child) {
    let pid = rustix::process::Pid::from_child(program);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

/// Every file below a directory, as text.
fn texts(directory: &camino::Utf8Path) -> Vec<(Utf8PathBuf, String)> {
    let mut texts = Vec::new();
    for entry in directory.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.is_dir() {
            texts.extend(self::texts(&path));
        } else {
            let bytes = fs_err::read(&path).unwrap();
            texts.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    texts
}
