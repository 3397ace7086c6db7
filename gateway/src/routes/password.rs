//! `/api/users/reset`: password resets and invitations by links in mails.

use assay_auth::anonymous_from;
use assay_proto::identity::{
    AcceptInvitationInput, AcceptInvitationRequest, PreparePasswordResetInput,
    PreparePasswordResetRequest, ResetPasswordInput, ResetPasswordRequest,
};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    address::ClientAddress,
    body::Body,
    problem::Problem,
    response::{Json, Resource},
    services::{Services, Users},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(prepare)).routes(routes!(reset)).routes(routes!(accept))
}

/// An object without fields.
#[derive(Serialize, ToSchema)]
struct Nothing {}

impl Resource for Nothing {}

/// Sends a mail with a link for setting a new password.
///
/// The response does not reveal whether the account exists. The link works once and expires after
/// an hour. An account has at most three valid links; a fourth one replaces the oldest. An invited
/// address without an account gets its invitation again.
#[utoipa::path(
    put, path = "/api/users/reset/prepare", operation_id = "prepare_password_reset",
    tag = "Users", request_body = PreparePasswordResetInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/PreparePasswordReset"))),
    responses((status = OK, description = "The request has been accepted", body = Nothing)),
)]
async fn prepare(
    State(mut users): State<Users>,
    ClientAddress(address): ClientAddress,
    Body(reset): Body<PreparePasswordResetInput>,
) -> Result<Json<Nothing>, Problem> {
    let request = PreparePasswordResetRequest { reset: Some(reset) };
    users.prepare_password_reset(anonymous_from(address, request)).await?;
    Ok(Json(Nothing {}))
}

/// Sets a new password with the token of a link in a mail.
///
/// All tokens, API tokens and links of the account are revoked. The link of an invitation accepts the
/// invitation and sets the first password: it fails with 409 `account_exists` if the address has an
/// account that can log in, and stays valid for `accept_invitation`.
#[utoipa::path(
    put, path = "/api/users/reset", operation_id = "reset_password", tag = "Users",
    request_body = ResetPasswordInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/ResetPassword"))),
    responses((status = OK, description = "The password has been set", body = Nothing)),
)]
async fn reset(
    State(mut users): State<Users>,
    ClientAddress(address): ClientAddress,
    Body(reset): Body<ResetPasswordInput>,
) -> Result<Json<Nothing>, Problem> {
    let request = ResetPasswordRequest { reset: Some(reset) };
    users.reset_password(anonymous_from(address, request)).await?;
    Ok(Json(Nothing {}))
}

/// Accepts an invitation with the token of its link, for an account that has a password.
///
/// Fails with 409 `password_needed` if the address has no account. The link stays valid:
/// `reset_password` accepts the invitation and sets the password of the new account.
#[utoipa::path(
    put, path = "/api/users/reset/accept", operation_id = "accept_invitation", tag = "Users",
    request_body = AcceptInvitationInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/AcceptInvitation"))),
    responses((status = OK, description = "The account belongs to the customer", body = Nothing)),
)]
async fn accept(
    State(mut users): State<Users>,
    ClientAddress(address): ClientAddress,
    Body(invitation): Body<AcceptInvitationInput>,
) -> Result<Json<Nothing>, Problem> {
    let request = AcceptInvitationRequest { invitation: Some(invitation) };
    users.accept_invitation(anonymous_from(address, request)).await?;
    Ok(Json(Nothing {}))
}
