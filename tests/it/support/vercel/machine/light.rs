//! A machine on which commands take the time that they name and do nothing: thousands of them cost almost nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Job, Print};

/// How commands are simulated. A command line, a variable or a tag of the sandbox names the seconds as `takes-12.5s`
/// and the exit code as `exits-1`, which are words that the name of an eval may have in it. A command that names
/// nothing succeeds at once.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Light {
    /// What the seconds are multiplied with.
    pub(crate) scale: f64,
    /// What else commands do; the first that fits.
    pub(crate) rules: Vec<LightRule>,
    /// What reading finds: text by the end of the path.
    pub(crate) files: BTreeMap<String, String>,
}

/// What a command does.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct LightRule {
    /// What is in its command line.
    pub(crate) contains: String,
    /// Before they are scaled.
    #[serde(default)]
    pub(crate) seconds: f64,
    #[serde(default)]
    pub(crate) exit: i32,
    #[serde(default)]
    pub(crate) stdout: String,
}

impl Light {
    pub(super) async fn run(&self, job: &Job, signals: &mut UnboundedReceiver<i32>, print: &Print) -> i32 {
        let (seconds, exit, stdout) = self.plan(job);
        if !stdout.is_empty() {
            print("stdout", stdout);
        }
        let takes = Duration::try_from_secs_f64(seconds * self.scale).unwrap_or_default();
        if takes.is_zero() {
            return exit;
        }
        let killed_after = job.timeout.filter(|limit| *limit < takes);
        tokio::select! {
            () = tokio::time::sleep(killed_after.unwrap_or(takes)) => match killed_after {
                Some(_) => 128 + 9,
                None => exit,
            },
            Some(signal) = signals.recv() => 128 + signal,
        }
    }

    pub(super) fn file(&self, path: &str) -> Option<Vec<u8>> {
        let found = self.files.iter().find(|(end, _)| path.ends_with(end.as_str()));
        found.map(|(_, text)| text.clone().into_bytes())
    }

    fn plan(&self, job: &Job) -> (f64, i32, String) {
        let line = format!("{} {}", job.program, job.args.join(" "));
        if let Some(rule) = self.rules.iter().find(|rule| line.contains(&rule.contains)) {
            return (rule.seconds, rule.exit, rule.stdout.clone());
        }
        let words = || {
            std::iter::once(line.as_str())
                .chain(job.env.values().chain(job.tags.values()).map(String::as_str))
        };
        let seconds = words().find_map(|text| number(text, "takes-"));
        let exit = words().find_map(|text| number(text, "exits-"));
        (seconds.unwrap_or(0.0), exit.unwrap_or(0.0) as i32, String::new())
    }
}

/// The number after the first such word.
fn number(text: &str, word: &str) -> Option<f64> {
    let (_, rest) = text.split_once(word)?;
    let end = rest
        .find(|char: char| !char.is_ascii_digit() && char != '.')
        .unwrap_or(rest.len());
    rest[..end].trim_end_matches('.').parse().ok()
}
