//! `Idempotency-Key`: what a client calls a request that is to have its effect once, however often
//! it is sent.

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

/// The key, if there is one. Quotes around it, as structured headers have them, do not count.
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(NAME) else { return Ok(Self(None)) };
        let key = value.to_str().map_err(|_| Problem::invalid(NAME, "must be ASCII"))?.trim();
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
                "What the client calls this request, such as a UUID. Sent again with the same key, \
                 it is answered with the execution that was made; the same key with another \
                 request or other files is refused with 422 `idempotency_key_reused`. Keys belong to their user \
                 and are known as long as the execution.",
            ))
            .schema(Some(text))
            .example(Some("build-1205".into()));
        vec![parameter.build()]
    }
}
