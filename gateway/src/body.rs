//! JSON bodies of requests.

mod bounded;
mod filter;
mod json;
mod object;
pub(crate) mod one_or_many;

use std::time::Duration;

use assay_proto::Changes;
use axum::extract::{FromRequest, OptionalFromRequest, Request};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

pub(crate) use self::{
    bounded::{Bounds, LongHeaders, SeveralFiles, body_error, bounded, media_type},
    filter::{AcceptedFields, FieldFilter},
    json::{Fields, JsonBody, check_names, invalid, parse, read_fields},
};
use crate::{limit::RequestLimits, problem::Problem};

/// Maximum time for which a request waits for the next part of its body without giving its turn back.
/// A body that was sent with its head is there sooner.
const IN_TURN: Duration = Duration::from_millis(100);

/// A JSON object as the body, parsed as a `T`. Fields that are null count as absent, and those that only
/// the record of the `T` has are ignored.
#[derive(Default)]
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Sync, T: Changes + DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = <Self as OptionalFromRequest<S>>::from_request(request, state).await?;
        body.ok_or_else(missing)
    }
}

/// Returns none without a body.
impl<S: Sync, T: Changes + DeserializeOwned> OptionalFromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Option<Self>, Problem> {
        let Some(json) = read(request).await? else { return Ok(None) };
        let mut fields: Fields<'_> = parse(json.check()?)?;
        check_names::<T>(&fields)?;
        // Forms send empty fields of a new record as null.
        fields.retain(|name, value| T::FIELDS.contains(&name.as_str()) && value.get() != "null");
        Ok(Some(Self(read_fields(&fields)?)))
    }
}

/// Reads a JSON body, if there is one. A body without a media type is treated as JSON.
pub(crate) async fn read(request: Request) -> Result<Option<JsonBody>, Problem> {
    read_filtered(FieldFilter::default(), Bounds::JSON, request).await
}

/// Like [`read`], with other bounds, keeping only the fields that the filter accepts. The request is
/// charged for the memory that the body takes while it is read and parsed.
pub(crate) async fn read_filtered(
    mut filter: FieldFilter,
    bounds: Bounds,
    request: Request,
) -> Result<Option<JsonBody>, Problem> {
    let (parts, body) = request.into_parts();
    let mut body = bounded(&parts.headers, body, bounds)?;
    let limits = parts.extensions.get::<RequestLimits>();
    while let Some(chunk) = next_chunk(&mut body, limits).await? {
        filter.push(&chunk)?;
        if let Some(limits) = limits {
            limits.charge_body(filter.size())?;
        }
    }
    let json = filter.into_json();
    if json.is_empty() {
        return Ok(None);
    }
    let json = JsonBody::weigh(json)?;
    limits.map(|limits| limits.charge_body(json.size())).transpose()?;
    let is_json = |name: String| name == "application/json" || name.ends_with("+json");
    if media_type(&parts.headers).is_none_or(is_json) {
        return Ok(Some(json));
    }
    Err(Problem::unsupported("Content-Type: must be application/json"))
}

/// Returns the next data of a body. A request whose body takes longer gives its turn back.
async fn next_chunk(
    body: &mut axum::body::Body,
    limits: Option<&RequestLimits>,
) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = if let Ok(frame) = timeout(IN_TURN, body.frame()).await {
            frame
        } else {
            limits.map(RequestLimits::wait_for_body).transpose()?;
            body.frame().await
        };
        let Some(frame) = frame else { return Ok(None) };
        if let Ok(chunk) = frame.map_err(|error| body_error(&error))?.into_data() {
            return Ok(Some(chunk));
        }
    }
}

pub(crate) fn missing() -> Problem {
    Problem::malformed("the body is missing: send JSON")
}
