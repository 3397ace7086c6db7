//! The bytes of a form that its parser holds: it collects what precedes the contents of a field, and has no limit of
//! its own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Error, body::Body};
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::task::yield_now;

use crate::body::LongHeaders;

/// Maximum number of bytes that the parser takes before it returns a field or a part of one, beside the last chunk.
const MOST_HELD: usize = 64 << 10;

/// The number of bytes that the parser of a form has taken since it has returned a field or a part of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(Arc<AtomicUsize>);

impl Held {
    /// Returns the body of a form, which fails if the parser takes too much of it.
    ///
    /// The parser takes all chunks that are there, so it gets one at a time: the stream is pending after each of them.
    /// It is pending before its end as well, since the parser refuses a form whose end it sees while it waits for the
    /// beginning.
    pub(super) fn limit(&self, body: Body) -> Body {
        let held = self.clone();
        let begin = (body.into_data_stream(), false);
        let chunks = stream::unfold(begin, move |(mut chunks, is_begun)| {
            let held = held.clone();
            async move {
                if is_begun {
                    yield_now().await;
                }
                let chunk = chunks.next().await?.and_then(|chunk| held.take(chunk));
                Some((chunk, (chunks, true)))
            }
        });
        Body::from_stream(chunks)
    }

    /// Counts a chunk that the parser takes.
    fn take(&self, chunk: Bytes) -> Result<Bytes, Error> {
        let held = self.0.fetch_add(chunk.len(), Ordering::Relaxed);
        if held > MOST_HELD { Err(Error::new(LongHeaders)) } else { Ok(chunk) }
    }

    /// Records that the parser has returned a field or a part of one.
    pub(super) fn release(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use multer::Multipart;

    use super::*;
    use crate::cause::caused_by;

    /// Parses a form that begins with this text and does not end. Returns whether that fails as it should.
    async fn is_refused(begin: &'static str) -> bool {
        let endless = stream::repeat_with(|| Ok::<_, Error>(Bytes::from(vec![b'x'; 16 << 10])));
        let begin = stream::iter([Ok(Bytes::from_static(begin.as_bytes()))]);
        let body = Held::default().limit(Body::from_stream(begin.chain(endless)));
        let mut form = Multipart::new(body.into_data_stream(), "b");
        form.next_field().await.is_err_and(|error| caused_by::<LongHeaders>(&error))
    }

    #[tokio::test]
    async fn a_form_without_a_field_is_not_collected() {
        assert!(is_refused("").await);
        assert!(is_refused("--b\r\nContent-Disposition: ").await);
    }

    #[tokio::test]
    async fn a_field_may_be_large() {
        let held = Held::default();
        let large = vec![b'x'; 16 << 10];
        let chunks = std::iter::repeat_n(Bytes::from(large), 64);
        let begin =
            Bytes::from_static(b"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n");
        let end = Bytes::from_static(b"\r\n--b--\r\n");
        let chunks = std::iter::once(begin).chain(chunks).chain([end]).map(Ok::<_, Error>);
        let body = held.limit(Body::from_stream(stream::iter(chunks)));
        let mut form = Multipart::new(body.into_data_stream(), "b");
        let mut field = form.next_field().await.unwrap().unwrap();
        held.release();
        let mut size = 0;
        while let Some(chunk) = field.chunk().await.unwrap() {
            held.release();
            size += chunk.len();
        }
        assert_eq!(size, 1 << 20);
    }

    #[tokio::test]
    async fn a_form_is_read_however_its_chunks_arrive() {
        let form = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b--\r\n";
        for size in 1..=form.len() {
            for is_late in [false, true] {
                let chunks = form.as_bytes().chunks(size).map(Bytes::copy_from_slice);
                let chunks = stream::iter(chunks.map(Ok::<_, Error>).collect::<Vec<_>>());
                let late = async move {
                    if is_late {
                        yield_now().await;
                    }
                };
                let body = Body::from_stream(late.map(|()| chunks).flatten_stream());
                let body = Held::default().limit(body);
                let mut form = Multipart::new(body.into_data_stream(), "b");
                let field = form.next_field().await.unwrap().unwrap();
                assert_eq!(field.text().await.unwrap(), "x", "{size} {is_late}");
                assert!(form.next_field().await.unwrap().is_none());
            }
        }
    }
}
