//! Where creations wait for their turn: for a place among those that run, for the pace, and for the gate. Knows nothing
//! of how a sandbox is created.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Jitter;
use super::pacer::{self, Pacer, Rates};
use super::running::Running;

/// The line of an engine's creations, and what they share.
#[derive(Clone, Debug)]
pub(in crate::sandbox) struct Creations(Arc<Shared>);

/// What an engine allows.
#[derive(Clone, Copy, Debug)]
pub(in crate::sandbox) struct Throttles {
    /// Most sandboxes that run at once.
    pub(in crate::sandbox) running: usize,
    /// How fast they are created.
    pub(in crate::sandbox) rates: Rates,
    /// Where chance starts.
    pub(in crate::sandbox) seed: u64,
}

#[derive(Debug)]
struct Shared {
    begun: Instant,
    /// Only whoever is first in a line waits for something to change. Two lines: those that have a place and ask again
    /// do not stand behind those that wait for one, which may be theirs.
    for_place: tokio::sync::Mutex<()>,
    for_turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    running: Running,
    pacer: Pacer,
}

/// A place among the running, until it is dropped.
#[derive(Debug)]
pub(in crate::sandbox) struct Admission(Arc<Shared>);

/// The turn of one request that creates. Dropped without a word, its fate is unknown.
#[derive(Debug)]
pub(in crate::sandbox) struct Turn {
    shared: Arc<Shared>,
    probe: bool,
}

impl Creations {
    /// An empty line.
    pub(in crate::sandbox) fn new(throttles: Throttles) -> Self {
        Self(Arc::new(Shared {
            begun: Instant::now(),
            for_place: tokio::sync::Mutex::new(()),
            for_turn: tokio::sync::Mutex::new(()),
            state: Mutex::new(State {
                running: Running::new(throttles.running),
                pacer: Pacer::new(throttles.rates, Jitter::new(throttles.seed)),
            }),
            changed: Notify::new(),
        }))
    }

    /// Waits for a place among the running, and for the turn to create a sandbox of `vcpus`.
    pub(in crate::sandbox) async fn admit(&self, vcpus: u32) -> (Admission, Turn) {
        let first = self.0.for_place.lock().await;
        self.0.until(|state, now| state.running.take(now)).await;
        drop(first);
        // From here on the place is given back however this ends.
        let admission = Admission(Arc::clone(&self.0));
        let turn = self.again(vcpus).await;
        (admission, turn)
    }

    /// Waits for the turn to ask once more, for a sandbox that has its place.
    pub(in crate::sandbox) async fn again(&self, vcpus: u32) -> Turn {
        let _first = self.0.for_turn.lock().await;
        let turn = self.0.until(|state, now| match state.pacer.turn(vcpus, now) {
            pacer::Turn::Now { probe } => Ok(probe),
            pacer::Turn::At(at) => Err(Some(at)),
            pacer::Turn::AfterProbe => Err(None),
        });
        let probe = turn.await;
        Turn {
            shared: Arc::clone(&self.0),
            probe,
        }
    }
}

impl Turn {
    /// The engine refused for now: everybody waits.
    pub(in crate::sandbox) fn refused(mut self, retry_after: Option<Duration>) {
        self.probe = false;
        let now = self.shared.now();
        let mut state = self.shared.state();
        state.running.throttled(now);
        state.pacer.refused(retry_after, now);
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// The engine did not refuse for now.
    pub(in crate::sandbox) fn passed(mut self) {
        if std::mem::take(&mut self.probe) {
            self.shared.state().pacer.probe_passed();
            self.shared.changed.notify_waiters();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.probe {
            let now = self.shared.now();
            self.shared.state().pacer.probe_lost(now);
            self.shared.changed.notify_waiters();
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.0.state().running.release();
        self.0.changed.notify_waiters();
    }
}

impl Shared {
    /// Asks until the answer is yes: again when the time comes that a no names, and whenever something has changed.
    async fn until<T>(&self, mut ask: impl FnMut(&mut State, Duration) -> Result<T, Option<Duration>>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Whatever changes from here on is not missed.
            changed.as_mut().enable();
            let answer = ask(&mut self.state(), self.now());
            match answer {
                Ok(yes) => return yes,
                Err(None) => changed.await,
                Err(Some(at)) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(self.begun + at) => {}
                    }
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
