//! Downloads: files that are streamed from a service to a client.

use std::future::ready;

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tonic::Streaming;

use crate::problem::Problem;

/// Returns a body of the chunks that a service sends. A failure before the first one is a
/// [`Problem`]; a later one cuts the body off, so that clients notice that it is incomplete.
pub(crate) async fn body<M: Send + 'static>(
    mut file: Streaming<M>,
    chunk: fn(M) -> Bytes,
) -> Result<Body, Problem> {
    let first = file.message().await?.map(chunk).unwrap_or_default();
    let rest = file.map_ok(chunk).inspect_err(|error| {
        tracing::warn!(%error, "download cut off");
    });
    Ok(Body::from_stream(stream::once(ready(Ok(first))).chain(rest)))
}
