//! A run of 100,000 attempts whose engine does nothing: what the run itself takes of memory, and how long its journal takes
//! to be read back. A table, and no verdict.
//!
//! `cargo bench --bench lost`.

#![expect(clippy::disallowed_methods, reason = "it measures by the clock")]

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use evalwave::config::settings::Given;
use evalwave::config::{Source, load};
use evalwave::model::{
    AttemptDetails, AttemptId, AttemptRecord, Boot, Event, Labels, LeftSandbox, Pair, PairId, Whereabouts,
    with_causes,
};
use evalwave::plan::{Experience, Request, Select, build};
use evalwave::redact::Redactor;
use evalwave::runner::{self, Job, RecordError, Recorder};
use evalwave::sandbox::{
    Backend, Capacity, Command, Exit, Ledger, Reaped, Reaper, Sandbox, SandboxError, SandboxSpec, Workspace,
};
use evalwave::store::{self, RunDir};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error>;

const CONFIG: &str = "version: 1\nsuite: { pairs: [] }\nattempt: { command: agent, format: exit-code }\nruns: 2\nstrategy: parallel\nconcurrency: 500\n";

/// Every command passes at once.
struct Nothing;

struct Empty(String);

#[async_trait]
impl Backend for Nothing {
    fn capacity(&self) -> Capacity {
        Capacity {
            running: None,
            starting: 64,
        }
    }

    async fn start(&self, spec: &SandboxSpec, _: &dyn Ledger) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(Empty(spec.name.clone())))
    }

    fn reaper(&self) -> &dyn Reaper {
        self
    }
}

#[async_trait]
impl Reaper for Nothing {
    fn whereabouts(&self) -> Whereabouts {
        Whereabouts::Local {
            temporary: "/nowhere".into(),
        }
    }

    async fn reap(&self, _: &str, _: &[LeftSandbox]) -> Result<Reaped, SandboxError> {
        Ok(Reaped::default())
    }
}

#[async_trait]
impl Sandbox for Empty {
    fn name(&self) -> &str {
        &self.0
    }

    fn boot(&self) -> Boot {
        Boot::Cold
    }

    fn confinement(&self) -> Vec<String> {
        Vec::new()
    }

    async fn upload(&mut self, _: &Workspace) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn remove(&mut self, _: &str) -> Result<(), SandboxError> {
        Ok(())
    }

    async fn exec(&mut self, _: &Command, _: &mpsc::Sender<Vec<u8>>) -> Result<Exit, SandboxError> {
        Ok(Exit::Code(0))
    }

    async fn download(
        &mut self,
        _: &Utf8Path,
        _: &mut (dyn AsyncWrite + Send + Unpin),
    ) -> Result<Option<()>, SandboxError> {
        Ok(None)
    }

    async fn stop(self: Box<Self>) -> Result<(), SandboxError> {
        Ok(())
    }
}

struct Kept(RunDir);

#[async_trait]
impl Recorder for Kept {
    async fn open_try(&self, attempt: &AttemptId, try_number: u32) -> Result<Utf8PathBuf, RecordError> {
        let opened = self.0.open_try(attempt, try_number).await;
        opened.map_err(|error| RecordError(with_causes(&error)))
    }

    async fn close_try(&self, record: &AttemptRecord, details: &AttemptDetails) -> Result<(), RecordError> {
        let closed = self.0.close_try(record, details).await;
        closed.map_err(|error| RecordError(with_causes(&error)))
    }

    async fn record(&self, event: &Event) -> Result<(), RecordError> {
        let recorded = self.0.record(event).await;
        recorded.map_err(|error| RecordError(with_causes(&error)))
    }
}

/// Most memory that this process has had so far, in MB.
fn peak_memory() -> Result<u64, Failure> {
    let status = fs_err::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    Ok(words.ok_or("no VmHWM")?.parse::<u64>()? >> 10)
}

fn run(attempts: usize, directory: &Utf8Path) -> Result<(), Failure> {
    let source = Source {
        name: "evalwave.yml",
        bytes: CONFIG.as_bytes(),
    };
    let config = load(Some(&source), &Given::default())?;
    let pair = |number: usize| -> Result<Pair, Failure> {
        Ok(Pair {
            id: PairId::new(
                &format!("experiment-{}", number % 20),
                &format!("eval-{number:06}"),
            )?,
            labels: Labels::default(),
        })
    };
    let pairs: Vec<Pair> = (0..attempts / 2).map(pair).collect::<Result<_, Failure>>()?;
    let plan = build(&Request {
        config: &config,
        pairs: &pairs,
        select: &Select::default(),
        capacity: None,
        experience: &Experience::default(),
        is_pinned: false,
    })?;
    drop(pairs);
    let recorder = Kept(RunDir::create(directory, true, &plan, &config.attempt)?);
    let job = Job {
        run_id: "bench".to_owned(),
        started_at: "2026-01-01T00:00:00Z".parse()?,
        now: jiff::Timestamp::default,
        earlier: None,
        commit: None,
        plan,
        attempt: config.attempt.clone(),
        env: Vec::new(),
        secrets: Vec::new(),
        redactor: Redactor::default(),
        rules: runner::rules(&config),
        price: config.price.clone(),
        retry: config.retry,
        workspace: Workspace {
            root: "/".into(),
            files: [].into(),
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let running = runner::run(
        Arc::new(job),
        Arc::new(Nothing),
        Arc::new(recorder),
        CancellationToken::new(),
    );
    let done = runtime.block_on(running);
    if done.pairs.iter().any(|pair| pair.records.len() != 2) {
        return Err("an attempt has no outcome".into());
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the table is what this is for")]
fn main() -> Result<(), Failure> {
    println!(
        "{:>10}{:>10}{:>14}{:>12}{:>14}",
        "attempts", "run", "peak MB", "journal MB", "replay"
    );
    for attempts in [1_000, 10_000, 100_000] {
        let place = tempfile::TempDir::new_in("/dev/shm")?;
        let directory = Utf8Path::from_path(place.path()).ok_or("no UTF-8")?.join("run");
        let begun = Instant::now();
        run(attempts, &directory)?;
        let (took, peak) = (begun.elapsed(), peak_memory()?);
        let journal = directory.join("journal.jsonl");
        let size = fs_err::metadata(&journal)?.len() >> 20;
        let begun = Instant::now();
        let replayed = store::replay(&journal)?;
        println!(
            "{attempts:>10}{:>9.1}s{peak:>14}{size:>12}{:>13.2}s",
            took.as_secs_f64(),
            begun.elapsed().as_secs_f64()
        );
        drop(replayed);
    }
    Ok(())
}
