//! Work that blocks until asynchronous work has done its part, such as a tar that is made while it is sent. Each has a
//! thread of its own: the runtime's threads for disk work are few, and what it waits for may need one of them.

use std::io;

use tokio::sync::oneshot;

/// Starts the work at once; the future is its end.
pub(super) fn bridged<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> impl Future<Output = io::Result<T>> {
    let (sender, end) = oneshot::channel();
    let thread = std::thread::Builder::new().spawn(move || {
        // With nobody there any more, the end is no longer of use.
        let _ = sender.send(work());
    });
    async move {
        thread?;
        end.await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
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
            let mut received = SyncIoBridge::new(received);
            let reading = bridged(move || {
                let mut text = String::new();
                received.read_to_string(&mut text)?;
                Ok(text)
            });
            let made = tokio::task::spawn_blocking(|| "made on disk".to_owned());
            let made = tokio::time::timeout(Duration::from_secs(60), made).await.unwrap();
            sent.write_all(made.unwrap().as_bytes()).await.unwrap();
            drop(sent);
            reading.await.unwrap()
        });
        assert_eq!(read, "made on disk");
    }

    #[tokio::test]
    async fn work_that_panics_is_a_failure() {
        let ended = bridged::<()>(|| panic!("on purpose")).await;
        assert!(ended.is_err());
    }
}
