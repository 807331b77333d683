//! The step's log and files: everything that is said goes through here, without secrets and without commands to the
//! runner that are not ours. Knows nothing of what is said.

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};

use crate::cli::context::{self, Context};
use crate::cli::print;
use crate::github::log::{self, Loudness, MOST_ANNOTATIONS};
use crate::redact::{MIN_SECRET, Redactor};
use crate::report::plain;

/// GitHub drops a summary of 1 MiB whole.
pub(super) const MOST_SUMMARY_BYTES: usize = 900 << 10;

/// A step of a workflow.
#[derive(Clone)]
pub(super) struct Step {
    output: Option<Utf8PathBuf>,
    summary: Option<Utf8PathBuf>,
    path: Option<Utf8PathBuf>,
    /// A runner reads along: what it is told to mask it does not show.
    is_watched: bool,
    hidden: Vec<String>,
    redactor: Redactor,
    annotations: Arc<Mutex<Vec<Loudness>>>,
}

impl Step {
    pub(super) fn of(context: &Context) -> Self {
        let file = |name| context.variable(name).map(Utf8PathBuf::from);
        Self {
            output: file("GITHUB_OUTPUT"),
            summary: file("GITHUB_STEP_SUMMARY"),
            path: file("GITHUB_PATH"),
            is_watched: context.variable("GITHUB_ACTIONS").is_some(),
            hidden: Vec::new(),
            redactor: Redactor::default(),
            annotations: Arc::default(),
        }
    }

    /// Takes values out of all that is said from here on, and has the runner do so for all that others say.
    pub(super) fn hide<'a>(&mut self, secrets: impl IntoIterator<Item = &'a str>) {
        for secret in secrets {
            let lines = secret
                .lines()
                .map(str::trim)
                .filter(|line| line.len() >= MIN_SECRET);
            for line in lines.filter(|_| self.is_watched) {
                show(&log::mask(line));
            }
            self.hidden.push(secret.to_owned());
        }
        self.redactor = Redactor::new(self.hidden.iter().map(String::as_str));
    }

    /// Says something, in as many lines as it has.
    pub(super) fn say(&self, text: &str) {
        let lines: Vec<String> = text.lines().map(|line| self.harmless(line)).collect();
        show(&lines.join("\n"));
    }

    /// Says several things under a title that they fold into, in one piece.
    pub(super) fn group(&self, title: &str, lines: &[String]) {
        let mut text = vec![log::group(&self.harmless(title))];
        text.extend(lines.iter().map(|line| self.harmless(line)));
        text.push(log::END_GROUP.to_owned());
        show(&text.join("\n"));
    }

    /// Says something that only a log with debugging shows.
    pub(super) fn debug(&self, text: &str) {
        show(&log::debug(&self.harmless(text)));
    }

    /// Says something beside the workflow too; beyond what GitHub keeps, in the log alone.
    pub(super) fn annotate(&self, loudness: Loudness, title: &str, message: &str) {
        let full = match self.annotations.lock() {
            Ok(mut made) => {
                let full = made.iter().filter(|each| **each == loudness).count() >= MOST_ANNOTATIONS;
                made.push(loudness);
                full
            }
            Err(_) => true,
        };
        let lines: Vec<String> = message
            .lines()
            .map(|line| plain(&self.redactor.text(line)))
            .collect();
        let message = lines.join("\n");
        let title = plain(&self.redactor.text(title));
        if full {
            self.say(&format!("{title}: {message}"));
        } else {
            show(&log::annotation(loudness, &title, &message));
        }
    }

    /// Sets outputs of the step.
    pub(super) fn outputs(&self, outputs: &[(&str, String)]) {
        let Some(path) = &self.output else { return };
        let delimiter = format!("evalwave_{:016x}{:016x}", context::random(), context::random());
        let entries = outputs
            .iter()
            .filter_map(|(name, value)| log::output(name, &self.redactor.text(value), &delimiter));
        self.append(path, &entries.collect::<String>(), "the outputs");
    }

    /// Adds to the summary of the step; `render` gives its text in at most so many bytes.
    pub(super) fn summarize(&self, render: impl Fn(usize) -> String) {
        let Some(path) = &self.summary else { return };
        let there = fs_err::metadata(path).map_or(0, |metadata| metadata.len());
        let there = usize::try_from(there).unwrap_or(usize::MAX);
        let text = render(MOST_SUMMARY_BYTES.saturating_sub(there).saturating_sub(2));
        self.append(path, &format!("{}\n", self.redactor.text(&text)), "the summary");
    }

    /// Adds a directory to the PATH of the steps that follow.
    ///
    /// # Errors
    /// Nobody reads such directories, or they cannot be told.
    pub(super) fn add_path(&self, directory: &Utf8Path) -> anyhow::Result<()> {
        let path = self.path.as_ref().context(
            "`GITHUB_PATH` is not set: there are no steps that follow\noutside a workflow, put evalwave on the PATH by hand",
        )?;
        let mut file = fs_err::OpenOptions::new().create(true).append(true).open(path)?;
        Ok(writeln!(file, "{directory}")?)
    }

    /// A text without what is hidden.
    pub(super) fn clean(&self, text: &str) -> String {
        self.redactor.text(text).into_owned()
    }

    fn append(&self, path: &Utf8PathBuf, text: &str, what: &str) {
        let file = fs_err::OpenOptions::new().create(true).append(true).open(path);
        if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
            let message = format!("cannot write {what} of the step: {error}");
            self.annotate(Loudness::Warning, "evalwave", &message);
        }
    }

    fn harmless(&self, text: &str) -> String {
        log::line(&plain(&self.redactor.text(text)))
    }
}

fn show(text: &str) {
    // Nobody is left to tell where standard output is gone, and the run goes on.
    let _ = print(&format!("{text}\n"));
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::{MOST_SUMMARY_BYTES, Step};
    use crate::redact::Redactor;

    fn step(summary: Utf8PathBuf) -> Step {
        Step {
            output: None,
            summary: Some(summary),
            path: None,
            is_watched: false,
            hidden: Vec::new(),
            redactor: Redactor::default(),
            annotations: std::sync::Arc::default(),
        }
    }

    #[test]
    fn a_summary_leaves_room_for_what_is_there_already() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = Utf8PathBuf::try_from(directory.path().join("summary")).unwrap();
        let step = step(path.clone());
        step.summarize(|limit| "a".repeat(limit.min(500 << 10)));
        step.summarize(|limit| "b".repeat(limit));
        let length = fs_err::metadata(&path).unwrap().len() as usize;
        assert!(
            length <= MOST_SUMMARY_BYTES && length > MOST_SUMMARY_BYTES - 10,
            "{length}"
        );
        step.summarize(|limit| "c".repeat(limit));
        assert!(!fs_err::read_to_string(&path).unwrap().contains('c'));
    }
}
