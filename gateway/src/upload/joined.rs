//! Chunks of a body, of which small ones are joined: each chunk becomes a message to a service, and a message costs as
//! much as tens of kilobytes.

use std::{error::Error, pin::pin, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use tokio::time::timeout;

use super::{Chunk, Sender, queue};
use crate::{body::body_error, problem::Problem};

/// Number of bytes from which a chunk is not joined with those that follow.
const ENOUGH: usize = 16 << 10;

/// Maximum time for which a small chunk waits for those that follow.
const WAIT: Duration = Duration::from_millis(5);

/// Queues the bytes of these chunks. If they break off, what has arrived is queued before the problem is returned.
pub(super) async fn feed<E: Error + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>>,
    sender: &mut Sender,
) -> Result<(), Problem> {
    let mut chunks = pin!(chunks);
    let mut has_more = Ok(true);
    while has_more.as_ref().is_ok_and(|more| *more) {
        let mut joined = BytesMut::new();
        has_more = next(&mut chunks, &mut joined).await;
        if !joined.is_empty() && joined.len() < ENOUGH && matches!(has_more, Ok(true)) {
            let filled = timeout(WAIT, fill(&mut chunks, &mut joined)).await;
            has_more = filled.unwrap_or(Ok(true));
        }
        if !joined.is_empty() {
            queue(sender, Chunk { bytes: joined.freeze(), ..Chunk::default() }).await;
        }
    }
    has_more.map(|_| ()).map_err(|error| body_error(&error))
}

/// Takes chunks until they are enough. Returns whether there may be more.
async fn fill<E>(
    chunks: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    joined: &mut BytesMut,
) -> Result<bool, E> {
    while joined.len() < ENOUGH {
        if !next(chunks, joined).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes the next chunk, which is copied unless it is the first one. Returns whether there was one.
async fn next<E>(
    chunks: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    joined: &mut BytesMut,
) -> Result<bool, E> {
    let Some(chunk) = chunks.next().await.transpose()? else { return Ok(false) };
    if joined.is_empty() {
        *joined = BytesMut::from(chunk);
    } else {
        joined.extend_from_slice(&chunk);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::iter;

    use axum::Error;
    use futures::{channel::mpsc, future::pending, stream};

    use super::*;

    /// Feeds chunks, and returns the bytes of each queued one with the result.
    async fn fed(
        chunks: impl Stream<Item = Result<Bytes, Error>>,
    ) -> (Vec<Bytes>, Result<(), Problem>) {
        let (mut sender, receiver) = mpsc::channel(0);
        let queued = receiver.map(|chunk: Chunk| chunk.bytes).collect();
        let feeding = async move { feed(chunks, &mut sender).await };
        tokio::join!(queued, feeding)
    }

    fn ones(number: usize) -> impl Iterator<Item = Result<Bytes, Error>> {
        iter::repeat_n(Bytes::from_static(b"x"), number).map(Ok)
    }

    #[tokio::test(start_paused = true)]
    async fn small_chunks_are_joined_and_large_ones_are_not() {
        let (queued, result) = fed(stream::iter(ones(100_000))).await;
        assert!(result.is_ok());
        assert_eq!(queued.len(), 100_000_usize.div_ceil(ENOUGH));
        assert_eq!(queued.iter().map(Bytes::len).sum::<usize>(), 100_000);

        let large = Bytes::from(vec![b'x'; ENOUGH]);
        let (queued, _) = fed(stream::iter(iter::repeat_n(large, 3).map(Ok))).await;
        assert_eq!(queued.iter().map(Bytes::len).collect::<Vec<_>>(), [ENOUGH; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn chunks_keep_their_bytes_however_they_arrive() {
        let text: Bytes = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
        for sizes in [[1, 3, 5], [0, 1, ENOUGH + 1], [ENOUGH - 1, 1, 0], [700, 90_000, 2]] {
            let (mut chunks, mut rest) = (Vec::new(), text.clone());
            let mut size = sizes.into_iter().cycle();
            while !rest.is_empty() {
                chunks.push(Ok(rest.split_to(size.next().unwrap().min(rest.len()))));
            }
            let (queued, result) = fed(stream::iter(chunks)).await;
            assert!(result.is_ok());
            assert!(queued.concat() == text, "{sizes:?}");
            assert!(queued.iter().all(|chunk| !chunk.is_empty()), "{sizes:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_chunk_does_not_wait_for_a_slow_client() {
        let (mut sender, mut receiver) = mpsc::channel(0);
        let chunks = stream::iter(ones(3)).chain(stream::once(pending()));
        let feeding = async { feed(chunks, &mut sender).await };
        tokio::select! {
            _ = feeding => panic!("the body has not ended"),
            chunk = receiver.next() => assert_eq!(chunk.unwrap().bytes, "xxx"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_begin_of_a_body_that_breaks_off_is_queued() {
        let broken = iter::once(Err(Error::new(std::fmt::Error)));
        let (queued, result) = fed(stream::iter(ones(3).chain(broken))).await;
        assert_eq!(queued, ["xxx"]);
        assert!(result.is_err());
    }
}
