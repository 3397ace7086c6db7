//! Responses of one connection, which the client must read in time.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    response::Response,
};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, interval};

/// Maximum size in bytes of the pieces of a response. A client must read one of them within the
/// timeout.
const PIECE: usize = 32 << 10;

/// Number of checks for stuck responses within the timeout.
const CHECKS: u32 = 6;

/// The responses of one connection. Over HTTP/2, a client that reads from the connection can still
/// keep the window of a response closed, which the connection itself doesn't notice.
#[derive(Clone)]
pub(super) struct Responses {
    read_timeout: Duration,
    waiting: Arc<Mutex<Waiting>>,
}

/// Time at which the next piece of each response was offered to the client.
#[derive(Default)]
struct Waiting {
    last: u64,
    since: HashMap<u64, Instant>,
}

impl Responses {
    pub(super) fn new(read_timeout: Duration) -> Self {
        Self { read_timeout, waiting: Arc::default() }
    }

    /// Watches a response from now on.
    pub(super) fn watch(&self, response: Response) -> Response {
        let id = {
            let mut waiting = self.waiting();
            waiting.last += 1;
            waiting.last
        };
        self.offer(id);
        let responses = self.clone();
        response.map(|body| Body::new(WatchedBody { body, rest: Bytes::new(), id, responses }))
    }

    /// Resolves when the client has read nothing of a response for too long.
    pub(super) async fn stuck(&self) {
        let mut checks = interval(self.read_timeout / CHECKS);
        loop {
            checks.tick().await;
            let is_late = |since: &Instant| since.elapsed() > self.read_timeout;
            if self.waiting().since.values().any(is_late) {
                return;
            }
        }
    }

    fn offer(&self, id: u64) {
        self.waiting().since.insert(id, Instant::now());
    }

    fn take(&self, id: u64) {
        self.waiting().since.remove(&id);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of a response. The connection polls it when the client has read the previous piece.
struct WatchedBody {
    body: Body,
    /// Bytes of the last frame that are left.
    rest: Bytes,
    id: u64,
    responses: Responses,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        this.responses.take(this.id);
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        this.responses.offer(this.id);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + body.lower());
        if let Some(upper) = body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.responses.take(self.id);
    }
}
