//! Creations under way. Each comes to its end, whoever has gone meanwhile, and what it makes when nobody takes it is undone.
//! Knows nothing of what is created.

use std::io;
use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock, oneshot};

/// What is under way in one run. Held for reading by each, so that whoever has it for writing knows that nothing is.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay(Arc<RwLock<()>>);

impl UnderWay {
    /// Something is under way until this is dropped.
    pub(super) async fn begin(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.0).read_owned().await
    }

    /// Returns when nothing is under way.
    pub(super) async fn none(&self) {
        drop(self.0.write().await);
    }

    /// Runs `creation` to its end. Where nobody waits any more, `undo` has what it made, and is under way too.
    ///
    /// # Errors
    /// It has panicked.
    pub(super) async fn carry<T, Undone>(
        &self,
        creation: impl Future<Output = T> + Send + 'static,
        undo: impl FnOnce(T) -> Undone + Send + 'static,
    ) -> io::Result<T>
    where
        T: Send + 'static,
        Undone: Future<Output = ()> + Send,
    {
        let under_way = self.begin().await;
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            if let Err(made) = sender.send(creation.await) {
                undo(made).await;
            }
            drop(under_way);
        });
        receiver.await.map_err(io::Error::other)
    }
}
