//! What happens once a run and before its first attempt: the engine makes ready what sandboxes start from.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::attempt::OUTPUT_BACKLOG;
use super::environment;
use super::failure::within;
use super::ledger::Account;
use super::{Job, Recorder};
use crate::aggregate::Failure;
use crate::config::template::Values;
use crate::model::{Event, Phase};
use crate::plan::sandboxes;
use crate::sandbox::{Backend, Command, SandboxSpec, Setup, Warm};

/// Longest line of its progress that is told.
const LONGEST_LINE: usize = 1_000;

/// Lets the engine do it, and tells every line that it says.
pub(super) async fn prepare(
    job: &Job,
    backend: &dyn Backend,
    account: &Account,
    recorder: &Arc<dyn Recorder>,
) -> Result<Warm, Failure> {
    let setup = setup(job);
    let limits = job.attempt.phases;
    let (output, mut chunks) = mpsc::channel(OUTPUT_BACKLOG);
    let preparing = async {
        let output = output;
        // Each step has its own limit: an image, its setup, and the workspace in it.
        let limit = limits.provision + limits.setup * 2;
        within(limit, Phase::Provision, backend.prepare(&setup, account, &output)).await
    };
    let telling = async {
        let mut lines = Lines::default();
        while let Some(chunk) = chunks.recv().await {
            for line in lines.push(&chunk) {
                tell(&line, job, recorder).await;
            }
        }
        if let Some(line) = lines.rest() {
            tell(&line, job, recorder).await;
        }
    };
    tokio::join!(preparing, telling).0
}

/// A line that cannot be kept is not missed.
async fn tell(line: &str, job: &Job, recorder: &Arc<dyn Recorder>) {
    let line = job.redactor.text(line).into_owned();
    let _ = recorder.record(&Event::Preparing { line }).await;
}

/// What all sandboxes of the run have in common.
pub(super) fn setup(job: &Job) -> Setup {
    let command = job.attempt.setup.as_ref().and_then(|template| {
        // A placeholder would make it another command for each attempt.
        let values = Values::default();
        Some(Command {
            line: template.render(&values).ok()?,
            env: environment::variables(job, &values, 1, false).ok()?,
            keeps_daemons: false,
        })
    });
    Setup {
        spec: spec(job, "setup", Vec::new()),
        command,
        workspace: job.workspace.clone(),
        limit: job.attempt.phases.setup,
        sandboxes: sandboxes(&job.plan).min(job.plan.attempts().saturating_sub(job.kept())),
    }
}

/// A sandbox of the run that is started now; `name` tells it from the others.
pub(super) fn spec(job: &Job, name: &str, mut labels: Vec<(&'static str, String)>) -> SandboxSpec {
    let attempt = &job.attempt;
    let phases = attempt.phases;
    // A sandbox may serve all attempts of its pair.
    let each = attempt.timeout + attempt.grace + phases.collect;
    let limit = phases.provision * 2 + phases.setup * 2 + each * job.plan.runs;
    let now = (job.now)();
    let expires = now.checked_add(limit).unwrap_or(now);
    labels.push(("expires", expires.to_string()));
    SandboxSpec {
        name: format!("{}-{name}", job.run_id),
        run_id: job.run_id.clone(),
        labels,
        limit,
    }
}

/// Cuts output into lines; a carriage return ends one too.
#[derive(Debug, Default)]
struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    fn push(&mut self, chunk: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(chunk);
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let Some(last) = self.rest.iter().rposition(ends) else {
            if self.rest.len() < LONGEST_LINE {
                return Vec::new();
            }
            return self.rest().into_iter().collect();
        };
        let rest = self.rest.split_off(last + 1);
        let whole = std::mem::replace(&mut self.rest, rest);
        whole.split(ends).filter_map(line).collect()
    }

    fn rest(&mut self) -> Option<String> {
        line(&std::mem::take(&mut self.rest))
    }
}

fn line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.chars().take(LONGEST_LINE).collect())
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn progress_is_told_in_lines_however_it_comes() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"pull"), Vec::<String>::new());
        assert_eq!(lines.push(b"ing\r\n\r\n50 %\r100 %"), ["pulling", "50 %"]);
        assert_eq!(lines.rest().as_deref(), Some("100 %"));
        assert_eq!(lines.rest(), None);
        assert_eq!(lines.push(&[b'x'; 5000])[0].len(), 1000);
    }
}
