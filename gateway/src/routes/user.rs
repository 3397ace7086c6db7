//! `/api/users`, and the users of a group.

use assay_auth::Caller;
use assay_proto::identity::{
    CreateUserRequest, DeleteUserRequest, ListUsersRequest, UpdateUserRequest, User, UserInput,
};
use axum::extract::State;
use http::StatusCode;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    answer::{Answer, Created, Record},
    body::{self, Body, Fields},
    list::{List, Listing},
    path::Path,
    problem::Problem,
    services::{Services, Users},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(create))
        .routes(routes!(get_current))
        .routes(routes!(update, delete))
}

impl Answer for User {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

/// An update may hold its fields in an object `UserData`.
impl Updatable for UserInput {
    fn adapt(fields: &mut Fields<'_>) -> Result<(), Problem> {
        if let Some(data) = fields.remove("UserData") {
            let data: Fields<'_> = body::parse(data.get())
                .map_err(|_| Problem::invalid("UserData", "must be an object"))?;
            fields.extend(data);
        }
        Ok(())
    }
}

/// What a client may change of a user.
#[derive(ToSchema)]
#[schema(rename_all = "PascalCase")]
#[expect(dead_code, reason = "it only describes what `Updatable::adapt` reads")]
struct UserDataInput {
    /// The fields to change; they may also stand beside it, or in its place.
    #[schema(required = false)]
    user_data: UserInput,
}

/// Lists the users of a group of the caller's customer, newest first.
#[utoipa::path(
    get, path = "/api/management/customers/current/groups/{userGroupId}/users",
    operation_id = "list_users", tag = "Users", params(Listing),
    responses((status = OK, description = "The users", body = [User])),
)]
async fn list(
    State(mut users): State<Users>,
    caller: Caller,
    Path(user_group_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListUsersRequest { user_group_id, page: Some(listing.page()) };
    listing.answer(users.list_users(caller.call(request)).await?).await
}

/// Adds a user to the caller's customer.
///
/// An account that is new gets a mail with a link by which to set its password. An account that
/// belongs to other customers gains this one.
#[utoipa::path(
    post, path = "/api/users", operation_id = "create_user", tag = "Users",
    request_body = UserInput,
    responses((status = CREATED, description = "The new user", body = User)),
)]
async fn create(
    State(mut users): State<Users>,
    caller: Caller,
    Body(input): Body<UserInput>,
) -> Result<Created<Record<User>>, Problem> {
    let request = CreateUserRequest { user: Some(input) };
    let user = users.create_user(caller.call(request)).await?.into_inner();
    Ok(Created(format!("/api/users/{}", user.id), Record(user)))
}

/// Returns the caller.
#[utoipa::path(
    get, path = "/api/users/current", operation_id = "get_current_user", tag = "Users",
    responses((status = OK, description = "The user", body = User)),
)]
async fn get_current(
    State(mut users): State<Users>,
    caller: Caller,
) -> Result<Record<User>, Problem> {
    Ok(Record(users.get_current_user(caller.call(())).await?.into_inner()))
}

/// Changes a user of the caller's customer. Their tokens for the customer die.
#[utoipa::path(
    put, path = "/api/users/{userId}", operation_id = "update_user", tag = "Users",
    request_body = UserDataInput,
    responses((status = OK, description = "The changed user", body = User)),
)]
async fn update(
    State(mut users): State<Users>,
    caller: Caller,
    Path(id): Path<String>,
    Update { changes, fields, data_version }: Update<UserInput>,
) -> Result<Record<User>, Problem> {
    let request = UpdateUserRequest { id, data_version, changes: Some(changes), fields };
    Ok(Record(users.update_user(caller.call(request)).await?.into_inner()))
}

/// Takes a user out of the caller's customer.
///
/// Their tokens for the customer die. An account that belongs to no other customer is gone.
#[utoipa::path(
    delete, path = "/api/users/{userId}", operation_id = "delete_user", tag = "Users",
    responses((status = NO_CONTENT, description = "The user is gone")),
)]
async fn delete(
    State(mut users): State<Users>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    users.delete_user(caller.call(DeleteUserRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
