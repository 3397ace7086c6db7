//! What every request passes on its way in, and every answer on its way out.

use std::{any::Any, time::Duration};

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY, X_CONTENT_TYPE_OPTIONS},
};
use tower_http::{
    catch_panic::CatchPanicLayer,
    compression::{
        CompressionLayer, Predicate,
        predicate::{NotForContentType, SizeAbove},
    },
};

use crate::{
    address::locate,
    config::EdgeConfig,
    cors, entity_tag,
    limit::{Account, Limits, limit},
    problem::{Problem, finish},
    telemetry::observe,
};

/// Smaller bodies do not get smaller.
const COMPRESSED_FROM: u64 = 1024;

/// How long an answer may take until it begins; services are given less.
const PATIENCE: Duration = Duration::from_secs(20);

/// Puts around the routes what holds for all of them.
pub(crate) fn around<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    config: &EdgeConfig,
) -> Router<S> {
    let large = SizeAbove::new(COMPRESSED_FROM).and(NotForContentType::IMAGES);
    // Events would wait for others until they fill a block.
    let large = large.and(NotForContentType::SSE);
    // The last one is the outermost.
    routes
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(revalidate))
        .layer(CompressionLayer::new().compress_when(large))
        .layer(from_fn_with_state(Limits::new(config), limit))
        .layer(from_fn(finish))
        .layer(cors::layer(&config.cors_origins))
        .layer(from_fn(protect))
        .layer(from_fn(observe))
        .layer(from_fn_with_state(config.trusted_proxies.clone(), locate))
}

/// Ends what takes too long until its answer begins. Bodies may take as long as they need. Of those
/// that should be quick, only so many are worked on at once.
pub(crate) async fn hurry(request: Request, next: Next) -> Result<Response, Problem> {
    request.extensions().get().map(Account::admit).transpose()?;
    tokio::time::timeout(PATIENCE, next.run(request)).await.map_err(|_| Problem::timed_out())
}

#[expect(clippy::needless_pass_by_value, reason = "the layer hands it over")]
fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or_default(), "a request panicked");
    Problem::internal().into_response()
}

/// Answers 304 if the client has what it would get.
async fn revalidate(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let known = request.headers().get(IF_NONE_MATCH).filter(|_| reads).cloned();
    let response = next.run(request).await;
    let current = known.as_ref().zip(response.headers().get(ETAG));
    if current.is_none_or(|(known, tag)| {
        response.status() != StatusCode::OK || !entity_tag::matches(known, tag)
    }) {
        return response;
    }
    let mut unchanged = StatusCode::NOT_MODIFIED.into_response();
    unchanged.headers_mut().extend(response.headers().get(ETAG).map(|tag| (ETAG, tag.clone())));
    unchanged
}

/// Keeps answers out of caches, and browsers from guessing what they are.
async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.append(VARY, HeaderValue::from_static("authentication, authorization"));
    response
}
