//! A Vercel that holds sandboxes: plain state under a thin skin of HTTP, on a port of its own. It runs commands for
//! real or lets them pass by their duration alone, shows the faults that it is told to, and counts what it is asked.
//! Vercel's official client is the judge of how faithful it is.

mod answer;
mod commands;
mod control;
mod counts;
mod faults;
mod files;
mod limits;
mod machine;
mod objects;
mod routes;
mod sandboxes;
mod sessions;
mod snapshots;
mod state;
mod wanted;

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};

use answer::Answer;
pub(crate) use faults::{Fault, Faults, Rule};
pub(crate) use limits::{Limits, Quota, Rate};
pub(crate) use machine::{Light, LightRule, Machines};
pub(crate) use routes::Route;
use routes::{Head, Question};
pub(crate) use state::{PROJECT, State, Status, TEAM, TOKEN, Times};

/// The fake, running until it is dropped.
pub(crate) struct Vercel {
    shared: Arc<Shared>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What all questions share.
struct Shared {
    state: Mutex<State>,
    machines: Machines,
    /// Whether what is held may go on.
    let_go: watch::Sender<bool>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Vercel {
    /// Starts it on this port of the loopback interface; 0 is a free one.
    pub(crate) fn start(port: u16, state: State, machines: Machines) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            machines,
            let_go: watch::Sender::new(false),
        });
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let served = Arc::clone(&shared);
        // One thread for all of it: what a sandbox runs dies with the thread that started it.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = match listen(port) {
                    Ok(listener) => listener,
                    Err(error) => return tell.send(Err(error)).unwrap(),
                };
                tell.send(listener.local_addr()).unwrap();
                tokio::select! {
                    () = serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
        });
        let address = told.recv().unwrap()?;
        Ok(Self {
            shared,
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// What `base-url` is here.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/api", self.address)
    }

    /// Its state, to set or to look at; nothing is answered meanwhile.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    /// Lets all go on that is held.
    pub(crate) fn let_go(&self) {
        self.shared.let_go.send_replace(true);
    }
}

impl Drop for Vercel {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// With room for a whole wave that connects at once: whoever finds none tries again a second later.
fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    socket.listen(16_384)
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // Out of file descriptors is what an error says here: others have to be closed first.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(state::ms(10)).await;
            continue;
        };
        tokio::spawn(connection(stream, Arc::clone(&shared)));
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let reset = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| Box::pin(answer(request, Arc::clone(&shared), Arc::clone(&reset))));
    let mut connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A connection that ends early is the client's business, or one of our faults.
    let _ = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    if reset.load(Ordering::Relaxed) {
        let _ = connection.into_parts().io.into_inner().set_zero_linger();
    }
}

/// What becomes of the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Whole,
    Cut,
    BadGateway,
    Lost,
    Unlabelled,
}

type Responded = Result<Response<UnsyncBoxBody<Bytes, io::Error>>, io::Error>;

/// An error closes the connection without an answer.
async fn answer(request: Request<Incoming>, shared: Arc<Shared>, reset: Arc<AtomicBool>) -> Responded {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let header = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
    let (method, path) = (head.method.as_str(), head.uri.path());
    if path.starts_with("/fake/") {
        return Ok(control::answer(&shared, method, path, &body).respond(false));
    }
    let asked = Head {
        method,
        path,
        query: head.uri.query().unwrap_or_default(),
        content_type: header("content-type"),
        directory: header("x-cwd"),
        authorization: header("authorization"),
    };
    let Some(mut question) = Question::new(asked, body) else {
        return Ok(Answer::not_found(&format!("{method} {path}")).respond(false));
    };
    let route = question.route;
    let fault = {
        let state = &mut *shared.state();
        state.counts.asked(state::now(), route);
        let from_snapshot = route == Route::Create && question.is_from_snapshot();
        state.faults.at(route, from_snapshot)
    };
    let drop = |held: &str| {
        reset.store(true, Ordering::Relaxed);
        shared.state().counts.answered(route, 0);
        Err(io::Error::other(held.to_owned()))
    };
    let mut way = Way::Whole;
    let mut instead = None;
    let mut late = Duration::ZERO;
    let mut held = false;
    match fault {
        None => {}
        Some(Fault::TooMany(seconds)) => instead = Some(Answer::too_many(Some(seconds.to_string()))),
        Some(Fault::TooManyUntil(seconds)) => instead = Some(Answer::too_many(Some(date(seconds)))),
        Some(Fault::TooManyUntold) => instead = Some(Answer::too_many(None)),
        Some(Fault::Refused(status, code)) => instead = Some(Answer::refused(status, &code, &code)),
        Some(Fault::SnapshotGone) => {
            instead = Some(Answer::refused(410, "snapshot_not_found", "Snapshot not found"));
        }
        Some(Fault::Reset) => return drop("reset"),
        Some(Fault::LostPoll(held_ms)) => {
            tokio::time::sleep(state::ms(held_ms)).await;
            return drop("lost");
        }
        Some(Fault::BadGateway) => way = Way::BadGateway,
        Some(Fault::Lost) => way = Way::Lost,
        Some(Fault::EarlyEof) => way = Way::Cut,
        Some(Fault::Unlabelled) => way = Way::Unlabelled,
        Some(Fault::ErrorLine) => question.breaks = true,
        Some(Fault::Slow(later_ms)) => late = state::ms(later_ms),
        Some(Fault::Held) => held = true,
        Some(Fault::SessionOver) => {
            if let Some(id) = question.ids.first() {
                shared.state().end(id, Status::Stopped);
            }
        }
    }
    let mut answer = match instead {
        Some(answer) => answer,
        None => done(&shared, question, method == "GET", held).await,
    };
    tokio::time::sleep(late).await;
    match way {
        Way::Lost => return drop("lost"),
        Way::BadGateway => {
            shared.state().counts.answered(route, 502);
            return Ok(Answer::refused(502, "bad_gateway", "Bad gateway").respond(false));
        }
        Way::Unlabelled => answer.leave_out("/sandbox", "tags"),
        Way::Whole | Way::Cut => {}
    }
    shared.state().counts.answered(route, answer.status);
    Ok(answer.respond(way == Way::Cut))
}

/// Does what is asked. What changes something is done to its end, also where nobody waits for the answer any more.
async fn done(shared: &Arc<Shared>, question: Question, only_looks: bool, held: bool) -> Answer {
    let answered = match only_looks {
        true => routes::answer(shared, &question).await,
        false => {
            let shared = Arc::clone(shared);
            let doing = tokio::spawn(async move {
                if held {
                    shared.let_go.subscribe().wait_for(|all| *all).await.unwrap();
                }
                routes::answer(&shared, &question).await
            });
            doing.await.unwrap()
        }
    };
    answered.unwrap_or_else(|refused| refused)
}

/// So many seconds from now, as `Retry-After` may tell it.
fn date(seconds: u64) -> String {
    let at = jiff::Timestamp::from_millisecond((state::now() + seconds * 1000) as i64).unwrap();
    jiff::fmt::rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&at)
        .unwrap()
}
