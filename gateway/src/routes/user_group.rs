//! `/api/management/customers/current/groups`.

use assay_auth::Caller;
use assay_proto::identity::{
    CreateUserGroupRequest, DeleteUserGroupRequest, UpdateUserGroupRequest, UserGroup,
    UserGroupInput,
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    path::Path,
    problem::Problem,
    response::{Created, Json, Resource},
    services::{Services, UserGroups},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(update, delete))
}

impl Resource for UserGroup {
    fn data_version(&self) -> Option<&str> {
        self.data_version.as_deref()
    }
}

impl Updatable for UserGroupInput {}

/// Adds a user group to the caller's customer. Callers can grant only permissions that they have.
///
/// A customer has at most 1,000 groups, whose descriptions have at most 4 MiB together; further ones fail with 422
/// `too_many_user_groups`.
#[utoipa::path(
    post, path = "/api/management/customers/current/groups", operation_id = "create_user_group",
    tag = "User groups", request_body = UserGroupInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserGroupService/CreateUserGroup"))),
    responses((status = CREATED, description = "The new user group", body = UserGroup)),
)]
async fn create(
    State(mut groups): State<UserGroups>,
    caller: Caller,
    Body(input): Body<UserGroupInput>,
) -> Result<Created<Json<UserGroup>>, Problem> {
    let request = CreateUserGroupRequest { user_group: Some(input) };
    let group = groups.create_user_group(caller.call(request)).await?.into_inner();
    let path = format!("/api/management/customers/current/groups/{}", group.id);
    Ok(Created(path, Json(group)))
}

/// Changes a user group. A change of its permissions revokes the tokens of its members.
#[utoipa::path(
    put, path = "/api/management/customers/current/groups/{userGroupId}",
    operation_id = "update_user_group", tag = "User groups", request_body = UserGroupInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserGroupService/UpdateUserGroup"))),
    responses((status = OK, description = "The changed user group", body = UserGroup)),
)]
async fn update(
    State(mut groups): State<UserGroups>,
    caller: Caller,
    Path(id): Path<String>,
    Update { changes, fields, data_version, .. }: Update<UserGroupInput>,
) -> Result<Json<UserGroup>, Problem> {
    let request = UpdateUserGroupRequest { id, data_version, changes: Some(changes), fields };
    Ok(Json(groups.update_user_group(caller.call(request)).await?.into_inner()))
}

/// Deletes a user group that has no members.
#[utoipa::path(
    delete, path = "/api/management/customers/current/groups/{userGroupId}",
    operation_id = "delete_user_group", tag = "User groups",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserGroupService/DeleteUserGroup"))),
    responses((status = NO_CONTENT, description = "The user group has been deleted")),
)]
async fn delete(
    State(mut groups): State<UserGroups>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    groups.delete_user_group(caller.call(DeleteUserGroupRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
