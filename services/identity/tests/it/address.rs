//! Changes of the email address of a user that are pending.

use anyhow::Result;
use assay_auth::Caller;
use assay_proto::{
    Reference,
    identity::{
        CreateUserGroupRequest, DeleteUserRequest, UpdateUserRequest, UserGroupInput, UserInput,
    },
};
use tonic::Code;

use crate::{
    invitation::{accept, rename, token_for},
    world::{ADMIN, Identity, PASSWORD, reason},
};

const GRACE: &str = "grace@example.com";
const HOPPER: &str = "hopper@example.com";
const NEW: &str = "a password that is new";

/// Adds a user who may manage users, and has no more permissions than the group `Viewers`.
async fn manager(identity: &Identity, caller: &Caller) -> Result<Caller> {
    let group = UserGroupInput {
        name: "Managers".to_owned(),
        usage_permission: "Login, Read, UserSettings, UserManagement".to_owned(),
        ..UserGroupInput::default()
    };
    let request = CreateUserGroupRequest { user_group: Some(group) };
    identity.groups().create_user_group(caller.call(request)).await?;
    identity.member(caller, "eve@example.com", "Managers").await
}

/// Moves a user to another group.
async fn assign(identity: &Identity, caller: &Caller, user: &Caller, group: &str) -> Result<()> {
    let user_group = Some(Reference { id: identity.group(caller, group).await? });
    let request = UpdateUserRequest {
        id: user.user.to_string(),
        data_version: None,
        changes: Some(UserInput { user_group, ..UserInput::default() }),
        fields: vec!["UserGroup".to_owned()],
    };
    identity.users().update_user(caller.call(request)).await?;
    Ok(())
}

/// Fails unless the link of a change is refused, and the user has the present address.
async fn assert_unusable(identity: &Identity, token: &str) -> Result<()> {
    for refused in [identity.reset(token, NEW).await, identity.accept(token).await] {
        assert_eq!(reason(&refused.unwrap_err()), "invalid_reset_token");
    }
    identity.login(GRACE, PASSWORD).await?;
    Ok(())
}

#[tokio::test]
async fn a_change_of_address_waits_while_the_user_has_more_permissions_than_its_requester()
-> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let manager = manager(&identity, &admin).await?;
    let grace = identity.member(&admin, GRACE, "Viewers").await?;
    rename(&identity, &manager, &grace.user.to_string(), HOPPER).await?;
    let token = token_for(&identity, HOPPER).await?;

    assign(&identity, &admin, &grace, "Administrators").await?;
    assert_unusable(&identity, &token).await?;
    assign(&identity, &admin, &grace, "Viewers").await?;
    identity.reset(&token, NEW).await?;
    let hopper = identity.caller(&identity.login(HOPPER, NEW).await?).await?;
    assert_eq!(hopper.user, grace.user);
    Ok(())
}

#[tokio::test]
async fn an_account_does_not_get_the_permissions_of_a_user_who_was_promoted_meanwhile() -> Result<()>
{
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let manager = manager(&identity, &admin).await?;
    let grace = identity.member(&admin, GRACE, "Viewers").await?;
    let elsewhere = identity.visitor("acme").await?;
    let alan = identity.member(&elsewhere, "alan@example.com", "Viewers").await?;
    let id = grace.user.to_string();
    rename(&identity, &manager, &id, "alan@example.com").await?;

    assign(&identity, &admin, &grace, "Administrators").await?;
    let refused = accept(&identity, &alan, &id).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assign(&identity, &admin, &grace, "Viewers").await?;
    accept(&identity, &alan, &id).await?;
    Ok(())
}

#[tokio::test]
async fn a_change_of_address_ends_when_its_requester_no_longer_manages_users() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let manager = manager(&identity, &admin).await?;
    let grace = identity.member(&admin, GRACE, "Viewers").await?;
    let id = grace.user.to_string();
    rename(&identity, &manager, &id, HOPPER).await?;
    let token = token_for(&identity, HOPPER).await?;

    assign(&identity, &admin, &manager, "Testers").await?;
    assert_unusable(&identity, &token).await?;
    let request = DeleteUserRequest { id: manager.user.to_string() };
    identity.users().delete_user(admin.call(request)).await?;
    assert_unusable(&identity, &token).await?;

    // Another manager requests the same address.
    rename(&identity, &admin, &id, HOPPER).await?;
    identity.reset(&token, NEW).await?;
    identity.login(HOPPER, NEW).await?;
    Ok(())
}

#[tokio::test]
async fn a_visitor_requests_a_change_of_address() -> Result<()> {
    let identity = Identity::new().await?;
    let visitor = identity.visitor("acme").await?;
    let grace = identity.member(&visitor, GRACE, "Administrators").await?;
    rename(&identity, &visitor, &grace.user.to_string(), HOPPER).await?;
    identity.reset(&token_for(&identity, HOPPER).await?, NEW).await?;
    identity.login(HOPPER, NEW).await?;
    Ok(())
}

#[tokio::test]
async fn setting_the_present_address_ends_a_change_and_keeps_an_invitation() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let grace = identity.member(&admin, GRACE, "Viewers").await?;
    let id = grace.user.to_string();
    rename(&identity, &admin, &id, HOPPER).await?;
    let token = token_for(&identity, HOPPER).await?;
    assert_eq!(rename(&identity, &admin, &id, "Grace@Example.com").await?.email, GRACE);
    assert_unusable(&identity, &token).await?;
    // The address is free again.
    assert_eq!(rename(&identity, &admin, &id, HOPPER).await?.email, GRACE);

    let alan = identity.user(&admin, "alan@example.com", "Viewers").await?;
    let token = token_for(&identity, "alan@example.com").await?;
    rename(&identity, &admin, &alan.id, "alan@example.com").await?;
    identity.reset(&token, NEW).await?;
    identity.login("alan@example.com", NEW).await?;
    Ok(())
}
