//! `/api/users/current/settings`.

use assay_auth::Caller;
use assay_proto::identity::{UpdateUserSettingsRequest, UserSettings, UserSettingsInput};
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    problem::Problem,
    response::{Json, Resource},
    services::{Services, Settings},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(get, update))
}

impl Resource for UserSettings {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for UserSettingsInput {}

/// Returns the caller's settings at the current customer.
#[utoipa::path(
    get, path = "/api/users/current/settings", operation_id = "get_user_settings",
    tag = "Users",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserSettingsService/GetUserSettings"))),
    responses((status = OK, description = "The settings", body = UserSettings)),
)]
async fn get(
    State(mut settings): State<Settings>,
    caller: Caller,
) -> Result<Json<UserSettings>, Problem> {
    Ok(Json(settings.get_user_settings(caller.call(())).await?.into_inner()))
}

/// Changes the caller's settings at the current customer.
#[utoipa::path(
    put, path = "/api/users/current/settings", operation_id = "update_user_settings",
    tag = "Users", request_body = UserSettingsInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserSettingsService/UpdateUserSettings"))),
    responses((status = OK, description = "The changed settings", body = UserSettings)),
)]
async fn update(
    State(mut settings): State<Settings>,
    caller: Caller,
    Update { changes, fields, data_version, .. }: Update<UserSettingsInput>,
) -> Result<Json<UserSettings>, Problem> {
    let request = UpdateUserSettingsRequest { data_version, changes: Some(changes), fields };
    Ok(Json(settings.update_user_settings(caller.call(request)).await?.into_inner()))
}
