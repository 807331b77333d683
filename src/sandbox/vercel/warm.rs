//! Whether the sandboxes of a run start from a snapshot: as long as that works. Knows no snapshot but by its id.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// After so many failures the rest of the run starts from nothing.
const MOST_FAILURES: u32 = 3;

/// What sandboxes start from.
#[derive(Debug, Default)]
pub(super) struct WarmStart(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    snapshot: Option<String>,
    failures: u32,
    /// Why there is no snapshot, where one was asked for.
    why: Option<String>,
}

impl WarmStart {
    /// Lets sandboxes start from a snapshot.
    pub(super) fn from(&self, snapshot: String) {
        *self.state() = State {
            snapshot: Some(snapshot),
            failures: 0,
            why: None,
        };
    }

    /// Lets sandboxes start from nothing, and why.
    pub(super) fn cold(&self, why: String) {
        *self.state() = State {
            why: Some(why),
            ..State::default()
        };
    }

    /// The snapshot to start from now, or why there is none.
    pub(super) fn now(&self) -> Result<String, Option<String>> {
        let state = self.state();
        match &state.snapshot {
            Some(snapshot) if state.failures < MOST_FAILURES => Ok(snapshot.clone()),
            _ => Err(state.why.clone()),
        }
    }

    /// A sandbox could not start from the snapshot.
    pub(super) fn failed(&self, snapshot: &str, why: &str) {
        let mut state = self.state();
        if state.snapshot.as_deref() != Some(snapshot) {
            return;
        }
        state.failures += 1;
        if state.failures == MOST_FAILURES {
            state.why = Some(format!(
                "{MOST_FAILURES} sandboxes could not start from snapshot `{snapshot}`, the last: {why}"
            ));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::WarmStart;

    #[test]
    fn after_three_failures_the_rest_of_the_run_starts_from_nothing_and_says_why() {
        let warm = WarmStart::default();
        assert_eq!(warm.now(), Err(None));
        warm.from("snap_1".to_owned());
        for _ in 0..2 {
            warm.failed("snap_1", "gone");
            assert_eq!(warm.now().as_deref(), Ok("snap_1"));
        }
        warm.failed("snap_1", "gone");
        let why = warm.now().unwrap_err().unwrap();
        assert_eq!(
            why,
            "3 sandboxes could not start from snapshot `snap_1`, the last: gone"
        );
    }
}
