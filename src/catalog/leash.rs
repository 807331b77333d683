//! Ends the suite's own command when evalwave is told to end. Knows no signals.

use std::io;
use std::process::Child;
use std::sync::{Mutex, PoisonError};

/// Holds the command that prints the pairs while it runs.
#[derive(Debug, Default)]
pub struct Leash(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Free,
    /// A command runs; its process group has this number.
    Held(u32),
    /// Nothing is to run any more.
    Pulled,
}

impl Leash {
    /// Kills the command that runs with all of its process group; none is started from now on.
    pub fn pull(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Held(group) = std::mem::replace(&mut *state, State::Pulled) {
            kill_group(group);
        }
    }

    /// Starts a command that leads a process group of its own, and takes hold of it. One that is pulled meanwhile waits for
    /// that: nothing is ever started that nobody ends.
    ///
    /// # Errors
    /// It cannot be started, or is not to be: the leash was pulled.
    pub(super) fn hold(&self, start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Pulled) {
            return Err(io::Error::other("evalwave was told to end"));
        }
        let child = start()?;
        *state = State::Held(child.id());
        Ok(child)
    }

    /// Lets go of a command, before its number can be another process's.
    pub(super) fn release(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Held(_) = *state {
            *state = State::Free;
        }
    }
}

#[cfg(unix)]
fn kill_group(leader: u32) {
    let leader = i32::try_from(leader)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(leader) = leader {
        // It may have ended by itself in the meantime, which is as good.
        let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
    }
}

/// Elsewhere what is told to end evalwave is told to its whole console.
#[cfg(not(unix))]
fn kill_group(_leader: u32) {}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use super::Leash;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a process to be ended")]
    fn what_is_being_started_when_the_leash_is_pulled_is_ended_and_nothing_starts_after() {
        let leash = Leash::default();
        std::thread::scope(|scope| {
            let start = || {
                scope.spawn(|| leash.pull());
                std::thread::yield_now();
                Command::new("sleep").arg("1000").process_group(0).spawn()
            };
            let mut child = leash.hold(start).unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(9));
        });
        let after = leash.hold(|| panic!("started"));
        assert_eq!(after.unwrap_err().to_string(), "evalwave was told to end");
    }
}
