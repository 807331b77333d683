//! Where the workflow of a configuration belongs: the root of its repository, and the branch that pull requests are
//! compared with. Writes nothing.

use camino::{Utf8Path, Utf8PathBuf};

use crate::{catalog, git};

/// What git says of a directory.
pub(super) struct Place {
    /// From the directory up to the root of its repository; empty is that root itself, or no repository.
    pub(super) up: Utf8PathBuf,
    /// From there down again, with `/` at its end; empty where `up` is.
    pub(super) down: String,
    /// The branch.
    pub(super) branch: String,
}

impl Place {
    pub(super) fn of(directory: &Utf8Path) -> Self {
        let default = catalog::default_branch(directory);
        let default = default.and_then(|branch| Some(branch.strip_prefix("origin/")?.to_owned()));
        let current = || ask(directory, &["symbolic-ref", "--short", "HEAD"]);
        let branch = default.or_else(current).filter(|branch| is_plain(branch));
        let down = ask(directory, &["rev-parse", "--show-prefix"]).unwrap_or_default();
        Self {
            up: down.split_terminator('/').map(|_| "..").collect(),
            down,
            branch: branch.unwrap_or_else(|| "main".to_owned()),
        }
    }
}

/// What git answers; `None` where it has no answer.
fn ask(directory: &Utf8Path, arguments: &[&str]) -> Option<String> {
    let output = git::command(directory, arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.trim_end_matches(['\n', '\r']);
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}

/// Whether a name can stand in a workflow as it is, between quotes.
pub(super) fn is_plain(name: &str) -> bool {
    name.chars()
        .all(|char| char.is_ascii_alphanumeric() || "._-/".contains(char))
}
