//! The ids of a request and of its trace, stored with its span.
//!
//! Ids of requests come from the spans that are created for requests. Ids of traces come from
//! OpenTelemetry if traces are sent. Otherwise nobody sees its spans, which cost a third of a small
//! read, so a trace consists of its ids, which are logged and forwarded.

use std::{fmt::Debug, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{SpanContext, TraceFlags, TraceState};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use tracing::{
    Span, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer, Registry,
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

use crate::lifecycle::TASK;

/// Field of a span with the id of its request.
const FIELD: &str = "request.id";

/// Header with the id of a request.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an id that a client chooses.
const LONGEST: usize = 128;

/// Returns the id in the headers if it is safe to log and to forward.
pub fn request_id_in(headers: &HeaderMap) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    ((1..=LONGEST).contains(&id.len()) && id.bytes().all(plain)).then_some(id)
}

/// Returns the id of the request that the current span belongs to.
pub(crate) fn request_id() -> Option<Arc<str>> {
    find(&Span::current(), |span| Some(span.extensions().get::<RequestId>()?.0.clone()))
}

/// Adds the id of the current request to headers.
pub fn inject_request_id(headers: &mut HeaderMap) {
    if let Some(Ok(id)) = request_id().map(|id| HeaderValue::try_from(&*id)) {
        headers.insert(REQUEST_ID, id);
    }
}

/// Returns the trace that the current span belongs to, unless OpenTelemetry knows it.
pub(crate) fn trace() -> Option<SpanContext> {
    find(&Span::current(), |span| Some(span.extensions().get::<Trace>()?.0.clone()))
}

/// Makes a span, which must be the first of its trace, part of another trace, unless OpenTelemetry
/// does.
pub(crate) fn follow_trace(span: &Span, trace: &SpanContext) {
    find(span, |span| span.extensions_mut().replace(Trace(trace.clone())));
}

/// Returns what `of` finds in the span or the nearest span around it.
fn find<T>(span: &Span, of: impl FnMut(SpanRef<'_, Registry>) -> Option<T>) -> Option<T> {
    let found = span.with_subscriber(|(id, dispatch)| {
        dispatch.downcast_ref::<Registry>()?.span(id)?.scope().find_map(of)
    });
    found.flatten()
}

struct RequestId(Arc<str>);

struct Trace(SpanContext);

/// Stores the ids of requests, and of traces if `traces`, with their spans.
pub(super) struct Ids {
    pub(super) traces: bool,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Ids {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if attributes.metadata().fields().field(FIELD).is_some() {
            let mut found = Found(None);
            attributes.record(&mut found);
            if let Some(found) = found.0 {
                span.extensions_mut().insert(RequestId(found));
            }
        }
        let mut around = span.scope().skip(1);
        let begins_trace =
            self.traces && span.name() != TASK && around.all(|span| span.name() == TASK);
        if begins_trace {
            span.extensions_mut().insert(Trace(new_trace()));
        }
    }
}

fn new_trace() -> SpanContext {
    let ids = RandomIdGenerator::default();
    let (trace, span) = (ids.new_trace_id(), ids.new_span_id());
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE)
}

struct Found(Option<Arc<str>>);

impl Visit for Found {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == FIELD {
            self.0 = Some(value.into());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}
