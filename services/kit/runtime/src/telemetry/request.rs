//! The id of a request: kept with the span of the request, and passed on with the calls that it
//! leads to.

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

/// The field of a span that says which request it is about.
const FIELD: &str = "request.id";

/// Where an id travels.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken over.
const LONGEST: usize = 128;

/// The id in the headers, if it is one that can be written anywhere.
pub fn request_id_in(headers: &HeaderMap) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    ((1..=LONGEST).contains(&id.len()) && id.bytes().all(plain)).then_some(id)
}

/// The id of the request that the current span belongs to.
pub(crate) fn request_id() -> Option<Arc<str>> {
    let of_span =
        |span: SpanRef<'_, Registry>| Some(span.extensions().get::<RequestId>()?.0.clone());
    let current = Span::current();
    let found = current.with_subscriber(|(id, dispatch)| {
        dispatch.downcast_ref::<Registry>()?.span(id)?.scope().find_map(of_span)
    });
    found.flatten()
}

/// Passes the id of the current request on.
pub(crate) fn pass_on(headers: &mut HeaderMap) {
    if let Some(Ok(id)) = request_id().map(|id| HeaderValue::try_from(&*id)) {
        headers.insert(REQUEST_ID, id);
    }
}

struct RequestId(Arc<str>);

/// Remembers the ids of requests.
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
