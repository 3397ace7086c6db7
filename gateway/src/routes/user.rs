//! `/api/users`, and the users of a group.

use assay_auth::Caller;
use assay_proto::identity::{
    AcceptMembershipRequest, CreateUserRequest, DeleteUserRequest, ListMembershipsRequest,
    ListUsersRequest, Membership, UpdateUserRequest, User, UserInput,
};
use axum::extract::State;
use http::StatusCode;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::{self, Body, Fields},
    list::{List, Listing},
    nested::Nested,
    path::Path,
    problem::Problem,
    response::{Created, Json, Resource},
    services::{Services, Users},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(create))
        .routes(routes!(get_current))
        .routes(routes!(update, delete))
        .routes(routes!(list_memberships))
        .routes(routes!(accept_membership))
}

impl Resource for User {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

/// An update may hold its fields in an object `UserData`.
impl Updatable for UserInput {
    fn adapt(fields: &mut Fields<'_>) -> Result<Nested, Problem> {
        let Some(data) = fields.remove("UserData") else { return Ok(Nested::default()) };
        let data: Fields<'_> = body::parse(data.get())
            .map_err(|_| Problem::invalid("UserData", "must be an object"))?;
        let names = data.keys().map(|name| name.to_lowercase()).collect();
        fields.extend(data);
        Ok(Nested { object: "UserData", fields: names })
    }
}

/// The changes of a user.
#[derive(ToSchema)]
#[schema(rename_all = "PascalCase")]
#[expect(dead_code, reason = "it only describes what `Updatable::adapt` reads")]
struct UserDataInput {
    /// The fields to change. They may also be sent at the top level.
    #[schema(required = false)]
    user_data: UserInput,
}

/// Lists the users of a group of the caller's customer, newest first.
#[utoipa::path(
    get, path = "/api/management/customers/current/groups/{userGroupId}/users",
    operation_id = "list_users", tag = "Users", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/ListUsers"))),
    responses((status = OK, description = "The users", body = [User])),
)]
async fn list(
    State(mut users): State<Users>,
    caller: Caller,
    Path(user_group_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListUsersRequest { user_group_id, page: Some(listing.page()) };
    listing.respond(users.list_users(caller.call(request)).await?).await
}

/// Adds a user to the caller's customer.
///
/// Sends an invitation by mail, which is valid for seven days. The user can log in to the customer
/// after the owner of the mailbox has accepted it: with the link in the mail, which also sets the
/// password of a new account, or after a login to another customer. The response does not reveal
/// whether the address has an account.
#[utoipa::path(
    post, path = "/api/users", operation_id = "create_user", tag = "Users",
    request_body = UserInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/CreateUser"))),
    responses((status = CREATED, description = "The new user", body = User)),
)]
async fn create(
    State(mut users): State<Users>,
    caller: Caller,
    Body(input): Body<UserInput>,
) -> Result<Created<Json<User>>, Problem> {
    let request = CreateUserRequest { user: Some(input) };
    let user = users.create_user(caller.call(request)).await?.into_inner();
    Ok(Created(format!("/api/users/{}", user.id), Json(user)))
}

/// Returns the caller.
#[utoipa::path(
    get, path = "/api/users/current", operation_id = "get_current_user", tag = "Users",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/GetCurrentUser"))),
    responses((status = OK, description = "The user", body = User)),
)]
async fn get_current(
    State(mut users): State<Users>,
    caller: Caller,
) -> Result<Json<User>, Problem> {
    Ok(Json(users.get_current_user(caller.call(())).await?.into_inner()))
}

/// Changes a user of the caller's customer.
///
/// A change of the group revokes the tokens of the user for the customer. A new email address gets
/// an invitation, and replaces the old address when the owner of the mailbox has accepted it; until
/// then, responses show the old one. The change of the address revokes the sessions, links and API
/// tokens of the user, and deletes the account of the old address. The address of an account that
/// also belongs to other customers cannot be changed.
#[utoipa::path(
    put, path = "/api/users/{userId}", operation_id = "update_user", tag = "Users",
    request_body = UserDataInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/UpdateUser"))),
    responses((status = OK, description = "The changed user", body = User)),
)]
async fn update(
    State(mut users): State<Users>,
    caller: Caller,
    Path(id): Path<String>,
    Update { changes, fields, data_version, nested }: Update<UserInput>,
) -> Result<Json<User>, Problem> {
    let request = UpdateUserRequest { id, data_version, changes: Some(changes), fields };
    let changed = users.update_user(caller.call(request)).await;
    Ok(Json(changed.map_err(|status| Problem::from(status).within(&nested))?.into_inner()))
}

/// Removes a user from the caller's customer.
///
/// The tokens of the user for the customer are revoked. An account without another customer is
/// deleted.
#[utoipa::path(
    delete, path = "/api/users/{userId}", operation_id = "delete_user", tag = "Users",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/DeleteUser"))),
    responses((status = NO_CONTENT, description = "The user has been deleted")),
)]
async fn delete(
    State(mut users): State<Users>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    users.delete_user(caller.call(DeleteUserRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the memberships of the caller's account, and the invitations to its address, by the name
/// of the customer.
///
/// An exchange of tokens (`refine`) returns a token for the customer of a membership. Invitations
/// are `Pending`, and grant nothing until they are accepted. With an API token, the list has only
/// the membership of that token.
#[utoipa::path(
    get, path = "/api/users/current/memberships", operation_id = "list_memberships",
    tag = "Users", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/ListMemberships"))),
    responses((status = OK, description = "The memberships", body = [Membership])),
)]
async fn list_memberships(
    State(mut users): State<Users>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListMembershipsRequest { page: Some(listing.page()) };
    listing.respond(users.list_memberships(caller.call(request)).await?).await
}

/// Accepts an invitation to the address of the caller's account.
#[utoipa::path(
    post, path = "/api/users/current/memberships/{membershipId}/accept",
    operation_id = "accept_membership", tag = "Users",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.UserService/AcceptMembership"))),
    responses((status = NO_CONTENT, description = "The account belongs to the customer")),
)]
async fn accept_membership(
    State(mut users): State<Users>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    users.accept_membership(caller.call(AcceptMembershipRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
