//! The body of an answer, which holds a share of its customer whenever its next message is produced.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use assay_proto::{CustomerId, Fault};
use assay_runtime::{Share, Shares};
use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Frame, SizeHint};
use tonic::Status;

type Acquiring = Pin<Box<dyn Future<Output = Result<Share, Fault>> + Send>>;

/// A list is read from the database while its messages are polled. Between two messages, while the
/// client reads, it holds no share.
pub(super) struct Answer {
    body: Body,
    shares: Shares,
    customer: CustomerId,
    turn: Turn,
}

enum Turn {
    /// The last message was passed on.
    Over,
    Awaited(Acquiring),
    Come(#[expect(dead_code, reason = "held for as long as the turn lasts")] Share),
}

impl Answer {
    pub(super) fn new(body: Body, shares: Shares, customer: CustomerId) -> Self {
        Self { body, shares, customer, turn: Turn::Over }
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        if let Turn::Over = self.turn {
            self.turn = if let Ok(share) = self.shares.try_acquire(self.customer) {
                Turn::Come(share)
            } else {
                let (shares, customer) = (self.shares.clone(), self.customer);
                Turn::Awaited(Box::pin(async move { shares.acquire(customer).await }))
            };
        }
        if let Turn::Awaited(acquiring) = &mut self.turn {
            self.turn = Turn::Come(ready!(acquiring.as_mut().poll(context))?);
        }
        Poll::Ready(Ok(()))
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Err(fault) = ready!(self.poll_turn(context)) {
            self.body = Body::empty();
            return Poll::Ready(Some(Ok(Frame::trailers(trailers(fault)?))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.turn = Turn::Over;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How a gRPC answer ends that has begun.
fn trailers(fault: Fault) -> Result<HeaderMap, axum::Error> {
    let mut trailers = HeaderMap::new();
    Status::from(fault).add_header(&mut trailers).map_err(axum::Error::new)?;
    Ok(trailers)
}
