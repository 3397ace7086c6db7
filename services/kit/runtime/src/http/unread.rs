//! Bodies of requests over HTTP/1 that the program does not read to their end, such as those of refused requests.
//!
//! The next request of a connection follows the body, so the server closes a connection whose body is unread. A client
//! that has sent it all knows nothing of that, and its next request is lost (RFC 9112, 9.6). So a short rest is read
//! before the response is sent, and with a longer one the response says that the connection closes.

use std::{
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
use http::{HeaderValue, Request, Version, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::timeout;

/// Maximum length in bytes of a rest that is read before the response.
const SHORT: usize = 64 << 10;

/// Maximum time in which a short rest must arrive.
const ARRIVAL: Duration = Duration::from_millis(500);

/// The rest of the body of a request. `None` if the connection need not know it.
pub(super) struct Unread(Option<Arc<Mutex<Rest>>>);

/// The rest of a body.
enum Rest {
    /// The program holds the body.
    Held,
    /// The program has dropped the body before its end.
    Dropped(Incoming),
    /// The body was read to its end.
    Ended,
}

impl Unread {
    /// Watches the body of a request.
    pub(super) fn watch(request: Request<Incoming>) -> (Request<Body>, Self) {
        if request.version() > Version::HTTP_11 || request.body().is_end_stream() {
            return (request.map(Body::new), Self(None));
        }
        let waits = request.headers().contains_key(header::EXPECT);
        let rest = Arc::new(Mutex::new(Rest::Held));
        let watched = rest.clone();
        let request = request.map(|body| {
            Body::new(WatchedBody { body: Some(body), is_sent: !waits, rest: watched })
        });
        (request, Self(Some(rest)))
    }

    /// Reads a short rest, or announces with a response that the connection closes.
    pub(super) async fn end(self, response: &mut Response) {
        let Some(rest) = self.0 else { return };
        let rest = std::mem::replace(&mut *lock(&rest), Rest::Held);
        let has_ended = match rest {
            Rest::Ended => true,
            Rest::Held => false,
            Rest::Dropped(body) => read(body).await,
        };
        if !has_ended {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Reads the rest of a body unless it is long or late. Returns whether it has ended.
async fn read(body: Incoming) -> bool {
    if body.size_hint().lower() > SHORT as u64 {
        return false;
    }
    let mut rest = Limited::new(body, SHORT);
    let discarded = async {
        while let Some(frame) = rest.frame().await {
            if frame.is_err() {
                return false;
            }
        }
        true
    };
    timeout(ARRIVAL, discarded).await.unwrap_or_default()
}

fn lock(rest: &Mutex<Rest>) -> MutexGuard<'_, Rest> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body of a request, which records its rest.
struct WatchedBody {
    body: Option<Incoming>,
    /// Whether the client sends the body: it may wait until the program reads it (`Expect: 100-continue`).
    is_sent: bool,
    rest: Arc<Mutex<Rest>>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        this.is_sent = true;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        if frame.is_none() || body.is_end_stream() {
            *lock(&this.rest) = Rest::Ended;
            this.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|_| self.is_sent) {
            *lock(&self.rest) = Rest::Dropped(body);
        }
    }
}
