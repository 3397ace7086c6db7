//! What is seen of each request from outside: its id, its trace, a log line, its duration.

use std::time::Instant;

use assay_runtime::{
    telemetry::{REQUEST_ID, request_id_in},
    trace,
};
use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, HeaderValue, Method};
use tracing::{Instrument, Span, field::Empty};
use uuid::Uuid;

/// Gives each request an id and a span, and measures it.
pub(crate) async fn observe(mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str).to_owned();
    // Baggage is for programs that trust each other.
    request.headers_mut().remove("baggage");
    let span = span(&request, &id, &route);
    trace::follow(&span, request.headers());

    let started = Instant::now();
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    let seconds = started.elapsed().as_secs_f64();

    span.record("http.response.status_code", status);
    span.in_scope(|| tracing::info!(seconds, "{method} {route} answered with {status}"));
    let labels = [("method", method.into()), ("route", route), ("status", status.to_string())];
    metrics::histogram!("http_server_request_duration_seconds", &labels).record(seconds);
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

fn span(request: &Request, id: &HeaderValue, route: &str) -> Span {
    let method = method(request.method());
    tracing::info_span!(
        // A request is no part of the task that serves its connection.
        parent: None,
        "http",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        url.path = request.uri().path(),
        request.id = id.to_str().unwrap_or_default(),
        assay.customer = Empty,
        assay.user = Empty,
    )
}

/// The id that the client gave the request, if it is one, or a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let id = request_id_in(headers).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
    HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("none"))
}

/// Clients can make up methods, and each would be a time series of its own.
fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}
