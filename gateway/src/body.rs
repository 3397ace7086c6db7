//! JSON bodies of requests, and what may be wrong with them.

mod bounded;
mod json;
mod object;
mod one_or_many;
mod sieve;

use axum::extract::{FromRequest, OptionalFromRequest, Request};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;

pub(crate) use self::{
    bounded::{Bounds, bounded, broken, media_type},
    json::{Fields, check, misfit, parse, read_fields},
    one_or_many::OneOrMany,
    sieve::{Sieve, Taken},
};
use crate::{limit::Account, problem::Problem};

/// A JSON object as the body, read as a `T`. Fields that are null are read as absent ones.
#[derive(Default)]
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = <Self as OptionalFromRequest<S>>::from_request(request, state).await?;
        body.ok_or_else(missing)
    }
}

/// None where there is no body at all.
impl<S: Sync, T: DeserializeOwned> OptionalFromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Option<Self>, Problem> {
        let Some(json) = read(request).await? else { return Ok(None) };
        // Null in a new record means absent: forms send empty fields so.
        let mut fields: Fields<'_> = parse(check(&json)?)?;
        fields.retain(|_, value| value.get() != "null");
        Ok(Some(Self(read_fields(&fields)?)))
    }
}

/// Reads a JSON body whole, if there is one. One without a media type is taken for JSON.
pub(crate) async fn read(request: Request) -> Result<Option<Vec<u8>>, Problem> {
    read_through(Sieve::default(), Bounds::JSON, request).await
}

/// As [`read`], of bodies that may be larger, of which only a part is kept.
pub(crate) async fn read_through(
    mut sieve: Sieve,
    bounds: Bounds,
    request: Request,
) -> Result<Option<Vec<u8>>, Problem> {
    let (parts, body) = request.into_parts();
    let mut body = bounded(&parts.headers, body, bounds)?;
    let account = parts.extensions.get::<Account>();
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame.map_err(|error| broken(&error))?.into_data() else { continue };
        sieve.push(&chunk)?;
        if let Some(account) = account {
            account.charge_body(sieve.size())?;
        }
    }
    let json = sieve.into_kept();
    if json.is_empty() {
        return Ok(None);
    }
    let is_json = |name: String| name == "application/json" || name.ends_with("+json");
    if media_type(&parts.headers).is_none_or(is_json) {
        return Ok(Some(json));
    }
    Err(Problem::unsupported("Content-Type: must be application/json"))
}

pub(crate) fn missing() -> Problem {
    Problem::malformed("a JSON body is expected")
}
