//! What a signal makes this process do. Knows nothing of what runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::tell;
use crate::catalog::Leash;
use crate::model::ExitCode;

/// SIGINT and SIGTERM; where there are none, Ctrl-C.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Watches them from now on.
    pub(super) fn watch() -> std::io::Result<Self> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The first one cancels what runs; before anything is `under_way` it ends this process. A second SIGINT ends this
    /// process at once: the supervisors of what runs see that and kill it, and what lies in the run directory is the run
    /// as far as it came.
    pub(super) async fn cancel(
        mut self,
        cancel: CancellationToken,
        leash: Arc<Leash>,
        under_way: Arc<AtomicBool>,
    ) {
        self.any().await;
        leash.pull();
        if under_way.load(Ordering::SeqCst) {
            tell("cancelling: nothing more starts, what runs is stopped");
            cancel.cancel();
            self.interrupt().await;
            tell("ended at once: what is left of sandboxes is for `evalwave cleanup`");
        } else {
            tell("cancelled: nothing was run");
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing is to be waited for: neither a reader of standard input nor a sandbox that will not go"
        )]
        std::process::exit(ExitCode::Cancelled.code().into());
    }

    #[cfg(unix)]
    async fn any(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(unix)]
    async fn interrupt(&mut self) {
        self.interrupt.recv().await;
    }

    #[cfg(not(unix))]
    async fn any(&mut self) {
        self.interrupt().await;
    }

    #[cfg(not(unix))]
    async fn interrupt(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Nothing can be watched: nothing comes.
            std::future::pending::<()>().await;
        }
    }
}
