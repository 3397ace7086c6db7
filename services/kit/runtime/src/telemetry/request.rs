//! The id of a request, stored with its span and forwarded with the calls that it causes.

use std::{fmt::Debug, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use tracing::{
    Span, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer, Registry,
    filter::filter_fn,
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

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
    let of_span =
        |span: SpanRef<'_, Registry>| Some(span.extensions().get::<RequestId>()?.0.clone());
    let current = Span::current();
    let found = current.with_subscriber(|(id, dispatch)| {
        dispatch.downcast_ref::<Registry>()?.span(id)?.scope().find_map(of_span)
    });
    found.flatten()
}

/// Adds the id of the current request to headers.
pub(crate) fn inject_request_id(headers: &mut HeaderMap) {
    if let Some(Ok(id)) = request_id().map(|id| HeaderValue::try_from(&*id)) {
        headers.insert(REQUEST_ID, id);
    }
}

struct RequestId(Arc<str>);

/// Stores the ids of requests with their spans.
struct RequestIds;

pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    let has_id = filter_fn(|metadata| metadata.fields().field(FIELD).is_some());
    RequestIds.with_filter(has_id)
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for RequestIds {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut found = Found(None);
        attributes.record(&mut found);
        if let (Some(found), Some(span)) = (found.0, context.span(id)) {
            span.extensions_mut().insert(RequestId(found));
        }
    }
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
