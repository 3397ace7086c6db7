//! W3C trace context in headers.

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    Context,
    global::get_text_map_propagator,
    propagation::{Extractor, Injector},
    trace::TraceContextExt,
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::ids;

/// Makes a span part of the trace that the headers name. Must be called before the span is entered.
pub fn follow(span: &Span, headers: &HeaderMap) {
    adopt(span, &Headers(headers));
}

/// Does the same as [`follow`] for headers from [`to_map`].
#[expect(clippy::implicit_hasher, reason = "the map comes from `to_map`")]
pub fn follow_map(span: &Span, headers: &HashMap<String, String>) {
    adopt(span, headers);
}

fn adopt(span: &Span, headers: &dyn Extractor) {
    // Without a trace in the headers, the span must not become part of the current one.
    let nowhere = Context::new();
    let parent =
        get_text_map_propagator(|propagator| propagator.extract_with_context(&nowhere, headers));
    let of_parent = parent.span().span_context().clone();
    // Fails if OpenTelemetry does not record the span.
    if of_parent.is_valid() && span.set_parent(parent).is_err() {
        ids::follow_trace(span, &of_parent);
    }
}

/// Returns the current trace.
fn current() -> Context {
    let context = Span::current().context();
    if context.span().span_context().is_valid() {
        return context;
    }
    ids::trace().map_or(context, |trace| Context::new().with_remote_span_context(trace))
}

/// Adds the current trace to headers.
pub fn inject(headers: &mut HeaderMap) {
    let context = current();
    get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut HeadersMut(headers));
    });
}

/// Returns the headers of the current trace as text, for storage.
pub fn to_map() -> HashMap<String, String> {
    let mut headers = HashMap::new();
    let context = current();
    get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut headers));
    headers
}

/// Returns the id of the current trace as 32 hexadecimal digits; `None` outside a trace.
pub fn id() -> Option<String> {
    let context = current();
    let id = context.span().span_context().trace_id();
    (id != opentelemetry::TraceId::INVALID).then(|| id.to_string())
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct HeadersMut<'a>(&'a mut HeaderMap);

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}
