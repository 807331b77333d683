//! The fake Vercel as a program of its own, for trying things out: `cargo run --example fake-vercel`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "what a test helper may do"
)]

#[path = ".."]
#[expect(dead_code, unused_imports, reason = "the tests use the rest of it")]
mod support {
    pub(crate) mod vercel;
}

use anyhow::Context as _;
use camino::Utf8PathBuf;
use clap::Parser;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde::de::DeserializeOwned;
use support::vercel::{Faults, Light, Limits, Machines, PROJECT, Rule, State, TEAM, TOKEN, Vercel};

/// A fake Vercel Sandbox on this machine. Needs Linux and bubblewrap, or `--light`.
#[derive(Parser)]
#[command(name = "fake-vercel")]
struct Arguments {
    /// The port; a free one unless it is given
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Runs nothing: a command takes the seconds that it names, as in `takes-12.5s`, and exits as in `exits-1`
    #[arg(long)]
    light: bool,
    /// What `--light` multiplies those seconds with
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// What else `--light` does: JSON of the form {"rules": [{"contains": "tar", "exit": 1}], "files": {"/x": "text"}}
    #[arg(long, value_name = "JSON")]
    simulate: Option<String>,
    /// The program that makes sandboxes
    #[arg(long, default_value = "bwrap", value_name = "PATH")]
    bwrap: Utf8PathBuf,
    /// The account's limits: JSON of the form {"concurrent": 10, "vcpus-per-minute": [20, 20, 40], "minute-ms": 600}
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// How long things take: JSON of the form {"create-ms": 2000, "stop-ms": 500, "snapshot-ms": 3000}
    #[arg(long, value_name = "JSON")]
    times: Option<String>,
    /// What goes wrong: JSON of the form [{"on": ["create"], "fault": {"too-many": 1}, "at": [1, 2]}]
    #[arg(long, value_name = "JSON")]
    faults: Option<String>,
    /// Every kind of fault, each with this chance
    #[arg(long, value_name = "0..1")]
    storm: Option<f64>,
    /// What chance depends on
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let limits: Limits = parsed("--limits", &arguments.limits)?;
    let mut rules: Vec<Rule> = parsed("--faults", &arguments.faults)?;
    rules.extend(arguments.storm.map(Rule::storm).into_iter().flatten());
    let state = State::new(limits, Faults::new(arguments.seed, rules));
    state.take(parsed("--times", &arguments.times)?);
    let machines = if arguments.light {
        let mut light: Light = parsed("--simulate", &arguments.simulate)?;
        light.scale = arguments.scale;
        Machines::light(light)
    } else {
        Machines::real(arguments.bwrap)?
    };
    // A wave of thousands has as many connections.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files)?;
    let vercel = Vercel::start(arguments.port, state, machines)?;
    println!("export VERCEL_TOKEN={TOKEN} VERCEL_TEAM_ID={TEAM} VERCEL_PROJECT_ID={PROJECT}");
    println!(
        "# in evalwave.yml: sandbox: {{ kind: vercel, base-url: {} }}",
        vercel.base_url()
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(tokio::signal::ctrl_c())?;
    Ok(())
}

/// The value of an option, or what it is without one.
fn parsed<T: DeserializeOwned + Default>(option: &str, value: &Option<String>) -> anyhow::Result<T> {
    let parsed = value.as_deref().map(serde_json::from_str).transpose();
    Ok(parsed
        .with_context(|| format!("cannot read {option}"))?
        .unwrap_or_default())
}
