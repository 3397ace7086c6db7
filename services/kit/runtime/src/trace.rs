//! W3C trace context: taken from headers, and put into them.

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

/// Makes a span a part of the trace that the headers name. To be called before the span is entered.
pub fn follow(span: &Span, headers: &HeaderMap) {
    adopt(span, &Headers(headers));
}

/// As [`follow`], for headers that were kept as text by [`to_map`].
#[expect(clippy::implicit_hasher, reason = "it is the map that `to_map` makes")]
pub fn follow_map(span: &Span, headers: &HashMap<String, String>) {
    adopt(span, headers);
}

fn adopt(span: &Span, headers: &dyn Extractor) {
    // Headers that name no trace must not lead to the current one.
    let nowhere = Context::new();
    let parent =
        get_text_map_propagator(|propagator| propagator.extract_with_context(&nowhere, headers));
    if parent.span().span_context().is_valid() {
        // Fails where no telemetry is installed, which is as good.
        let _ = span.set_parent(parent);
    }
}

/// Puts the current trace into headers.
pub fn inject(headers: &mut HeaderMap) {
    let context = Span::current().context();
    get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut HeadersMut(headers));
    });
}

/// The current trace as headers to keep as text.
pub fn to_map() -> HashMap<String, String> {
    let mut headers = HashMap::new();
    let context = Span::current().context();
    get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut headers));
    headers
}

/// The id of the current trace, as 32 hexadecimal digits; none outside of one.
pub fn id() -> Option<String> {
    let context = Span::current().context();
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
