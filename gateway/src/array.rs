//! Bodies that are sent while their elements still come in: JSON arrays, and others.

use std::future::ready;

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tonic::Status;

use crate::turn::Part;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A body that begins with `open`, which ends within an array, goes on with the elements of
/// `parts`, and ends with `close`. Where a part fails the body breaks off, so that nobody takes
/// what was sent for the whole.
pub(crate) fn body<T: Serialize + Send + 'static>(
    open: Vec<u8>,
    parts: impl Stream<Item = Result<Part<Vec<T>>, Status>> + Send + 'static,
    close: &'static [u8],
) -> Body {
    let mut first = open.ends_with(b"[");
    let write = move |part: Vec<T>| {
        let mut text = Vec::new();
        for element in part {
            if !std::mem::take(&mut first) {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &element)?;
        }
        Ok(text)
    };
    streamed(open, parts, write, close)
}

/// As [`body`], of what `write` makes of each part.
pub(crate) fn streamed<T: Send + 'static>(
    open: Vec<u8>,
    parts: impl Stream<Item = Result<Part<Vec<T>>, Status>> + Send + 'static,
    mut write: impl FnMut(Vec<T>) -> Result<Vec<u8>, Failure> + Send + 'static,
    close: &'static [u8],
) -> Body {
    let parts = parts.map_err(Failure::from);
    let parts = parts.map(move |part| {
        let written = part?.map(&mut write);
        Ok(Bytes::from(written.into_inner()?))
    });
    let parts = parts.inspect_err(|error: &Failure| {
        tracing::warn!(error = &**error, "an answer broke off");
    });
    let open = stream::once(ready(Ok(open.into())));
    let close = stream::once(ready(Ok(Bytes::from_static(close))));
    Body::from_stream(open.chain(parts).chain(close).try_filter(|text| ready(!text.is_empty())))
}
