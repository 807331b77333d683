//! How git is asked: by its own program, in one repository, without questions and without being led to another one.

use std::process::{Command, Stdio};

use camino::Utf8Path;

/// Variables that git sets for hooks and aliases, or that bend its answers; they speak of another call.
const SCRUBBED: [&str; 17] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
];

/// A git command in the repository around `directory`.
#[expect(
    clippy::disallowed_methods,
    reason = "git alone knows what is tracked, ignored and changed, and what a reference is"
)]
pub fn command(directory: &Utf8Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    for name in SCRUBBED {
        command.env_remove(name);
    }
    command
        // Messages are matched, a fetch that asks for a password would wait for ever, and a look at the index must not
        // write it.
        .envs([
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
        ])
        .args(["-C", directory.as_str(), "-c", "core.quotePath=false"])
        .args(arguments)
        .stdin(Stdio::null());
    command
}
