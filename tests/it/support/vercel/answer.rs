//! What is answered: a status, headers and a body, whole or in pieces. Knows nothing of what is asked.

use std::io;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::Response;
use hyper::body::{Bytes, Frame};
use serde::Serialize;
use serde_json::{Value, json};

/// An answer, or why there is none.
pub(crate) type Answered = Result<Answer, Answer>;

/// A question's answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
}

/// Its body.
pub(crate) enum Body {
    /// Known before it is sent.
    Whole(Bytes),
    /// Sent as it comes to be.
    Pieces(BoxStream<'static, Bytes>),
}

impl Answer {
    pub(crate) fn json(body: &impl Serialize) -> Self {
        Self::of(200, "application/json; charset=utf-8", text(body))
    }

    /// A refusal in the API's words.
    pub(crate) fn refused(status: u16, code: &str, message: &str) -> Self {
        let body = json!({ "error": { "code": code, "message": message } });
        Self::of(status, "application/json; charset=utf-8", body.to_string())
    }

    pub(crate) fn bad_request(message: &str) -> Self {
        Self::refused(400, "bad_request", message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::refused(404, "not_found", &format!("Not found: {what}"))
    }

    /// With `Retry-After` where it is told.
    pub(crate) fn too_many(retry_after: Option<String>) -> Self {
        let mut answer = Self::refused(429, "rate_limited", "Too many requests");
        answer
            .headers
            .extend(retry_after.map(|after| ("retry-after", after)));
        answer
    }

    pub(crate) fn bytes(body: Vec<u8>) -> Self {
        Self::of(200, "application/octet-stream", body)
    }

    /// Lines of JSON, as they come. The official client compares the type letter by letter.
    pub(crate) fn lines(lines: BoxStream<'static, String>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", "application/x-ndjson".to_owned())],
            body: Body::Pieces(lines.map(|line| Bytes::from(line + "\n")).boxed()),
        }
    }

    /// Takes a key out of the object at this pointer.
    pub(crate) fn leave_out(&mut self, pointer: &str, key: &str) {
        if let Body::Whole(bytes) = &mut self.body
            && let Ok(mut body) = serde_json::from_slice::<Value>(bytes)
            && let Some(Value::Object(object)) = body.pointer_mut(pointer)
        {
            object.remove(key);
            *bytes = Bytes::from(body.to_string());
        }
    }

    fn of(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: vec![("content-type", kind.to_owned())],
            body: Body::Whole(body.into()),
        }
    }

    /// As it goes out; `cut` is that the connection ends in its middle.
    pub(crate) fn respond(self, cut: bool) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(*name, value);
        }
        // What came before has to be on its way, or the answer is none instead of half of one.
        let end = || {
            stream::once(async {
                tokio::task::yield_now().await;
                Err(io::Error::other("cut"))
            })
        };
        let body = match self.body {
            Body::Whole(bytes) if cut => {
                response = response.header("content-length", bytes.len());
                let half = bytes.slice(..bytes.len() / 2);
                frames(stream::iter([Ok(half)]).chain(end()).boxed())
            }
            Body::Whole(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
            // The first line of a command is its start, and a start that was seen is the harder case.
            Body::Pieces(pieces) if cut => frames(pieces.take(1).map(Ok).chain(end()).boxed()),
            Body::Pieces(pieces) => frames(pieces.map(Ok).boxed()),
        };
        response.body(body).unwrap()
    }
}

/// As JSON.
pub(crate) fn text(of: &impl Serialize) -> String {
    serde_json::to_string(of).unwrap()
}

fn frames(pieces: BoxStream<'static, io::Result<Bytes>>) -> UnsyncBoxBody<Bytes, io::Error> {
    let frames = pieces.map(|piece| piece.map(Frame::data));
    StreamBody::new(frames).boxed_unsync()
}
