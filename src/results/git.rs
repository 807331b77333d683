//! Results as they stand in a commit of a repository: asks git, and knows no format of results.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use camino::Utf8Path;

use super::error::{Problem, ResultsError};
use super::files::{self, Tree};
use super::{MAX_BYTES, read_capped};
use crate::git;
use crate::model::{Policy, ResultSet};

/// Reads `REF:PATH` of the repository around `directory`. A reference that is not there is fetched from `origin`.
pub(super) fn read(
    source: &str,
    specification: &str,
    directory: &Utf8Path,
    policy: Option<Policy>,
) -> Result<ResultSet, ResultsError> {
    let at = |problem: Problem| problem.at(source);
    let (reference, path) = split(specification).map_err(at)?;
    let repository = Repository { directory };
    let object = repository.commit(reference).map_err(at)?;
    let object = format!("{object}:{path}");
    let set = match repository.kind(&object).map_err(at)? {
        Kind::File => super::parse(source, &repository.blob(&object).map_err(at)?, policy)?,
        Kind::Directory => files::read(
            source,
            &mut TreeInCommit::open(&repository, object).map_err(at)?,
            policy,
        )?,
    };
    Ok(ResultSet {
        reference: Some(reference.to_owned()),
        ..set
    })
}

fn split(specification: &str) -> Result<(&str, &str), Problem> {
    let (reference, path) = specification.split_once(':').ok_or(Problem::GitForm)?;
    if reference.is_empty() || reference.starts_with('-') || specification.contains(char::is_control) {
        return Err(Problem::GitForm);
    }
    Ok((reference, path.trim_end_matches('/')))
}

enum Kind {
    File,
    Directory,
}

struct Repository<'a> {
    directory: &'a Utf8Path,
}

impl Repository<'_> {
    fn commit(&self, reference: &str) -> Result<String, Problem> {
        let repository = self.git(&["rev-parse", "--git-dir"])?;
        if !repository.success {
            return Err(Problem::NoRepository {
                directory: self.directory.to_string(),
                detail: repository.detail,
            });
        }
        git::commit_or_fetch(self.directory, reference)
            .map_err(Problem::GitMissing)?
            .map_err(|detail| Problem::NoReference {
                reference: reference.to_owned(),
                detail,
            })
    }

    fn kind(&self, object: &str) -> Result<Kind, Problem> {
        let ended = self.git(&["cat-file", "-t", object])?;
        match ended.output.trim() {
            "blob" => Ok(Kind::File),
            "tree" => Ok(Kind::Directory),
            _ => {
                let (commit, path) = object.split_once(':').unwrap_or((object, ""));
                Err(Problem::NotInCommit {
                    commit: commit.chars().take(7).collect(),
                    path: path.to_owned(),
                })
            }
        }
    }

    fn blob(&self, object: &str) -> Result<Vec<u8>, Problem> {
        let mut child = self
            .command(&["cat-file", "blob", object])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Problem::GitMissing)?;
        let bytes = child.stdout.take().map(|mut output| read_capped(&mut output));
        // Dropping the pipe ends a git that still writes beyond the cap.
        let status = child.wait()?;
        match bytes {
            Some(Ok(bytes)) if status.success() => Ok(bytes),
            Some(Err(problem)) => Err(problem),
            _ => Err(Problem::Git {
                command: "cat-file".to_owned(),
                detail: format!("no content of `{object}`"),
            }),
        }
    }

    fn git(&self, arguments: &[&str]) -> Result<git::Ended, Problem> {
        git::ask(self.directory, arguments).map_err(Problem::GitMissing)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        git::command(self.directory, arguments)
    }
}

/// A directory of a commit. One git process hands out its files, since a process a file would take a second for 237.
struct TreeInCommit {
    object: String,
    paths: Vec<String>,
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl TreeInCommit {
    fn open(repository: &Repository<'_>, object: String) -> Result<Self, Problem> {
        let listed = repository.git(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", &object])?;
        if !listed.success {
            return Err(Problem::Git {
                command: "ls-tree".to_owned(),
                detail: listed.detail,
            });
        }
        let mut paths: Vec<String> = listed
            .output
            .split('\0')
            .filter(|path| !path.is_empty() && !path.contains('\n'))
            .map(str::to_owned)
            .collect();
        paths.sort_unstable();
        let mut child = repository
            .command(&["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Problem::GitMissing)?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(requests), Some(replies)) => Ok(Self {
                object,
                paths,
                child,
                requests,
                replies: BufReader::new(replies),
            }),
            _ => Err(broken("it has no pipes")),
        }
    }
}

impl Tree for TreeInCommit {
    fn paths(&mut self) -> Result<Vec<String>, Problem> {
        Ok(std::mem::take(&mut self.paths))
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, Problem> {
        // `REF:` alone is the root, whose paths need no slash.
        let slash = if self.object.ends_with(':') { "" } else { "/" };
        writeln!(self.requests, "{}{slash}{path}", self.object)?;
        self.requests.flush()?;
        let mut header = String::new();
        self.replies.read_line(&mut header)?;
        let size: u64 = match header.trim_end().split(' ').collect::<Vec<_>>().as_slice() {
            [_, "blob", size] => size.parse().map_err(|_| broken(header.trim_end()))?,
            _ => return Err(broken(header.trim_end())),
        };
        if size > MAX_BYTES {
            // What comes next is the next file's.
            std::io::copy(&mut self.replies.by_ref().take(size + 1), &mut std::io::sink())?;
            return Err(Problem::TooLarge);
        }
        let mut bytes = Vec::new();
        self.replies.by_ref().take(size + 1).read_to_end(&mut bytes)?;
        // A newline follows each file.
        bytes.pop();
        Ok(bytes)
    }
}

impl Drop for TreeInCommit {
    fn drop(&mut self) {
        // It only waits for the next request; without a parent that waits for it, it would stay a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn broken(reply: &str) -> Problem {
    Problem::Git {
        command: "cat-file".to_owned(),
        detail: format!("unexpected answer `{reply}`"),
    }
}
