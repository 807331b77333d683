//! A container that is still being created when nobody wants it any more.

use std::sync::Arc;
use std::time::Duration;

use evalwave::sandbox::Backend as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Notify;

use super::Bench;
use crate::support::docker::containers;
use crate::support::sandbox::Remembered;

/// Far longer than an engine takes to say which containers it has.
const A_WHILE: Duration = Duration::from_secs(1);

/// In front of an engine, to which creations go no sooner than they may.
#[derive(Default)]
struct Gate {
    /// A creation has been asked for.
    asked: Notify,
    /// It may go on.
    may_go_on: Notify,
}

impl Gate {
    /// Gives the address.
    async fn open(self: &Arc<Self>, engine: &str) -> String {
        let socket = engine.strip_prefix("unix://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let gate = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let engine = UnixStream::connect(&socket).await.unwrap();
                tokio::spawn(Arc::clone(&gate).pass(client, engine));
            }
        });
        address
    }

    /// The engine does what it was asked for, whether or not the client is there to hear of it.
    async fn pass(self: Arc<Self>, client: TcpStream, engine: UnixStream) {
        let (mut requests, mut to_client) = client.into_split();
        let (mut answers, mut to_engine) = engine.into_split();
        let answering = async {
            let mut buffer = [0; 16 * 1024];
            while let Ok(read @ 1..) = answers.read(&mut buffer).await {
                let _ = to_client.write_all(&buffer[..read]).await;
            }
        };
        let asking = async {
            let mut buffer = [0; 16 * 1024];
            while let Ok(read @ 1..) = requests.read(&mut buffer).await {
                let create: &[u8] = b"/containers/create";
                if buffer[..read].windows(create.len()).any(|part| part == create) {
                    self.asked.notify_one();
                    self.may_go_on.notified().await;
                }
                if to_engine.write_all(&buffer[..read]).await.is_err() {
                    break;
                }
            }
        };
        tokio::join!(answering, asking);
    }
}

#[tokio::test]
async fn one_that_is_being_created_when_the_run_is_cancelled_is_not_called_gone_before_it_is() {
    let Some(mut bench) = Bench::new() else { return };
    let engine = bench.host.clone();
    let gate = Arc::new(Gate::default());
    bench.host = gate.open(&engine).await;
    let backend = bench.backend();
    let (spec, ledger) = (bench.spec("a"), Remembered::default());
    tokio::select! {
        _ = backend.start(&spec, &ledger) => panic!("it is held up"),
        () = gate.asked.notified() => {}
    }
    let mut reaping = backend.reaper().reap(&bench.run_id, &[]);
    let early = tokio::time::timeout(A_WHILE, &mut reaping).await;
    assert!(early.is_err(), "the engine has yet to create one: {early:?}");
    gate.may_go_on.notify_one();
    let reaped = reaping.await.unwrap();
    assert!(reaped.failed.is_empty(), "{reaped:?}");
    assert_eq!(containers(&engine, &bench.run_id).await.len(), 0);
}
