//! `/api/token`: logging in, and choosing a customer.

use assay_auth::{Caller, anonymous_from};
use assay_proto::identity::{LoginInput, LoginRequest, RefineInput, RefineRequest, Token};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    address::ClientAddress,
    answer::{Answer, Record},
    body::Body,
    host::Host,
    problem::Problem,
    services::{Services, Tokens},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(login)).routes(routes!(refine)).routes(routes!(logout))
}

impl Answer for Token {}

/// Exchanges an email and a password for a token.
///
/// The token is for the customer whose subdomain the request was sent to, else for the one that
/// the account worked for last.
#[utoipa::path(
    post, path = "/api/token/login", operation_id = "login", tag = "Tokens",
    request_body = LoginInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.TokenService/Login"))),
    responses((status = OK, description = "A token", body = Token)),
)]
async fn login(
    State(mut tokens): State<Tokens>,
    ClientAddress(address): ClientAddress,
    Host(host): Host,
    Body(login): Body<LoginInput>,
) -> Result<Record<Token>, Problem> {
    let request = LoginRequest { login: Some(login), host };
    let token = tokens.login(anonymous_from(address, request)).await?;
    Ok(Record(token.into_inner()))
}

/// Exchanges a token for one of another customer of the same account.
///
/// The new token belongs to the same session. A session ends some days after its login, however
/// often its tokens are exchanged: then the answer is 401, as when the membership that the token
/// comes from is gone.
#[utoipa::path(
    post, path = "/api/token/refine", operation_id = "refine", tag = "Tokens",
    request_body = RefineInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.TokenService/Refine"))),
    responses((status = OK, description = "A token for that customer", body = Token)),
)]
async fn refine(
    State(mut tokens): State<Tokens>,
    caller: Caller,
    Body(RefineInput { customer_id }): Body<RefineInput>,
) -> Result<Record<Token>, Problem> {
    let token = tokens.refine(caller.call(RefineRequest { customer_id })).await?;
    Ok(Record(token.into_inner()))
}

/// Ends the session of the token: the token dies, and all others that come from the same login.
///
/// An API token has no session; it is deleted instead.
#[utoipa::path(
    post, path = "/api/token/logout", operation_id = "logout", tag = "Tokens",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.TokenService/Logout"))),
    responses((status = NO_CONTENT, description = "The session has ended")),
)]
async fn logout(State(mut tokens): State<Tokens>, caller: Caller) -> Result<StatusCode, Problem> {
    tokens.logout(caller.call(())).await?;
    Ok(StatusCode::NO_CONTENT)
}
