//! How git is asked: by its own program, in one repository, without questions and without being led to another one.

use std::io;
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

/// How a git command ended.
#[derive(Debug)]
pub struct Ended {
    /// Whether its exit code was 0.
    pub success: bool,
    /// What it printed.
    pub output: String,
    /// What it wrote about what went wrong: its first fatal line, else its last one.
    pub detail: String,
}

/// Runs a git command to its end.
///
/// # Errors
/// Git cannot be started.
pub fn ask(directory: &Utf8Path, arguments: &[&str]) -> io::Result<Ended> {
    let output = command(directory, arguments).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let mut lines = errors.lines().map(str::trim);
    let detail = lines
        .clone()
        .find(|line| line.starts_with("fatal:"))
        .or_else(|| lines.rfind(|line| !line.is_empty()))
        .unwrap_or("no reason given");
    Ok(Ended {
        success: output.status.success(),
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
        detail: detail
            .chars()
            .filter(|character| !character.is_control())
            .collect(),
    })
}

/// The commit that a reference names, in full, or why there is none.
///
/// One that is not here is fetched from `origin`, without its history where the clone is shallow already: a full clone
/// would become shallow by that.
///
/// # Errors
/// Git cannot be started.
pub fn commit_or_fetch(directory: &Utf8Path, reference: &str) -> io::Result<Result<String, String>> {
    let resolve = |name: &str| {
        let ended = ask(
            directory,
            &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")],
        )?;
        Ok::<_, io::Error>(ended.success.then(|| ended.output.trim().to_owned()))
    };
    if let Some(commit) = resolve(reference)? {
        return Ok(Ok(commit));
    }
    // `origin/main` is our name for what `origin` itself calls `main`.
    let remote = reference.strip_prefix("refs/remotes/").unwrap_or(reference);
    let remote = remote.strip_prefix("origin/").unwrap_or(remote);
    if remote.is_empty()
        || remote.starts_with(['-', '+', '^'])
        || remote.contains(['*', '?', '[', '~', '^', '@'])
    {
        let why = "it is not the name of a branch, tag or commit there";
        return Ok(Err(why.to_owned()));
    }
    let shallow = ask(directory, &["rev-parse", "--is-shallow-repository"])?;
    let mut arguments = vec!["fetch", "--quiet", "--no-tags"];
    arguments.extend((shallow.output.trim() == "true").then_some("--depth=1"));
    arguments.extend(["origin", remote]);
    let fetched = ask(directory, &arguments)?;
    if !fetched.success {
        return Ok(Err(fetched.detail));
    }
    Ok(resolve("FETCH_HEAD")?.ok_or_else(|| "what was fetched is no commit".to_owned()))
}
