//! Answers on their way to one client, which has to take them in time.

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

use super::UNTIL_READ;

/// Maximum size of the pieces that a connection takes of an answer, in bytes. A client has to take
/// one of them every 30 seconds.
const PIECE: usize = 32 << 10;

/// Interval of the search for answers that are stuck.
const LOOK: Duration = Duration::from_secs(5);

/// The answers of one connection. Over HTTP/2, a client that reads what arrives can refuse to be
/// sent more of an answer, which the connection itself doesn't notice.
#[derive(Clone, Default)]
pub(super) struct Answers(Arc<Mutex<Waiting>>);

/// When the client was offered the next piece of each answer.
#[derive(Default)]
struct Waiting {
    last: u64,
    since: HashMap<u64, Instant>,
}

impl Answers {
    /// Watches an answer from now on.
    pub(super) fn watch(&self, answer: Response) -> Response {
        let id = {
            let mut waiting = self.waiting();
            waiting.last += 1;
            waiting.last
        };
        self.offer(id);
        let answers = self.clone();
        answer.map(|body| Body::new(Answer { body, rest: Bytes::new(), id, answers }))
    }

    /// Resolves when the client has taken nothing of one of the answers for too long.
    pub(super) async fn stuck(&self) {
        let mut look = interval(LOOK);
        loop {
            look.tick().await;
            let is_late = |since: &Instant| since.elapsed() > UNTIL_READ;
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of an answer. It is polled when the client has taken what was there before.
struct Answer {
    body: Body,
    /// The rest of the piece that came last.
    rest: Bytes,
    id: u64,
    answers: Answers,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        this.answers.take(this.id);
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
        this.answers.offer(this.id);
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

impl Drop for Answer {
    fn drop(&mut self) {
        self.answers.take(self.id);
    }
}
