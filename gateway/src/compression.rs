//! Compression of large responses.

use std::{convert::Infallible, future::ready};

use axum::{body::Body, extract::Request, response::Response};
use http::{
    HeaderValue,
    header::{ACCEPT_ENCODING, ACCEPT_RANGES},
};
use tower::{ServiceExt, service_fn};
use tower_http::compression::{
    Compression as Compressed,
    predicate::{NotForContentType, Predicate, SizeAbove},
};

/// Minimum size of compressed bodies, in bytes; smaller ones would hardly shrink.
const COMPRESSED_FROM: u64 = 1024;

/// The encodings that a client accepts.
pub(crate) struct Compression {
    accepted: Option<HeaderValue>,
}

impl Compression {
    pub(crate) fn of(request: &Request) -> Self {
        Self { accepted: request.headers().get(ACCEPT_ENCODING).cloned() }
    }

    /// Compresses a response if it is large and the client accepts that.
    pub(crate) async fn apply(self, response: Response) -> Response {
        let large = SizeAbove::new(COMPRESSED_FROM).and(NotForContentType::IMAGES);
        // Compression would delay events until a block is full.
        let large = large.and(NotForContentType::SSE);
        // A client that continues a download has the bytes of the file as it is stored.
        let is_whole = !response.headers().contains_key(ACCEPT_RANGES);
        let accepted = self.accepted.filter(|_| is_whole && large.should_compress(&response));
        let Some(accepted) = accepted else {
            return response;
        };
        let mut request = Request::new(Body::empty());
        request.headers_mut().insert(ACCEPT_ENCODING, accepted);
        let mut response = Some(response);
        let service = service_fn(move |_: Request| {
            ready(Ok::<_, Infallible>(response.take().unwrap_or_default()))
        });
        let Ok(response) = Compressed::new(service).compress_when(large).oneshot(request).await;
        response.map(Body::new)
    }
}
