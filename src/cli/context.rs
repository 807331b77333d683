//! What the process was started with, read once.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::IsTerminal as _;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use crate::config::settings;
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
        let plain = environment.get("NO_COLOR").is_some_and(|value| !value.is_empty());
        Ok(Self {
            color: !plain && std::io::stdout().is_terminal(),
            environment,
            inputs: Vec::new(),
            shared: Shared::default(),
            current_dir,
            temp_dir,
            program,
        })
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
        const WINDOWS: [&str; 6] = [
            "SystemRoot",
            "SystemDrive",
            "windir",
            "ComSpec",
            "PATHEXT",
            "ProgramFiles",
        ];
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
