//! Users: accounts as members of a customer.

use anyhow::Result;
use assay_auth::Caller;
use assay_proto::{
    Batch as _, Reference,
    identity::{
        CreateUserRequest, DeleteUserRequest, ListUsersRequest, UpdateUserRequest, User, UserInput,
    },
};
use assay_testkit::eventually;
use futures::{TryStreamExt, future::join_all};
use tonic::{Code, Status};

use crate::world::{ADMIN, Identity, PASSWORD, link, readable, reason};

async fn change(
    identity: &Identity,
    caller: &Caller,
    id: &str,
    field: &str,
    value: &str,
) -> Result<User, Status> {
    let changes = UserInput {
        email: value.to_owned(),
        display_name: value.to_owned(),
        user_group: Some(Reference { id: value.to_owned() }),
    };
    let request = UpdateUserRequest {
        id: id.to_owned(),
        data_version: None,
        changes: Some(changes),
        fields: vec![field.to_owned()],
    };
    Ok(identity.users().update_user(caller.call(request)).await?.into_inner())
}

async fn delete(identity: &Identity, caller: &Caller, id: &str) -> Result<(), Status> {
    let request = DeleteUserRequest { id: id.to_owned() };
    identity.users().delete_user(caller.call(request)).await.map(drop)
}

/// The gRPC status of a failed call.
fn status(failed: anyhow::Error) -> Status {
    failed.downcast().expect("a gRPC status")
}

#[tokio::test]
async fn a_new_user_is_invited_and_sets_a_password() -> Result<()> {
    let identity = Identity::new().await?;
    let visitor = identity.visitor("acme").await?;
    let user = identity.user(&visitor, "grace@example.com", "Testers").await?;
    assert_eq!(
        (user.email.as_str(), user.display_name.as_str()),
        ("grace@example.com", "Grace Hopper")
    );
    assert_eq!((user.password, user.last_login, user.archived), (None, None, false));
    let group = user.user_group.unwrap();
    assert_eq!((group.name.as_str(), &group.usage_permission), ("Testers", &user.usage_permission));

    let mails = identity.mails(1).await;
    assert!(mails[0].contains("To: grace@example.com\r\n"), "{}", mails[0]);
    assert!(readable(&mails[0]).contains("Customer acme has invited you"));
    let (origin, token) = link(&mails[0])?;
    assert_eq!(origin, "https://www.assay.example");
    identity.reset(&token, "a password of her own").await?;
    let token = identity.login("grace@example.com", "a password of her own").await?;
    assert_eq!(identity.caller(&token).await?.customer, visitor.customer);
    Ok(())
}

#[tokio::test]
async fn managing_users_grants_no_additional_permissions() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    sqlx::query(
        "update user_group set usage_permission = 'Login, Read, UserManagement'
         where name = 'Viewers'",
    )
    .execute(&identity.db)
    .await?;
    let manager = identity.member(&admin, "grace@example.com", "Viewers").await?;

    let own = manager.user.to_string();
    let administrators = identity.group(&admin, "Administrators").await?;
    let up = change(&identity, &manager, &own, "UserGroup", &administrators).await.unwrap_err();
    assert_eq!(up.code(), Code::PermissionDenied);
    let friend = identity.user(&manager, "friend@example.com", "Administrators").await;
    assert_eq!(status(friend.unwrap_err()).code(), Code::PermissionDenied);
    identity.mails(1).await;
    let boss = admin.user.to_string();
    let taken_over =
        change(&identity, &manager, &boss, "Email", "g@example.com").await.unwrap_err();
    assert_eq!(taken_over.code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn a_user_needs_a_group_of_the_same_customer() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let foreign = identity.group(&identity.visitor("acme").await?, "Testers").await?;
    let user = identity.user(&admin, "grace@example.com", "Testers").await?;
    let create = async |group| {
        let user = UserInput {
            email: "eve@example.com".to_owned(),
            display_name: "Eve".to_owned(),
            user_group: Some(Reference { id: group }),
        };
        let request = CreateUserRequest { user: Some(user) };
        identity.users().create_user(admin.call(request)).await.map(drop).unwrap_err()
    };
    let mut refusals = Vec::new();
    let unknown = assay_proto::UserGroupId::new().to_string();
    for group in [foreign.as_str(), &unknown, "0", ""] {
        let changed = change(&identity, &admin, &user.id, "UserGroup", group).await.unwrap_err();
        for refused in [changed, create(group.to_owned()).await] {
            assert_eq!(refused.code(), Code::InvalidArgument, "{group}");
            assert!(refused.message().starts_with("UserGroup/Id: "), "{refused}");
            refusals.push(refused.message().to_owned());
        }
    }
    assert!(refusals[..4].iter().all(|refused| *refused == refusals[0]), "{refusals:?}");
    identity.mails(1).await;
    Ok(())
}

#[tokio::test]
async fn users_of_other_customers_are_not_found() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let visitor = identity.visitor("acme").await?;
    let foreign = identity.user(&visitor, "alan@example.com", "Testers").await?;
    let unknown = assay_proto::UserId::new().to_string();
    for id in [foreign.id.as_str(), &unknown, "0", "no uuid"] {
        for refused in [
            change(&identity, &admin, id, "DisplayName", "Mine").await.unwrap_err(),
            delete(&identity, &admin, id).await.unwrap_err(),
        ] {
            assert_eq!(refused.code(), Code::NotFound, "{id}");
            assert_eq!(refused.message(), "no such user", "{id}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn moving_a_user_to_another_group_revokes_tokens() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let member = identity.member(&admin, "grace@example.com", "Testers").await?;
    let id = member.user.to_string();
    change(&identity, &admin, &id, "DisplayName", "Grace").await?;
    assert!(identity.accepts(&member).await, "a new name revokes no tokens");

    let viewers = identity.group(&admin, "Viewers").await?;
    change(&identity, &admin, &id, "UserGroup", &viewers).await?;
    eventually("the token is revoked", async || (!identity.accepts(&member).await).then_some(()))
        .await;
    let member = identity.caller_of("grace@example.com").await?;
    assert_eq!(member.permissions.to_string(), "Login, Read, UserSettings");

    let request = ListUsersRequest { user_group_id: viewers, page: None };
    let list = identity.users().list_users(admin.call(request)).await?.into_inner();
    let batches: Vec<_> = list.try_collect().await?;
    let names: Vec<_> = batches
        .iter()
        .flat_map(|batch| batch.parse().unwrap())
        .map(|user| user.display_name)
        .collect();
    assert_eq!(names, ["Grace"]);
    Ok(())
}

#[tokio::test]
async fn removing_the_last_membership_deletes_the_account() -> Result<()> {
    let identity = Identity::new().await?;
    let (first, second) = (identity.visitor("first").await?, identity.visitor("second").await?);
    let member = identity.member(&first, "grace@example.com", "Testers").await?;
    let other = identity.member(&second, "grace@example.com", "Testers").await?;
    let [id, other] = [member.user, other.user].map(|id| id.to_string());

    delete(&identity, &first, &id).await?;
    eventually("the token is revoked", async || (!identity.accepts(&member).await).then_some(()))
        .await;
    assert_eq!(identity.caller_of("grace@example.com").await?.customer, second.customer);
    assert_eq!(delete(&identity, &first, &id).await.unwrap_err().code(), Code::NotFound);
    delete(&identity, &second, &other).await?;
    let rejected = identity.login("grace@example.com", PASSWORD).await.unwrap_err();
    assert_eq!(rejected.code(), Code::Unauthenticated);
    assert!(identity.user(&first, "grace@example.com", "Testers").await?.id != id);
    Ok(())
}

#[tokio::test]
async fn the_last_user_manager_cannot_be_removed() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let id = admin.user.to_string();
    let viewers = identity.group(&admin, "Viewers").await?;
    for refused in [
        delete(&identity, &admin, &id).await.unwrap_err(),
        change(&identity, &admin, &id, "UserGroup", &viewers).await.unwrap_err(),
    ] {
        assert_eq!(reason(&refused), "last_user_management");
    }
    identity.user(&admin, "invited@example.com", "Administrators").await?;
    let alone = delete(&identity, &admin, &id).await.unwrap_err();
    assert_eq!(reason(&alone), "last_user_management", "a pending invitation does not count");
    let other = identity.member(&admin, "grace@example.com", "Administrators").await?;
    let both = join_all([id, other.user.to_string()].map(|id| {
        let (identity, admin) = (&identity, &admin);
        async move { delete(identity, admin, &id).await }
    }))
    .await;
    assert_eq!(both.iter().filter(|one| one.is_ok()).count(), 1, "{both:?}");
    Ok(())
}

#[tokio::test]
async fn a_visitor_is_a_user() -> Result<()> {
    let identity = Identity::new().await?;
    let visitor = identity.visitor("acme").await?;
    let user = identity.users().get_current_user(visitor.call(())).await?.into_inner();
    assert_eq!((user.email.as_str(), user.user_group), (ADMIN, None));
    assert_eq!(user.usage_permission, visitor.permissions.to_string());
    Ok(())
}
