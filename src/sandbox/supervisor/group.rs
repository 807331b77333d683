//! Supervision where there is no child subreaper (macOS, the BSDs): the command's process group is killed. Weaker than
//! on Linux: a process that has left the group with `setsid` survives, and nothing is confined.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    Ended, Invocation, Report, Start, nowhere, release_output, send, set_limits, start, wait_for_close,
};

/// Runs the command, and returns when its process group was killed.
pub(super) fn supervise(invocation: &Invocation, link: BorrowedFd<'_>) -> io::Result<()> {
    set_limits(invocation.open_files)?;
    // Where there may be no more threads or open files, it has to be found out before anything runs.
    let nowhere = invocation.keep.then(nowhere).transpose()?;
    let watched = link.try_clone_to_owned()?;
    let group = Arc::new(Group::default());
    let closing = Arc::clone(&group);
    let watch = thread::Builder::new().spawn(move || {
        wait_for_close(watched);
        closing.close();
    })?;

    let started = start(&invocation.argv)?;
    let confinement = vec!["not confined: this system offers nothing for it".to_owned()];
    send(link, &Report::Started { confinement });
    let mut child = match started {
        Start::Running(child) => child,
        Start::NoProgram { code } => {
            let ended = Ended {
                code: Some(code),
                signal: None,
                survivors: 0,
                kept: false,
            };
            send(link, &Report::Ended(ended));
            return Ok(());
        }
    };
    let leader = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the command has no process id"))?;
    group.begin(leader);

    let waited = child.wait();
    match (waited, nowhere) {
        (Ok(status), Some(nowhere)) => {
            let mut ended = Ended::new(status, 0);
            ended.kept = true;
            send(link, &Report::Ended(ended));
            if let Err(error) = release_output(&nowhere) {
                kill(leader);
                return Err(error);
            }
            // The watch ends when the link is closed.
            let _ = watch.join();
            Ok(())
        }
        (waited, _) => {
            kill(leader);
            send(link, &Report::Ended(Ended::new(waited?, 0)));
            Ok(())
        }
    }
}

/// The command's process group, which may be there before or after it is to be killed.
#[derive(Debug, Default)]
struct Group(Mutex<State>);

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Awaited,
    Running(Pid),
    Closed,
}

impl Group {
    fn begin(&self, leader: Pid) {
        if let State::Closed = self.replace(State::Running(leader)) {
            kill(leader);
        }
    }

    fn close(&self) {
        if let State::Running(leader) = self.replace(State::Closed) {
            kill(leader);
        }
    }

    fn replace(&self, state: State) -> State {
        std::mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), state)
    }
}

/// An empty group is the usual case, and no failure.
fn kill(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::supervise;
    use crate::sandbox::supervisor::{Ended, Invocation, Report};

    fn invocation(script: &str) -> Invocation {
        Invocation {
            confinement: None,
            keep: false,
            open_files: None,
            argv: vec!["sh".into(), "-c".into(), script.into()],
        }
    }

    #[test]
    fn the_exit_code_is_reported_once_the_group_is_killed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        supervise(&invocation("sleep 1717 >/dev/null 2>&1 & exit 3"), theirs.as_fd()).unwrap();
        let mut lines = BufReader::new(ours).lines();
        lines.next().unwrap().unwrap();
        assert_eq!(
            serde_json::from_str::<Report>(&lines.next().unwrap().unwrap()).unwrap(),
            Report::Ended(Ended {
                code: Some(3),
                signal: None,
                survivors: 0,
                kept: false,
            })
        );
    }

    #[test]
    fn a_closed_link_ends_the_command() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let supervisor =
            thread::spawn(move || supervise(&invocation("exec sleep 1717 >/dev/null 2>&1"), theirs.as_fd()));
        let mut lines = BufReader::new(ours).lines();
        lines.next().unwrap().unwrap();
        drop(lines);
        supervisor.join().unwrap().unwrap();
    }

    #[test]
    fn a_link_that_is_closed_already_ends_the_command_too() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        supervise(&invocation("exec sleep 1717 >/dev/null 2>&1"), theirs.as_fd()).unwrap();
    }
}
