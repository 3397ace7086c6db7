//! The body of a response, which holds a share of its customer while a message is produced.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use assay_fair::{Share, Shares};
use assay_proto::{CustomerId, Fault};
use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Frame, SizeHint};
use tonic::Status;

type Acquiring = Pin<Box<dyn Future<Output = Result<Share, Fault>> + Send>>;

/// A body whose messages are produced, for instance read from the database, when they are polled.
/// Between two messages, while the client reads, it holds no share.
pub(super) struct ResponseBody {
    body: Body,
    shares: Shares,
    customer: CustomerId,
    state: State,
}

enum State {
    /// Between two messages.
    Idle,
    Acquiring(Acquiring),
    Holding(#[expect(dead_code, reason = "held until the message is complete")] Share),
}

impl ResponseBody {
    pub(super) fn new(body: Body, shares: Shares, customer: CustomerId) -> Self {
        Self { body, shares, customer, state: State::Idle }
    }

    fn poll_share(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if let State::Idle = self.state {
            self.state = if let Ok(share) = self.shares.try_acquire(self.customer) {
                State::Holding(share)
            } else {
                let (shares, customer) = (self.shares.clone(), self.customer);
                State::Acquiring(Box::pin(async move { shares.acquire(customer).await }))
            };
        }
        if let State::Acquiring(acquiring) = &mut self.state {
            self.state = State::Holding(ready!(acquiring.as_mut().poll(context))?);
        }
        Poll::Ready(Ok(()))
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Err(fault) = ready!(self.poll_share(context)) {
            self.body = Body::empty();
            return Poll::Ready(Some(Ok(Frame::trailers(trailers(fault)?))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.state = State::Idle;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the trailers that end a response with a fault.
fn trailers(fault: Fault) -> Result<HeaderMap, axum::Error> {
    let mut trailers = HeaderMap::new();
    Status::from(fault).add_header(&mut trailers).map_err(axum::Error::new)?;
    Ok(trailers)
}
