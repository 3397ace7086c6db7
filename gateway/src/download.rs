//! Files on their way to a client, passed on as they come in.

use std::future::ready;

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tonic::Streaming;

use crate::problem::Problem;

/// A body of the pieces that a service sends. A failure before the first one is a [`Problem`]; later
/// on the body breaks off, so that nobody takes what was sent for the whole.
pub(crate) async fn body<M: Send + 'static>(
    mut file: Streaming<M>,
    piece: fn(M) -> Bytes,
) -> Result<Body, Problem> {
    let first = file.message().await?.map(piece).unwrap_or_default();
    let rest = file.map_ok(piece).inspect_err(|error| {
        tracing::warn!(%error, "a file broke off");
    });
    Ok(Body::from_stream(stream::once(ready(Ok(first))).chain(rest)))
}
