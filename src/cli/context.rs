//! What the process was started with, read once.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::IsTerminal as _;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use crate::config::settings;
use crate::github::log;
use crate::report;
use crate::sandbox::vercel;

/// The process's surroundings.
#[derive(Clone, Debug)]
pub(super) struct Context {
    /// Its environment; variables that are not UTF-8 are left out.
    pub(super) environment: BTreeMap<String, String>,
    /// The inputs of the action; none but in the action.
    pub(super) inputs: Vec<(String, String)>,
    /// Where relative paths start.
    pub(super) current_dir: Utf8PathBuf,
    /// Where passing files go.
    pub(super) temp_dir: Utf8PathBuf,
    /// This very program.
    pub(super) program: Utf8PathBuf,
    /// Whether colours are wanted on standard output.
    pub(super) color: bool,
    /// What the engines of this process share.
    pub(super) shared: Shared,
    /// Whether standard output is a terminal.
    stdout_is_terminal: bool,
    /// Whether standard error is a terminal.
    stderr_is_terminal: bool,
}

/// What is one for a whole process, however many runs it makes.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    /// The account at Vercel.
    pub(super) vercel: Arc<OnceLock<Arc<vercel::Account>>>,
}

impl Context {
    /// Reads it all.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the process's surroundings"
    )]
    pub(super) fn of_process() -> anyhow::Result<Self> {
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .map(|(name, value)| (if cfg!(windows) { well_known(name) } else { name }, value))
            .collect();
        let utf8 =
            |path: std::path::PathBuf| Utf8PathBuf::try_from(path).map_err(|error| error.into_io_error());
        let current_dir = std::env::current_dir()
            .and_then(utf8)
            .context("cannot use the current directory")?;
        let temp_dir = utf8(std::env::temp_dir()).context("cannot use the temporary directory")?;
        let temp_dir = current_dir.join(temp_dir);
        let program = std::env::current_exe()
            .and_then(utf8)
            .context("cannot find this program's own file")?;
        let mut context = Self {
            color: false,
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            environment,
            inputs: Vec::new(),
            shared: Shared::default(),
            current_dir,
            temp_dir,
            program,
        };
        context.color = context.stdout_is_terminal && !context.no_color();
        Ok(context)
    }

    /// Whether no colours are wanted, terminal or not.
    pub(super) fn no_color(&self) -> bool {
        self.variable("NO_COLOR").is_some() || self.variable("TERM") == Some("dumb")
    }

    /// Whether standard error is a terminal on which what was written can be written over, with a person before it.
    pub(super) fn live_terminal(&self) -> bool {
        let in_ci = !matches!(self.variable("CI"), None | Some("false" | "0"));
        self.stderr_is_terminal && !in_ci && self.variable("TERM") != Some("dumb")
    }

    /// Whether the terminal, if one is written to, is to be given ASCII: its locale has no other signs.
    pub(super) fn stderr_in_ascii(&self) -> bool {
        self.stderr_is_terminal && !self.is_utf8()
    }

    /// A text for standard output, in signs that its terminal has: what is no terminal gets UTF-8. Nothing in it commands
    /// the runner of a workflow.
    pub(super) fn spelled(&self, text: &str) -> String {
        let text: String = text.split_inclusive('\n').map(log::line).collect();
        if self.stdout_is_terminal && !self.is_utf8() {
            report::ascii(&text)
        } else {
            text
        }
    }

    /// By the first of the variables that name the character set; Windows has no such thing.
    fn is_utf8(&self) -> bool {
        let named = ["LC_ALL", "LC_CTYPE", "LANG"];
        let locale = named.iter().find_map(|name| self.variable(name)).unwrap_or("C");
        let locale = locale.to_ascii_lowercase();
        cfg!(windows) || locale.contains("utf-8") || locale.contains("utf8")
    }

    /// The same with the inputs that the environment hands over.
    pub(super) fn with_inputs(&self) -> Self {
        Self {
            inputs: settings::inputs(&self.environment),
            ..self.clone()
        }
    }

    /// A variable; one that is empty or only white space counts as not set.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment
            .get(name)
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// Variables without which the system's own programs do not run: none but on Windows.
    pub(super) fn system_variables(&self) -> Vec<(String, String)> {
        let names: &[&str] = if cfg!(windows) { &WINDOWS } else { &[] };
        let found = names
            .iter()
            .filter_map(|name| self.environment.get_key_value(*name));
        found.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// A path of the command line, made absolute.
    pub(super) fn absolute(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.current_dir.join(path)
    }
}

/// What the system's own programs need on Windows.
const WINDOWS: [&str; 6] = [
    "SystemRoot",
    "SystemDrive",
    "windir",
    "ComSpec",
    "PATHEXT",
    "ProgramFiles",
];

/// A variable's name as it is looked up here: Windows, which does not tell names apart by case, has `Path`, and a shell on
/// it has `SYSTEMROOT`.
fn well_known(name: String) -> String {
    let known = WINDOWS
        .iter()
        .chain(&["PATH", "HOME", "LANG", "USERPROFILE"])
        .find(|known| known.eq_ignore_ascii_case(&name));
    known.map_or(name, |known| (*known).to_owned())
}

/// Now.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}

/// A name that no other run has: the time, and eight random digits.
pub(super) fn new_run_id(now: Timestamp) -> String {
    let random = random() as u32;
    format!("{}-{random:08x}", now.strftime("%Y%m%d-%H%M%S"))
}

/// A number that nobody can guess.
pub(super) fn random() -> u64 {
    // The standard library seeds its hash maps from the system's randomness.
    std::hash::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::well_known;

    #[test]
    fn windows_and_its_shells_name_what_is_looked_up_in_their_own_ways() {
        let names = ["Path", "SYSTEMROOT", "COMSPEC", "Home", "MyToken"];
        let known = names.map(|name| well_known(name.to_owned()));
        assert_eq!(known, ["PATH", "SystemRoot", "ComSpec", "HOME", "MyToken"]);
    }
}
