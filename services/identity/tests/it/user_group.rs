//! User groups: their permissions and the rules for changing them.

use anyhow::Result;
use assay_auth::Caller;
use assay_proto::identity::{
    CreateUserGroupRequest, DeleteUserGroupRequest, DeleteUserRequest, ListUsersRequest,
    UpdateUserGroupRequest, UserGroup, UserGroupInput,
};
use assay_testkit::eventually;
use futures::future::join_all;
use tonic::{Code, Status};

use crate::world::{ADMIN, Identity, reason};

async fn create(
    identity: &Identity,
    caller: &Caller,
    name: &str,
    permissions: &str,
) -> Result<UserGroup, Status> {
    let group = UserGroupInput {
        name: name.to_owned(),
        description: None,
        usage_permission: permissions.to_owned(),
    };
    let request = CreateUserGroupRequest { user_group: Some(group) };
    Ok(identity.groups().create_user_group(caller.call(request)).await?.into_inner())
}

async fn change(
    identity: &Identity,
    caller: &Caller,
    id: &str,
    permissions: &str,
) -> Result<UserGroup, Status> {
    let changes = UserGroupInput { usage_permission: permissions.to_owned(), ..Default::default() };
    let request = UpdateUserGroupRequest {
        id: id.to_owned(),
        data_version: None,
        changes: Some(changes),
        fields: vec!["UsagePermission".to_owned()],
    };
    Ok(identity.groups().update_user_group(caller.call(request)).await?.into_inner())
}

async fn delete(identity: &Identity, caller: &Caller, id: &str) -> Result<(), Status> {
    let request = DeleteUserGroupRequest { id: id.to_owned() };
    identity.groups().delete_user_group(caller.call(request)).await.map(drop)
}

#[tokio::test]
async fn permissions_are_sorted_and_validated() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let group = create(&identity, &caller, "Writers", " Write,Login ,Read,Write").await?;
    assert_eq!(group.usage_permission, "Login, Read, Write");
    for (name, permissions, field) in [
        ("Wrong", "", "UsagePermission"),
        ("Wrong", " , ", "UsagePermission"),
        ("Wrong", "Everything", "UsagePermission"),
        ("Wrong", "Read, Fly", "UsagePermission"),
        ("Wrong", "login", "UsagePermission"),
        ("", "Read", "Name"),
    ] {
        let refused = create(&identity, &caller, name, permissions).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{permissions:?}");
        assert!(refused.message().starts_with(&format!("{field}: ")), "{refused}");
    }
    let duplicate = create(&identity, &caller, "WRITERS", "Read").await.unwrap_err();
    assert_eq!(duplicate.code(), Code::AlreadyExists);
    delete(&identity, &caller, &group.id).await?;
    assert_eq!(delete(&identity, &caller, &group.id).await.unwrap_err().code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn users_cannot_grant_permissions_that_they_lack() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    create(&identity, &admin, "Managers", "Login, Read, UserManagement").await?;
    let rich = create(&identity, &admin, "Rich", "Read, Invoicing").await?;
    let manager = identity.member(&admin, "grace@example.com", "Managers").await?;

    create(&identity, &manager, "Readers", "Login, Read").await?;
    let refused = create(&identity, &manager, "Writers", "Login, Write").await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let added = change(&identity, &manager, &rich.id, "Read, Invoicing, Write").await.unwrap_err();
    assert_eq!(added.code(), Code::PermissionDenied);
    let kept = change(&identity, &manager, &rich.id, "Login, Read, Invoicing").await?;
    assert_eq!(kept.usage_permission, "Login, Read, Invoicing");
    change(&identity, &manager, &rich.id, "Read").await?;
    let back = change(&identity, &manager, &rich.id, "Read, Invoicing").await.unwrap_err();
    assert_eq!(back.code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn a_group_with_members_cannot_be_deleted() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let group = identity.group(&admin, "Testers").await?;
    let user = identity.user(&admin, "grace@example.com", "Testers").await?;
    let refused = delete(&identity, &admin, &group).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert_eq!(reason(&refused), "user_group_has_members");
    let request = DeleteUserRequest { id: user.id };
    identity.users().delete_user(admin.call(request)).await?;
    delete(&identity, &admin, &group).await?;
    Ok(())
}

#[tokio::test]
async fn a_customer_has_a_limited_number_of_groups() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let add = async |count: i32, description: &str| {
        sqlx::query(
            "insert into user_group (customer_id, id, name, description, usage_permission)
             select $1, gen_random_uuid(), gen_random_uuid()::text, $3, 'Read' from generate_series(1, $2::int)",
        )
        .bind(admin.customer)
        .bind(count)
        .bind(description)
        .execute(&identity.db)
        .await
    };
    add(996, "").await?;
    let last = create(&identity, &admin, "The last one", "Read").await?;
    let refused = create(&identity, &admin, "One too many", "Read").await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(reason(&refused), "too_many_user_groups");
    change(&identity, &admin, &last.id, "Login").await?;

    sqlx::query("update user_group set deleted_at = now() where description = ''")
        .execute(&identity.db)
        .await?;
    add(64, &"x".repeat(64 << 10)).await?;
    create(&identity, &admin, "Without a description", "Read").await?;
    let changes = UserGroupInput { description: Some("x".to_owned()), ..Default::default() };
    let request = UpdateUserGroupRequest {
        id: last.id,
        data_version: None,
        changes: Some(changes),
        fields: vec!["Description".to_owned()],
    };
    let refused = identity.groups().update_user_group(admin.call(request)).await.unwrap_err();
    assert_eq!(reason(&refused), "too_many_user_groups");
    let mut customers = identity.customers().max_decoding_message_size(16 << 20);
    let all = customers.get_current_customer(admin.call(())).await?.into_inner();
    assert_eq!(all.user_groups.len(), 69);
    Ok(())
}

#[tokio::test]
async fn a_customer_keeps_at_least_one_user_manager() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let group = identity.group(&admin, "Administrators").await?;
    for less in ["Login, Read", "Read, UserManagement"] {
        let refused = change(&identity, &admin, &group, less).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert_eq!(reason(&refused), "last_user_management");
    }

    let other = create(&identity, &admin, "Others", "Login, UserManagement").await?;
    identity.user(&admin, "grace@example.com", "Others").await?;
    // Two concurrent changes could each rely on the other group.
    let both = join_all([
        change(&identity, &admin, &group, "Login"),
        change(&identity, &admin, &other.id, "Login"),
    ])
    .await;
    assert_eq!(both.iter().filter(|one| one.is_ok()).count(), 1, "{both:?}");
    Ok(())
}

#[tokio::test]
async fn changing_the_permissions_of_a_group_revokes_the_tokens_of_its_members() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let member = identity.member(&admin, "grace@example.com", "Testers").await?;
    let group = identity.group(&admin, "Testers").await?;

    change(&identity, &admin, &group, "Login, Read").await?;
    eventually("the token is revoked", async || (!identity.accepts(&member).await).then_some(()))
        .await;
    assert!(identity.accepts(&admin).await);
    let member = identity.caller_of("grace@example.com").await?;
    assert_eq!(member.permissions.to_string(), "Login, Read");
    assert!(identity.accepts(&member).await);
    Ok(())
}

#[tokio::test]
async fn groups_of_other_customers_are_not_found() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let visitor = identity.visitor("acme").await?;
    let foreign = identity.group(&visitor, "Testers").await?;
    let unknown = assay_proto::UserGroupId::new().to_string();
    for id in [foreign.as_str(), &unknown, "0", "no uuid"] {
        let request = ListUsersRequest { user_group_id: id.to_owned(), page: None };
        for refused in [
            change(&identity, &admin, id, "Read").await.unwrap_err(),
            delete(&identity, &admin, id).await.unwrap_err(),
            identity.users().list_users(admin.call(request)).await.map(drop).unwrap_err(),
        ] {
            assert_eq!(refused.code(), Code::NotFound, "{id}");
            assert_eq!(refused.message(), "no such user group", "{id}");
        }
    }
    Ok(())
}
