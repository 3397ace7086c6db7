//! `/api/users/reset`: what the links of mails are for: a new password, or an invitation.

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
    answer::{Answer, Record},
    body::Body,
    problem::Problem,
    services::{Services, Users},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(prepare)).routes(routes!(reset)).routes(routes!(accept))
}

/// An object without fields.
#[derive(Serialize, ToSchema)]
struct Nothing {}

impl Answer for Nothing {}

/// Sends a link by mail by which to set a new password.
///
/// The answer is the same whether there is such an account or not. The link works once, and for an
/// hour. An account has three live links at most: a fourth one takes the place of the oldest. An
/// address that is invited and has no account gets its invitation again.
#[utoipa::path(
    put, path = "/api/users/reset/prepare", operation_id = "prepare_password_reset",
    tag = "Users", request_body = PreparePasswordResetInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/PreparePasswordReset"))),
    responses((status = OK, description = "The mail is on its way", body = Nothing)),
)]
async fn prepare(
    State(mut users): State<Users>,
    ClientAddress(address): ClientAddress,
    Body(reset): Body<PreparePasswordResetInput>,
) -> Result<Record<Nothing>, Problem> {
    let request = PreparePasswordResetRequest { reset: Some(reset) };
    users.prepare_password_reset(anonymous_from(address, request)).await?;
    Ok(Record(Nothing {}))
}

/// Sets a new password, by the link of a mail.
///
/// All tokens, API tokens and links of the account die. The link of an invitation accepts that
/// invitation, too.
#[utoipa::path(
    put, path = "/api/users/reset", operation_id = "reset_password", tag = "Users",
    request_body = ResetPasswordInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/ResetPassword"))),
    responses((status = OK, description = "The password is set", body = Nothing)),
)]
async fn reset(
    State(mut users): State<Users>,
    ClientAddress(address): ClientAddress,
    Body(reset): Body<ResetPasswordInput>,
) -> Result<Record<Nothing>, Problem> {
    let request = ResetPasswordRequest { reset: Some(reset) };
    users.reset_password(anonymous_from(address, request)).await?;
    Ok(Record(Nothing {}))
}

/// Accepts an invitation by the link of its mail, for an account that has a password.
///
/// For an address without an account the answer is 409 `password_needed`, and the link is left as it
/// is: with a new password it is for `reset_password`.
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
) -> Result<Record<Nothing>, Problem> {
    let request = AcceptInvitationRequest { invitation: Some(invitation) };
    users.accept_invitation(anonymous_from(address, request)).await?;
    Ok(Record(Nothing {}))
}
