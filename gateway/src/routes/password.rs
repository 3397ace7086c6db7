//! `/api/users/reset`: a new password for who has forgotten theirs, or never had one.

use assay_auth::anonymous_from;
use assay_proto::identity::{
    PreparePasswordResetInput, PreparePasswordResetRequest, ResetPasswordInput,
    ResetPasswordRequest,
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
    OpenApiRouter::new().routes(routes!(prepare)).routes(routes!(reset))
}

/// An object without fields.
#[derive(Serialize, ToSchema)]
struct Nothing {}

impl Answer for Nothing {}

/// Sends a link by mail by which to set a new password.
///
/// The answer is the same whether there is such an account or not. The link works once, and for an
/// hour; a newer one voids it.
#[utoipa::path(
    put, path = "/api/users/reset/prepare", operation_id = "prepare_password_reset",
    tag = "Users", request_body = PreparePasswordResetInput,
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

/// Sets a new password. All tokens of the account die.
#[utoipa::path(
    put, path = "/api/users/reset", operation_id = "reset_password", tag = "Users",
    request_body = ResetPasswordInput,
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
