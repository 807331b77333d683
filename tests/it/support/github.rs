//! A GitHub that holds state: a plain struct under a thin skin of HTTP, on a port of its own. Tests set the state, let
//! the client or the real binary talk to it, and look at the state that is left. Every question and every answer is
//! held to GitHub's published description as it passes.

mod described;
mod routes;
mod state;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub(crate) use described::{described, routes_described};
pub(crate) use routes::Answer;
pub(crate) use state::{
    Artifact, Comment, Exchange, Fault, Pull, Release, Run, State, TOKEN, archive, artifact_of, day, sha,
    summary,
};

/// The fake, running until it is dropped.
pub(crate) struct Github {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Github {
    /// Starts it with this state.
    pub(crate) fn start(state: State) -> Self {
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                shared.lock().unwrap().host = format!("http://{address}");
                tell.send(address).unwrap();
                tokio::select! {
                    () = serve(listener, shared) => {}
                    _ = stopped => {}
                }
            });
        });
        let address = told.recv().unwrap();
        Self {
            state,
            address,
            _stop: stop,
        }
    }

    /// What `GITHUB_API_URL` is here.
    pub(crate) fn api_url(&self) -> String {
        format!("http://{}{}", self.address, self.state().prefix)
    }

    /// Its state, to set or to look at; nothing is answered meanwhile.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// What was asked, as `GET /path`, in order and without queries.
    pub(crate) fn asked(&self) -> Vec<String> {
        let state = self.state();
        let exchanges = state.exchanges.iter();
        exchanges
            .map(|exchange| format!("{} {}", exchange.method, exchange.path))
            .collect()
    }

    /// What was asked that changes something.
    pub(crate) fn writes(&self) -> usize {
        let state = self.state();
        let exchanges = state.exchanges.iter();
        exchanges
            .filter(|exchange| exchange.method != "GET" && !exchange.path.ends_with("/graphql"))
            .count()
    }
}

impl Drop for Github {
    /// A test in which something undescribed was said has failed, whatever else it found.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let state = self.state.lock().unwrap();
            assert!(state.undescribed.is_empty(), "{}", state.undescribed.join("\n"));
        }
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&state)));
            // A connection that ends early is the client's business, or one of our faults.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// An error here closes the connection without an answer.
async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let header = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
    let mut exchange = Exchange {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        authorization: header("authorization"),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        status: 0,
    };
    let fault = state.lock().unwrap().fault(&exchange);
    let (answer, lost) = match fault {
        Some(Fault::Drop) => {
            state.lock().unwrap().exchanges.push(exchange);
            return Err(std::io::Error::other("dropped"));
        }
        Some(Fault::Status(status, headers)) => (Answer::refused(status, &headers), false),
        Some(Fault::Lost) => (routes::answer(&mut state.lock().unwrap(), &exchange), true),
        Some(Fault::After(change)) => {
            let mut state = state.lock().unwrap();
            let answer = routes::answer(&mut state, &exchange);
            change(&mut state);
            (answer, false)
        }
        Some(Fault::Late(comments)) => {
            let mut state = state.lock().unwrap();
            let now = std::mem::replace(&mut state.comments, comments);
            let answer = routes::answer(&mut state, &exchange);
            state.comments = now;
            (answer, false)
        }
        Some(Fault::Meet(barrier)) => {
            let answer = routes::answer(&mut state.lock().unwrap(), &exchange);
            barrier.wait().await;
            (answer, false)
        }
        None => (routes::answer(&mut state.lock().unwrap(), &exchange), false),
    };
    exchange.status = answer.status;
    let mut state = state.lock().unwrap();
    if !exchange.path.starts_with("/blob/") {
        let said = described(&exchange, &state.prefix, &answer);
        state.undescribed.extend(said.err());
    }
    state.exchanges.push(exchange);
    if lost {
        return Err(std::io::Error::other("lost"));
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::new(Bytes::from(answer.body))).unwrap())
}
