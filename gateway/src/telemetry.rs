//! Request id, trace, log line and metrics of each request.

mod durations;

use std::time::Instant;

use assay_runtime::{
    telemetry::{REQUEST_ID, request_id_in},
    trace,
};
use axum::{
    extract::{MatchedPath, Request},
    response::Response,
};
use http::{HeaderMap, HeaderValue, Method};
use metrics::{Unit, describe_counter, describe_histogram};
use tracing::{Instrument, Span, field::Empty};
use uuid::Uuid;

use self::durations::DURATION;
pub(crate) use self::durations::Durations;
use crate::share_link;

pub(crate) const REJECTED: &str = "assay_requests_refused_total";

/// Describes the metrics of this crate, for `# HELP` on `/metrics`.
pub(crate) fn describe_metrics() {
    describe_histogram!(
        DURATION,
        Unit::Seconds,
        "Time in seconds from the head of an HTTP request until the head of its response."
    );
    describe_counter!(
        REJECTED,
        Unit::Count,
        "HTTP requests refused by a limit: of an address or a customer per minute, of concurrent \
         requests (at once), or of the memory for bodies."
    );
}

/// Gives each request an id and a span, logs it and measures its duration.
pub(crate) async fn observe<F: Future<Output = Response>>(
    mut request: Request,
    durations: &Durations,
    serve: impl FnOnce(Request) -> F,
) -> Response {
    let id = request_id(request.headers());
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    // Clients are not trusted to set baggage for the services.
    request.headers_mut().remove("baggage");
    let span = span(&request, &id, route);
    trace::follow(&span, request.headers());

    let started = Instant::now();
    let mut response = serve(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    let seconds = started.elapsed().as_secs_f64();

    span.record("http.response.status_code", status);
    span.in_scope(|| tracing::info!(seconds, "{method} {route} returned {status}"));
    durations.record(method, route, status, seconds);
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Gives the response to a refused request an id and measures it. To be cheap, it has no span and no
/// log line.
pub(crate) fn observe_refusal(
    request: &Request,
    durations: &Durations,
    arrived: Instant,
    response: &mut Response,
) {
    let route = request.extensions().get().map_or("", MatchedPath::as_str);
    let (method, status) = (method(request.method()), response.status().as_u16());
    durations.record(method, route, status, arrived.elapsed().as_secs_f64());
    response.headers_mut().insert(REQUEST_ID, request_id(request.headers()));
}

fn span(request: &Request, id: &HeaderValue, route: &str) -> Span {
    let method = method(request.method());
    tracing::info_span!(
        // The span of the connection is not the parent of its requests.
        parent: None,
        "http",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        url.path = share_link::without_secret(request.uri().path()),
        request.id = id.to_str().unwrap_or_default(),
        assay.customer = Empty,
        assay.user = Empty,
    )
}

/// Returns the id that the client has sent, if it is valid, or a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let id = request_id_in(headers).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
    HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("none"))
}

/// Returns the name of a standard method, and `_OTHER` for others: clients must not add time
/// series.
fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}
