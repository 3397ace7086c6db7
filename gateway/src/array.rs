//! JSON arrays that are sent while their elements still come in.

use std::future::ready;

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tonic::Status;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A body that begins with `open`, which ends within an array, goes on with the elements of
/// `parts`, and ends with `close`. Where a part fails the body breaks off, so that nobody takes
/// what was sent for the whole.
pub(crate) fn body<T: Serialize + Send + 'static>(
    open: Vec<u8>,
    parts: impl Stream<Item = Result<Vec<T>, Status>> + Send + 'static,
    close: &'static [u8],
) -> Body {
    let mut first = open.ends_with(b"[");
    let elements = parts.map_err(Failure::from).map(move |part| {
        let mut text = Vec::new();
        for element in part? {
            if !std::mem::take(&mut first) {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &element)?;
        }
        Ok(Bytes::from(text))
    });
    let elements = elements.inspect_err(|error: &Failure| {
        tracing::warn!(error = &**error, "an answer broke off");
    });
    let open = stream::once(ready(Ok(open.into())));
    let close = stream::once(ready(Ok(Bytes::from_static(close))));
    Body::from_stream(open.chain(elements).chain(close).try_filter(|text| ready(!text.is_empty())))
}
