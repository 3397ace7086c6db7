//! `/api/token`: login, logout and the choice of a customer.

use assay_auth::{Caller, anonymous_from};
use assay_proto::identity::{LoginInput, LoginRequest, RefineInput, RefineRequest, Token};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    address::ClientAddress,
    body::Body,
    host::Host,
    problem::Problem,
    response::{Json, Resource},
    services::{Services, Tokens},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(login)).routes(routes!(refine)).routes(routes!(logout))
}

impl Resource for Token {}

/// Exchanges an email and a password for a token.
///
/// The token is for the customer whose subdomain the request was sent to, otherwise for the
/// customer that the account has used last.
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
) -> Result<Json<Token>, Problem> {
    let request = LoginRequest { login: Some(login), host };
    let token = tokens.login(anonymous_from(address, request)).await?;
    Ok(Json(token.into_inner()))
}

/// Exchanges a token for one for another customer of the same account.
///
/// The new token belongs to the same session. A session ends a fixed time after its login, however
/// often its tokens are exchanged. After that, or without the membership that the token was issued
/// for, the request fails with 401.
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
) -> Result<Json<Token>, Problem> {
    let token = tokens.refine(caller.call(RefineRequest { customer_id })).await?;
    Ok(Json(token.into_inner()))
}

/// Ends the session of the caller.
///
/// Revokes the token of the request and all others of the same login, including those for other
/// customers that `refine` has returned. Other sessions of the account continue. A revoked token is
/// rejected with 401, here too. An API token has no session: the request fails with 403, and
/// `DELETE /api/users/current/tokens/{apiTokenId}` revokes it.
#[utoipa::path(
    post, path = "/api/token/logout", operation_id = "logout", tag = "Tokens",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.TokenService/Logout"))),
    responses((status = NO_CONTENT, description = "The session has ended")),
)]
async fn logout(State(mut tokens): State<Tokens>, caller: Caller) -> Result<StatusCode, Problem> {
    tokens.logout(caller.call(())).await?;
    Ok(StatusCode::NO_CONTENT)
}
