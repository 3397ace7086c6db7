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

/// Maximum size of a header of a trace, in bytes. The W3C requires that states of 512 are
/// propagated. Larger ones would be stored with each event, and could exceed the headers that a
/// server accepts.
const LONGEST: usize = 512;

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok().filter(|value| value.len() <= LONGEST)
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

#[cfg(test)]
mod tests {
    use opentelemetry::propagation::TextMapPropagator;
    use opentelemetry_sdk::propagation::TraceContextPropagator;

    use super::*;

    #[test]
    fn a_state_of_a_trace_is_propagated_unless_it_is_long() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let short = format!("one={},two={}", "a".repeat(250), "b".repeat(250));
        let long = format!("{short},three=c");
        for (state, propagated) in [(&short, short.as_str()), (&long, "")] {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", HeaderValue::from_static(parent));
            headers.insert("tracestate", HeaderValue::try_from(state).unwrap());
            let context = TraceContextPropagator::new()
                .extract_with_context(&Context::new(), &Headers(&headers));
            let span = context.span().span_context().clone();
            assert_eq!(span.trace_id().to_string(), &parent[3..35]);
            assert_eq!(span.trace_state().header(), propagated);
        }
    }
}
