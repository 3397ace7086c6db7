//! Bodies of updates: absent fields keep their value, `null` clears a field.

use std::convert::Infallible;

use axum::extract::{FromRequest, FromRequestParts, OptionalFromRequest, Request};
use http::{HeaderMap, header::IF_MATCH, request::Parts};
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::{
    body::{self, AcceptedFields, Bounds, FieldFilter, Fields},
    entity_tag,
    nested::Nested,
    problem::Problem,
};

/// Maximum size of the writable fields of a record in bytes. A message of 4 MiB, which services accept, has
/// room for more.
const LARGEST: usize = (4 << 20) - (64 << 10);

/// The changed fields of a record, and the version that the change is based on.
pub(crate) struct Update<T> {
    pub(crate) changes: T,
    /// The names of the fields of `changes` that were sent.
    pub(crate) fields: Vec<String>,
    /// From `If-Match`, otherwise from the body; without it, the last writer wins.
    pub(crate) data_version: Option<String>,
    /// The fields that were sent in an object within the body.
    pub(crate) nested: Nested,
}

/// A message whose fields an update may change one by one.
pub(crate) trait Updatable: assay_proto::Changes + DeserializeOwned {
    /// The fields that are arrays of records, of which only the ids are accepted.
    const REFERENCES: &'static [&'static str] = &[];

    /// Renames fields that clients send under other names, and moves nested fields to the top
    /// level. Returns the nested ones.
    fn adapt(_fields: &mut Fields<'_>) -> Result<Nested, Problem> {
        Ok(Nested::default())
    }
}

impl<S: Sync, T: Updatable> FromRequest<S> for Update<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let update = <Self as OptionalFromRequest<S>>::from_request(request, state).await?;
        update.ok_or_else(body::missing)
    }
}

/// Returns none without a body.
impl<S: Sync, T: Updatable> OptionalFromRequest<S> for Update<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Option<Self>, Problem> {
        let based_on = if_match(request.headers());
        let accepted = AcceptedFields { names: T::FIELDS, references: T::REFERENCES };
        let body = body::read_filtered(FieldFilter::new(accepted), Bounds::RECORD, request).await?;
        let Some(json) = body else { return Ok(None) };
        // References to records are short, and services accept all of them.
        if T::REFERENCES.is_empty() && json.len() > LARGEST {
            return Err(Problem::too_large());
        }
        let mut fields: Fields<'_> = body::parse(json.check()?)?;
        let nested = T::adapt(&mut fields)?;
        let data_version = based_on.map_or_else(|| data_version(&fields), |v| Ok(Some(v)))?;
        fields.remove("DataVersion");
        body::check_names::<T>(&fields).map_err(|problem| problem.within(&nested))?;
        fields.retain(|name, _| T::FIELDS.contains(&name.as_str()));
        let changes = body::read_fields(&fields).map_err(|problem| problem.within(&nested))?;
        Ok(Some(Self { changes, fields: fields.into_keys().collect(), data_version, nested }))
    }
}

fn data_version(fields: &Fields<'_>) -> Result<Option<String>, Problem> {
    let version = fields.get("DataVersion").map(|version| serde_json::from_str(version.get()));
    let version = version.transpose();
    version.map(Option::flatten).map_err(|_| Problem::invalid("DataVersion", "must be a string"))
}

/// The version that a change is based on, for bodies that cannot hold it.
#[derive(IntoParams)]
#[into_params(names("If-Match"), parameter_in = Header)]
pub(crate) struct IfMatch(
    /// The `ETag` of the record that the change is based on; only its version is compared
    pub(crate) Option<String>,
);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(if_match(&parts.headers)))
    }
}

/// Returns the version in `If-Match`. A value other than a single strong tag matches no version.
fn if_match(headers: &HeaderMap) -> Option<String> {
    let tag = headers.get(IF_MATCH)?.to_str().unwrap_or_default().trim();
    (tag != "*").then(|| entity_tag::version(tag).to_owned())
}
