//! Supervision on Linux. As a child subreaper the supervisor inherits whatever the command leaves behind, also after
//! `setsid` and double forks, so that "no child left" means "no descendant left".

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fs_err::File;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, WaitOptions};

use super::{
    Ended, Invocation, Report, Start, confine, nowhere, release_output, send, set_limits, start, tree,
};

/// Threads here do next to nothing; a small stack is one less large mapping to set up.
const STACK: usize = 64 * 1024;

/// Set once evalwave has closed the link or gone.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs the command and returns when nothing is left of it, also where it cannot be looked after to its end.
pub(super) fn supervise(invocation: &Invocation) -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_limits(invocation.open_files)?;
    // Where there may be no more threads or open files, it has to be found out before anything runs.
    let nowhere = invocation.keep.then(nowhere).transpose()?;
    thread::Builder::new().stack_size(STACK).spawn(kill_on_close)?;

    let ran = run(invocation, nowhere);
    if ran.is_err() {
        // What went wrong is to be told, not what else does.
        let _ = kill_all();
    }
    ran
}

fn run(invocation: &Invocation, nowhere: Option<File>) -> io::Result<()> {
    let (started, confinement) = start_confined(invocation)?;
    let stdin = io::stdin();
    send(stdin.as_fd(), &Report::Started { confinement });
    let child = match started {
        Start::Running(child) => pid(child.id())?,
        Start::NoProgram { code } => {
            let status = ExitStatus::from_raw(code << 8);
            send(stdin.as_fd(), &Report::Ended(Ended::new(status, 0)));
            return Ok(());
        }
    };
    // The link may have been closed before there was anything to kill.
    if CLOSED.load(Ordering::SeqCst) {
        strike_all();
    }

    let status = wait_for(child)?;
    let mut ended = Ended::new(status, 0);
    if let Some(nowhere) = nowhere
        && !reap_ready()?
    {
        ended.kept = true;
        send(stdin.as_fd(), &Report::Ended(ended));
        release_output(&nowhere)?;
        wait_for_close()?;
        kill_all()?;
    } else {
        ended.survivors = kill_all()?;
        send(stdin.as_fd(), &Report::Ended(ended));
    }
    Ok(())
}

/// Confines a thread and starts the command from it: the kernel confines threads, so that the command is held and the
/// supervisor is not. From within, the supervisor can then neither be read nor signalled.
fn start_confined(invocation: &Invocation) -> io::Result<(Start, Vec<String>)> {
    let Some(confinement) = &invocation.confinement else {
        return Ok((
            start(&invocation.argv)?,
            vec!["not confined: `landlock: off`".to_owned()],
        ));
    };
    thread::scope(|scope| {
        let confined = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
            let words = confine::this_thread(confinement)?;
            Ok((start(&invocation.argv)?, words))
        })?;
        confined
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("cannot confine the command")))
    })
}

/// Kills everything as soon as the link closes; the main thread, woken by the first death, sees to the rest.
fn kill_on_close() {
    super::wait_for_close(io::stdin().as_fd());
    CLOSED.store(true, Ordering::SeqCst);
    strike_all();
}

/// Kills until nothing more is found.
fn strike_all() {
    let mut known = HashSet::new();
    while tree::strike(&mut known).killed > 0 {}
}

/// Reaps until the command itself has ended. Orphans are reaped on the way, as init would: a script that waits for a
/// daemon to vanish must not see its zombie for ever.
fn wait_for(child: Pid) -> io::Result<ExitStatus> {
    loop {
        match reap(WaitOptions::empty())? {
            Reaped::Process(pid, status) if pid == child => return Ok(status),
            Reaped::Process(..) | Reaped::NoneReady => {}
            Reaped::NoneLeft => return Err(io::Error::other("cannot learn how the command ended")),
        }
    }
}

/// Reaps until the link is closed, or no daemon is left.
fn wait_for_close() -> io::Result<()> {
    while !CLOSED.load(Ordering::SeqCst) {
        if matches!(reap(WaitOptions::empty())?, Reaped::NoneLeft) {
            break;
        }
    }
    Ok(())
}

/// Kills until no descendant is left. Returns how many cannot be killed.
fn kill_all() -> io::Result<usize> {
    let mut known = HashSet::new();
    loop {
        // Almost always nothing is left, and then /proc is not looked at.
        if reap_ready()? {
            return Ok(0);
        }
        let strike = tree::strike(&mut known);
        if strike.killed == 0 && strike.refused > 0 && strike.dying == 0 {
            return Ok(strike.refused);
        }
        reap(WaitOptions::empty())?;
    }
}

/// Reaps what has ended. Returns whether no child is left.
fn reap_ready() -> io::Result<bool> {
    loop {
        match reap(WaitOptions::NOHANG)? {
            Reaped::NoneLeft => return Ok(true),
            Reaped::NoneReady => return Ok(false),
            Reaped::Process(..) => {}
        }
    }
}

enum Reaped {
    Process(Pid, ExitStatus),
    NoneReady,
    NoneLeft,
}

fn reap(options: WaitOptions) -> io::Result<Reaped> {
    loop {
        return match rustix::process::wait(options) {
            Ok(Some((pid, status))) => Ok(Reaped::Process(pid, ExitStatus::from_raw(status.as_raw()))),
            Ok(None) => Ok(Reaped::NoneReady),
            Err(Errno::CHILD) => Ok(Reaped::NoneLeft),
            Err(Errno::INTR) => continue,
            Err(error) => Err(error.into()),
        };
    }
}

fn pid(raw: u32) -> io::Result<Pid> {
    i32::try_from(raw)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the command has no process id"))
}
