//! Work that blocks until asynchronous work has done its part, such as a tar that is made while it is sent. Each has a
//! thread of its own: the runtime's blocking threads have a number, and what it waits for may need one of them.

use std::io;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Starts the work at once; the future is its end, and fails where the thread cannot be started or the work panics.
pub(super) fn bridged<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = io::Result<T>> {
    let (sender, end) = oneshot::channel();
    let runtime = Handle::current();
    let thread = std::thread::Builder::new()
        .name("bridge".to_owned())
        .spawn(move || {
            let _entered = runtime.enter();
            // With nobody there any more, the end is no longer of use.
            let _ = sender.send(work());
        });
    async move {
        thread?;
        end.await
            .map_err(|_| io::Error::other("the thread that does it has panicked"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;
    use tokio_util::io::SyncIoBridge;

    use super::bridged;

    #[test]
    fn work_that_waits_for_disk_work_takes_no_thread_from_it() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let read = runtime.block_on(async {
            let (mut sent, received) = tokio::io::duplex(16);
            let reading = bridged(move || std::io::read_to_string(SyncIoBridge::new(received)));
            let made = tokio::task::spawn_blocking(|| "made on disk".to_owned());
            let made = tokio::time::timeout(Duration::from_secs(60), made).await.unwrap();
            sent.write_all(made.unwrap().as_bytes()).await.unwrap();
            drop(sent);
            reading.await.unwrap().unwrap()
        });
        assert_eq!(read, "made on disk");
    }

    #[tokio::test]
    async fn work_that_panics_is_a_failure() {
        let error = bridged::<()>(|| panic!("on purpose")).await.unwrap_err();
        assert_eq!(error.to_string(), "the thread that does it has panicked");
    }
}
