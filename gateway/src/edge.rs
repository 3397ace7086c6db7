//! The way of each request to its route, and of the response back to the client.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use assay_console::Visit;
use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http::{
    HeaderMap, HeaderValue,
    header::{CACHE_CONTROL, VARY, X_CONTENT_TYPE_OPTIONS},
};
use tokio::time::timeout;

use crate::{
    address::{ClientAddress, Proxies},
    compression::Compression,
    config::EdgeConfig,
    cors::Cors,
    entity_tag::Cached,
    limit::{Limits, Pace, RequestLimits},
    problem::{FailedRequest, Problem},
    share_link,
    telemetry::{Durations, observe, observe_refusal},
};

/// Maximum time until a response begins; deadlines of calls to services are shorter.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Settings and state of the middleware.
pub(crate) struct Edge {
    proxies: Proxies,
    limits: Limits,
    durations: Durations,
    cors: Cors,
}

impl Edge {
    pub(crate) fn new(config: &EdgeConfig) -> Arc<Self> {
        Arc::new(Self {
            proxies: Proxies::new(&config.trusted_proxies),
            limits: Limits::new(config),
            durations: Durations::default(),
            cors: Cors::new(&config.cors_origins),
        })
    }

    /// Lets all requests to these routes pass the edge.
    ///
    /// It is one layer: axum copies and allocates each layer for each request.
    pub(crate) fn protect<S: Clone + Send + Sync + 'static>(
        self: &Arc<Self>,
        routes: Router<S>,
        pace: Pace,
    ) -> Router<S> {
        routes.layer(from_fn_with_state((self.clone(), pace), pass))
    }
}

/// Lets pages call these routes: with the limits of the request to the page, which has passed the
/// edge.
pub(crate) fn within<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes.layer(from_fn(call))
}

/// Passes the call of a page on to its route.
async fn call(mut request: Request, next: Next) -> Response {
    if let Some(Visit(page)) = request.extensions_mut().remove() {
        let extensions = request.extensions_mut();
        page.get::<ClientAddress>().map(|client| extensions.insert(*client));
        page.get::<RequestLimits>().map(|limits| extensions.insert(limits.clone()));
    }
    let failed = FailedRequest::of(&request);
    failed.explain(next.run(request).await)
}

/// Passes a request on to its route if it is within its limits.
async fn pass(
    State((edge, pace)): State<(Arc<Edge>, Pace)>,
    mut request: Request,
    next: Next,
) -> Response {
    let arrived = Instant::now();
    let client = edge.proxies.client(&request);
    let origin = edge.cors.allowed(request.headers());
    let failed = FailedRequest::of(&request);
    let is_shared = share_link::has_secret(request.uri().path());
    request.extensions_mut().insert(client);

    let mut response = match edge.limits.admit(client, request.headers(), pace).await {
        Ok(limits) => {
            let serve = |request| serve(edge.clone(), limits, failed, pace, request, next);
            observe(request, &edge.durations, serve).await
        }
        Err(problem) => {
            let mut response = failed.explain(problem.into_response());
            observe_refusal(&request, &edge.durations, arrived, &mut response);
            response
        }
    };
    protect(response.headers_mut());
    if is_shared {
        share_link::protect(response.headers_mut());
    }
    edge.cors.add_headers(origin, response.headers_mut());
    response
}

/// Returns the response of the route as it is sent to the client.
async fn serve(
    edge: Arc<Edge>,
    limits: RequestLimits,
    failed: FailedRequest,
    pace: Pace,
    mut request: Request,
    next: Next,
) -> Response {
    if let Some(response) = edge.cors.preflight(&request) {
        return response;
    }
    let cached = Cached::of(&request);
    let compression = Compression::of(&request);
    request.extensions_mut().insert(limits.clone());

    let response = in_time(pace, run(request, next)).await;
    let response = cached.unless_current(response);
    let response = compression.apply(response).await;
    let mut response = failed.explain(response);
    limits.release();
    limits.add_headers(response.headers_mut());
    response
}

/// Limits the time until a response begins. Bodies of responses may take longer.
async fn in_time(pace: Pace, response: impl Future<Output = Response>) -> Response {
    match pace {
        Pace::Slow | Pace::Reporting => response.await,
        Pace::Quick => timeout(RESPONSE_TIMEOUT, response)
            .await
            .unwrap_or_else(|_| Problem::timed_out().into_response()),
    }
}

/// Calls the handler, and turns its panic into a problem.
async fn run(request: Request, next: Next) -> Response {
    let outcome = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        tracing::error!(panic = text.unwrap_or_default(), "handler panicked");
        Problem::internal().into_response()
    })
}

/// Forbids caches to store responses, unless their routes allow it, and browsers to guess their
/// media type.
fn protect(headers: &mut HeaderMap) {
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.append(VARY, HeaderValue::from_static("authentication, authorization"));
}
