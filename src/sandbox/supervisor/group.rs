//! Supervision where there is no child subreaper (macOS, the BSDs): the command's process group is killed. Weaker than
//! on Linux: a process that has left the group with `setsid` survives, and nothing is confined.

use std::io;
use std::os::fd::BorrowedFd;
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Ended, Invocation, Report, Start, release_output, send, set_limits, start, wait_for_close};

/// Runs the command, and returns when its process group was killed.
pub(super) fn supervise(invocation: &Invocation, link: BorrowedFd<'_>) -> io::Result<()> {
    set_limits(invocation.open_files)?;
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
    let group = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the command has no process id"))?;
    let watched = link.try_clone_to_owned()?;
    let watch = thread::Builder::new().spawn(move || {
        wait_for_close(watched);
        kill(group);
    })?;

    let status = child.wait()?;
    if invocation.keep {
        let mut ended = Ended::new(status, 0);
        ended.kept = true;
        send(link, &Report::Ended(ended));
        release_output()?;
        // The watch ends when the link is closed.
        let _ = watch.join();
    } else {
        kill(group);
        send(link, &Report::Ended(Ended::new(status, 0)));
    }
    Ok(())
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
}
