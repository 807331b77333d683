//! Ends the suite's own command when evalwave is told to end. Knows no signals.

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
    /// Kills the command that runs with all of its process group, and any that is started from now on.
    pub fn pull(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Held(group) = std::mem::replace(&mut *state, State::Pulled) {
            kill_group(group);
        }
    }

    /// Takes hold of a command that leads a process group of its own.
    pub(super) fn hold(&self, child: &mut Child) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::Pulled => {
                kill_group(child.id());
                // Where there are no process groups, this is all that can be done.
                let _ = child.kill();
            }
            State::Free | State::Held(_) => *state = State::Held(child.id()),
        }
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
