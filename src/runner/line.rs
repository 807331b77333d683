//! The line of those that wait to start a sandbox. Knows nothing of what starts one.

use std::pin::Pin;
use std::sync::Arc;

use futures::FutureExt as _;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Where so many may be first at once. Whoever joins it earlier is first, whenever it comes to wait.
#[derive(Clone, Debug)]
pub(super) struct Line(Arc<Semaphore>);

/// A place in the line. Dropped, it is nobody's.
pub(super) struct Place(Pin<Box<dyn Future<Output = Turn> + Send>>);

/// Being first, until it is dropped. Nobody ever closes the semaphore.
pub(super) type Turn = Result<OwnedSemaphorePermit, AcquireError>;

impl Line {
    pub(super) fn new(first_at_once: usize) -> Self {
        Self(Arc::new(Semaphore::new(first_at_once)))
    }

    /// The place behind all that have joined.
    pub(super) fn join(&self) -> Place {
        let mut turn = Box::pin(Arc::clone(&self.0).acquire_owned());
        // It stands in the line once it was polled.
        match turn.as_mut().now_or_never() {
            Some(turn) => Place(Box::pin(std::future::ready(turn))),
            None => Place(turn),
        }
    }
}

impl Place {
    /// Waits to be first.
    pub(super) async fn turn(self) -> Turn {
        self.0.await
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;

    use super::Line;

    #[tokio::test]
    async fn who_joins_first_is_first_though_another_comes_to_wait_before_it() {
        let line = Line::new(1);
        let now = line.join().turn().await;
        let (second, third, fourth) = (line.join(), line.join(), line.join());
        let (mut fourth, mut third) = (Box::pin(fourth.turn()), Box::pin(third.turn()));
        assert!(poll!(&mut fourth).is_pending());
        assert!(poll!(&mut third).is_pending());
        drop(now);
        assert!(poll!(&mut fourth).is_pending());
        assert!(poll!(&mut third).is_pending());
        // It has gone without having waited.
        drop(second);
        assert!(poll!(&mut fourth).is_pending());
        assert!(poll!(&mut third).is_ready());
    }
}
