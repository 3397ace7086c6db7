//! Middleware around all routes.

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
    address::resolve_client,
    config::EdgeConfig,
    cors, entity_tag,
    limit::{Limits, RequestLimits, limit},
    problem::{Problem, finish},
    telemetry::observe,
};

/// Minimum size of compressed bodies, in bytes; smaller ones would hardly shrink.
const COMPRESSED_FROM: u64 = 1024;

/// Maximum time until a response begins; deadlines of calls to services are shorter.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Wraps the routes in the middleware.
pub(crate) fn wrap<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    config: &EdgeConfig,
) -> Router<S> {
    let large = SizeAbove::new(COMPRESSED_FROM).and(NotForContentType::IMAGES);
    // Compression would delay events until a block is full.
    let large = large.and(NotForContentType::SSE);
    // The last layer is the outermost.
    routes
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(revalidate))
        .layer(CompressionLayer::new().compress_when(large))
        .layer(from_fn_with_state(Limits::new(config), limit))
        .layer(from_fn(finish))
        .layer(cors::layer(&config.cors_origins))
        .layer(from_fn(protect))
        .layer(from_fn(observe))
        .layer(from_fn_with_state(config.trusted_proxies.clone(), resolve_client))
}

/// Limits the number of concurrent requests, and the time until a response begins. Bodies of
/// responses may take longer.
pub(crate) async fn with_deadline(request: Request, next: Next) -> Result<Response, Problem> {
    request.extensions().get().map(RequestLimits::admit).transpose()?;
    tokio::time::timeout(RESPONSE_TIMEOUT, next.run(request))
        .await
        .map_err(|_| Problem::timed_out())
}

#[expect(clippy::needless_pass_by_value, reason = "the layer passes it by value")]
fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or_default(), "handler panicked");
    Problem::internal().into_response()
}

/// Returns 304 if the cached response of the client is current.
async fn revalidate(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let cached = request.headers().get(IF_NONE_MATCH).filter(|_| reads).cloned();
    let response = next.run(request).await;
    let tags = cached.as_ref().zip(response.headers().get(ETAG));
    if tags.is_none_or(|(cached, tag)| {
        response.status() != StatusCode::OK || !entity_tag::matches(cached, tag)
    }) {
        return response;
    }
    let mut unchanged = StatusCode::NOT_MODIFIED.into_response();
    unchanged.headers_mut().extend(response.headers().get(ETAG).map(|tag| (ETAG, tag.clone())));
    unchanged
}

/// Forbids caches to store responses, and browsers to guess their media type.
async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.append(VARY, HeaderValue::from_static("authentication, authorization"));
    response
}
