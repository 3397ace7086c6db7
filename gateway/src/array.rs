//! Bodies that are sent while their elements still arrive: JSON arrays and other formats.

use std::future::ready;

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tonic::Status;

use crate::rendering::InTurn;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Returns a body of `open`, which ends within a JSON array, the elements of `batches`, and
/// `close`. If a batch fails, the body is cut off, so that clients notice that it is incomplete.
pub(crate) fn body<T: Serialize + Send + 'static>(
    open: Vec<u8>,
    batches: impl Stream<Item = Result<InTurn<Vec<T>>, Status>> + Send + 'static,
    close: &'static [u8],
) -> Body {
    let mut first = open.ends_with(b"[");
    let write = move |batch: Vec<T>| {
        let mut text = Vec::new();
        for element in batch {
            if !std::mem::take(&mut first) {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &element)?;
        }
        Ok(text.into())
    };
    streamed(open, batches, write, close)
}

/// Returns a body with an array of elements that services have rendered.
pub(crate) fn forwarded(
    batches: impl Stream<Item = Result<InTurn<Bytes>, Status>> + Send + 'static,
) -> Body {
    let mut first = true;
    let write = move |batch: Bytes| {
        if batch.is_empty() || std::mem::take(&mut first) {
            return Ok(batch);
        }
        Ok([b",", &batch[..]].concat().into())
    };
    streamed(b"[".to_vec(), batches, write, b"]")
}

/// Does the same as [`forwarded`] for a page. One that fits into a message is sent as a whole. Fails if
/// the second batch does.
pub(crate) async fn page(
    mut batches: impl Stream<Item = Result<InTurn<Bytes>, Status>> + Send + Unpin + 'static,
) -> Result<Body, Status> {
    let Some((first, share)) = batches.try_next().await? else { return Ok(Body::from("[]")) };
    let Some(second) = batches.try_next().await? else {
        return Ok([b"[", &first[..], b"]"].concat().into());
    };
    Ok(forwarded(stream::iter([Ok((first, share)), Ok(second)]).chain(batches)))
}

/// Like [`body`], with `write` rendering each batch.
pub(crate) fn streamed<T: Send + 'static>(
    open: Vec<u8>,
    batches: impl Stream<Item = Result<InTurn<T>, Status>> + Send + 'static,
    mut write: impl FnMut(T) -> Result<Bytes, Failure> + Send + 'static,
    close: &'static [u8],
) -> Body {
    let batches = batches.map_err(Failure::from);
    let batches = batches.map(move |batch| {
        let (batch, _share) = batch?;
        write(batch)
    });
    let batches = batches.inspect_err(|error: &Failure| {
        tracing::warn!(error = &**error, "response cut off");
    });
    let open = stream::once(ready(Ok(open.into())));
    let close = stream::once(ready(Ok(Bytes::from_static(close))));
    Body::from_stream(open.chain(batches).chain(close).try_filter(|text| ready(!text.is_empty())))
}

#[cfg(test)]
mod tests {
    use axum::body::{HttpBody as _, to_bytes};

    use super::*;

    #[tokio::test]
    async fn a_page_in_one_message_is_sent_as_a_whole() {
        for (batches, text, whole) in [
            (vec![], "[]", true),
            (vec![r#"{"a":1}"#], r#"[{"a":1}]"#, true),
            (vec!["1,2", "3", "4"], "[1,2,3,4]", false),
        ] {
            let batches = batches.into_iter().map(|batch| Ok((Bytes::from(batch), None)));
            let body = page(stream::iter(batches)).await.unwrap();
            assert_eq!(body.size_hint().exact().is_some(), whole);
            assert_eq!(to_bytes(body, usize::MAX).await.unwrap(), text);
        }
    }

    #[tokio::test]
    async fn a_failure_in_the_second_message_is_one_of_the_request() {
        let batches = [Ok((Bytes::from("1"), None)), Err(Status::unavailable("stopping"))];
        assert!(page(stream::iter(batches)).await.is_err());
    }
}
