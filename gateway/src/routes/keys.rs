//! `/.well-known/jwks.json`: the public keys for programs that verify tokens.

use assay_auth::anonymous;
use axum::extract::State;
use http::header::CONTENT_TYPE;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    problem::Problem,
    services::{Services, Tokens},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Returns the public keys for verifying tokens.
#[utoipa::path(
    get, path = "/.well-known/jwks.json", operation_id = "list_keys", tag = "Tokens",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.TokenService/ListKeys"))),
    responses((
        status = OK, description = "A JSON web key set (RFC 7517)", body = serde_json::Value,
        content_type = "application/jwk-set+json",
        example = json!({"keys": [{
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig",
            "kid": "019cade2-11c0-7e3a-9b15-4f60d82c7a91",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        }]}),
    )),
)]
async fn list(
    State(mut tokens): State<Tokens>,
) -> Result<([(http::HeaderName, &'static str); 1], String), Problem> {
    let keys = tokens.list_keys(anonymous(())).await?;
    Ok(([(CONTENT_TYPE, "application/jwk-set+json")], keys.into_inner().jwks))
}
