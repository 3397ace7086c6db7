//! The bytes of a form that its parser holds: it collects what precedes the contents of a field, and has no limit of
//! its own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Error, body::Body};
use futures::StreamExt;
use tokio::task::yield_now;

use crate::body::LongHeaders;

/// Maximum number of bytes that the parser takes before it returns a field or a part of one, beside the last chunk.
const MOST_HELD: usize = 64 << 10;

/// The number of bytes that the parser of a form has taken since it has returned a field or a part of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held(Arc<AtomicUsize>);

impl Held {
    /// Returns the body of a form, which fails if the parser takes too much of it.
    pub(super) fn limit(&self, body: Body) -> Body {
        let held = self.clone();
        let chunks = body.into_data_stream().then(move |chunk| {
            let held = held.clone();
            async move {
                // The parser takes all chunks that are there, so it gets one at a time.
                yield_now().await;
                let chunk = chunk?;
                if held.0.fetch_add(chunk.len(), Ordering::Relaxed) > MOST_HELD {
                    return Err(Error::new(LongHeaders));
                }
                Ok::<_, Error>(chunk)
            }
        });
        Body::from_stream(chunks)
    }

    /// Records that the parser has returned a field or a part of one.
    pub(super) fn release(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::stream;
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
}
