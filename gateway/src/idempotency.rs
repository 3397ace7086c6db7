//! `Idempotency-Key`: a key by which a retried request takes effect once.

use axum::extract::FromRequestParts;
use http::request::Parts;
use utoipa::{
    IntoParams,
    openapi::{
        ObjectBuilder, Required,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::Type,
    },
};

use crate::problem::Problem;

const NAME: &str = "Idempotency-Key";

/// The key, if there is one, without the quotes of structured headers.
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(NAME) else { return Ok(Self(None)) };
        let key = value
            .to_str()
            .map_err(|_| Problem::invalid(NAME, "must consist of visible ASCII characters"))?
            .trim();
        let quoted = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
        Ok(Self(Some(quoted.unwrap_or(key).to_owned())))
    }
}

impl IntoParams for IdempotencyKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let parameter = ParameterBuilder::new()
            .name(NAME)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(
                "A key that the client chooses for this request, such as a UUID. A retry with the \
                 same key returns the execution that the first request has created. The same key \
                 with another request or other files fails with 422 `idempotency_key_reused`. Keys \
                 belong to their user and are kept as long as the execution.",
            ))
            .schema(Some(text))
            .example(Some("build-1205".into()));
        vec![parameter.build()]
    }
}
