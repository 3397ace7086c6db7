//! `/api/users/current/tokens`, and the API tokens of other users for user managers.

use assay_auth::Caller;
use assay_proto::identity::{
    ApiToken, ApiTokenInput, CreateApiTokenRequest, DeleteApiTokenRequest,
    DeleteUserApiTokenRequest, ListApiTokensRequest, ListUserApiTokensRequest, NewApiToken,
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    response::{Created, Json, Resource},
    services::{ApiTokens, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(delete))
        .routes(routes!(list_of_user))
        .routes(routes!(delete_of_user))
}

impl Resource for NewApiToken {}

/// Lists the caller's API tokens for the current customer, newest first.
#[utoipa::path(
    get, path = "/api/users/current/tokens", operation_id = "list_api_tokens",
    tag = "API tokens", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.identity.v1.ApiTokenService/ListApiTokens"))),
    responses((status = OK, description = "The API tokens", body = [ApiToken])),
)]
async fn list(
    State(mut tokens): State<ApiTokens>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListApiTokensRequest { page: Some(listing.page()) };
    listing.respond(tokens.list_api_tokens(caller.call(request)).await?).await
}

/// Creates an API token.
///
/// Only this response shows the `Secret`. Send it in place of a token, in the same header. A user may have 100 API
/// tokens that have not expired.
#[utoipa::path(
    post, path = "/api/users/current/tokens", operation_id = "create_api_token",
    tag = "API tokens", request_body = ApiTokenInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.ApiTokenService/CreateApiToken"))),
    responses((status = CREATED, description = "The API token", body = NewApiToken)),
)]
async fn create(
    State(mut tokens): State<ApiTokens>,
    caller: Caller,
    Body(input): Body<ApiTokenInput>,
) -> Result<Created<Json<NewApiToken>>, Problem> {
    let request = CreateApiTokenRequest { api_token: Some(input) };
    let token = tokens.create_api_token(caller.call(request)).await?.into_inner();
    Ok(Created(format!("/api/users/current/tokens/{}", token.id), Json(token)))
}

/// Revokes an API token immediately.
#[utoipa::path(
    delete, path = "/api/users/current/tokens/{apiTokenId}", operation_id = "delete_api_token",
    tag = "API tokens",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.ApiTokenService/DeleteApiToken"))),
    responses((status = NO_CONTENT, description = "The API token has been revoked")),
)]
async fn delete(
    State(mut tokens): State<ApiTokens>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    tokens.delete_api_token(caller.call(DeleteApiTokenRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the API tokens of a user of the caller's customer, newest first.
#[utoipa::path(
    get, path = "/api/users/{userId}/tokens", operation_id = "list_user_api_tokens",
    tag = "API tokens", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.identity.v1.ApiTokenService/ListUserApiTokens"))),
    responses((status = OK, description = "The API tokens", body = [ApiToken])),
)]
async fn list_of_user(
    State(mut tokens): State<ApiTokens>,
    caller: Caller,
    Path(user_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListUserApiTokensRequest { user_id, page: Some(listing.page()) };
    listing.respond(tokens.list_user_api_tokens(caller.call(request)).await?).await
}

/// Revokes an API token of a user of the caller's customer immediately.
#[utoipa::path(
    delete, path = "/api/users/{userId}/tokens/{apiTokenId}",
    operation_id = "delete_user_api_token", tag = "API tokens",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.ApiTokenService/DeleteUserApiToken"))),
    responses((status = NO_CONTENT, description = "The API token has been revoked")),
)]
async fn delete_of_user(
    State(mut tokens): State<ApiTokens>,
    caller: Caller,
    Path((user_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let request = DeleteUserApiTokenRequest { user_id, id };
    tokens.delete_user_api_token(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
