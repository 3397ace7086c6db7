//! The audit log.

use anyhow::Result;
use assay_auth::{Caller, anonymous_from};
use assay_proto::{
    Batch as _, Page,
    identity::{
        AuditEntry, CreateUserGroupRequest, DeleteUserRequest, ListAuditEntriesRequest, LoginInput,
        LoginRequest, UpdateUserRequest, UserGroupInput, UserInput,
    },
};
use futures::TryStreamExt;
use tonic::Code;

use crate::world::{ADMIN, Identity, PASSWORD, Settings};

pub(crate) async fn list(
    identity: &Identity,
    caller: &Caller,
    request: ListAuditEntriesRequest,
) -> Result<Vec<AuditEntry>> {
    let list = identity.audit().list_audit_entries(caller.call(request)).await?.into_inner();
    let batches: Vec<_> = list.try_collect().await?;
    Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

async fn actions(identity: &Identity, caller: &Caller) -> Result<Vec<String>> {
    let entries = list(identity, caller, ListAuditEntriesRequest::default()).await?;
    Ok(entries.into_iter().map(|entry| entry.action).collect())
}

#[tokio::test]
async fn logins_and_rejected_logins_are_recorded_with_user_and_address() -> Result<()> {
    let identity = Identity::new().await?;
    for password in [PASSWORD, "canary"] {
        let login = LoginInput { email: ADMIN.to_lowercase(), password: password.to_owned() };
        let request = LoginRequest { login: Some(login), host: String::new() };
        let request = anonymous_from("192.0.2.7".parse().ok(), request);
        let _ = identity.tokens().login(request).await;
    }
    let _ = identity.login("unknown@example.com", PASSWORD).await;
    let caller = identity.caller_of(ADMIN).await?;

    let entries = list(&identity, &caller, ListAuditEntriesRequest::default()).await?;
    let [_, refused, first] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((refused.action.as_str(), first.action.as_str()), ("LoginRefused", "LoggedIn"));
    for entry in [refused, first] {
        assert_eq!(entry.address.as_deref(), Some("192.0.2.7"));
        assert_eq!(entry.user_id, Some(caller.user.to_string()));
    }
    assert_eq!(first.user_email.as_deref(), Some(ADMIN));
    assert!(!format!("{entries:?}").contains("canary"));
    Ok(())
}

fn create_group(name: &str, permissions: &str) -> CreateUserGroupRequest {
    let (name, usage_permission) = (name.to_owned(), permissions.to_owned());
    let group = UserGroupInput { name, description: None, usage_permission };
    CreateUserGroupRequest { user_group: Some(group) }
}

#[tokio::test]
async fn every_action_adds_an_audit_entry() -> Result<()> {
    let identity = Identity::new().await?;
    let operator = identity.caller_of(ADMIN).await?;
    let visitor = identity.visitor("acme").await?;
    let readers = visitor.call(create_group("Readers", "Login, Read"));
    identity.groups().create_user_group(readers).await?;
    let grace = identity.user(&visitor, "grace@example.com", "Readers").await?;
    let invitation = identity.token(1).await?;
    identity.reset(&invitation, PASSWORD).await?;
    identity.login("grace@example.com", PASSWORD).await?;
    identity.login("grace@example.com", "a canary in the mine").await.unwrap_err();
    identity.prepare_reset("grace@example.com", "").await?;
    let reset = identity.token(2).await?;
    identity.reset(&reset, "a canary in the mine").await?;
    let update = UpdateUserRequest {
        id: grace.id.clone(),
        data_version: None,
        changes: Some(UserInput { display_name: "Hopper".to_owned(), ..UserInput::default() }),
        fields: vec!["DisplayName".to_owned()],
    };
    identity.users().update_user(visitor.call(update)).await?;
    let delete = DeleteUserRequest { id: grace.id.clone() };
    identity.users().delete_user(visitor.call(delete)).await?;

    let entries = list(&identity, &visitor, ListAuditEntriesRequest::default()).await?;
    let actions: Vec<_> = entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(
        actions,
        [
            "UserDeleted",
            "UserChanged",
            "PasswordReset",
            "PasswordResetPrepared",
            "LoginRefused",
            "LoggedIn",
            "InvitationAccepted",
            "UserCreated",
            "UserGroupCreated",
            "TokenRefined",
        ]
    );
    let of = |action: &str| entries.iter().find(|entry| entry.action == action).unwrap();
    let created = of("UserCreated");
    assert_eq!(created.user_id, Some(visitor.user.to_string()));
    assert_eq!(created.user_email.as_deref(), Some(ADMIN));
    assert_eq!((created.target.as_deref(), &created.target_id), (Some("User"), &Some(grace.id)));
    assert_eq!(of("LoggedIn").user_id, created.target_id);
    assert_eq!(of("LoginRefused").user_email.as_deref(), Some("grace@example.com"));
    assert!(of("UserChanged").details.as_ref().unwrap().contains("Hopper"), "{entries:#?}");
    for secret in ["canary", PASSWORD, &invitation, &reset] {
        assert!(!format!("{entries:?}").contains(secret), "{entries:#?}");
    }
    let action = Some("CustomerCreated".to_owned());
    let request = ListAuditEntriesRequest { action, ..Default::default() };
    let of_operator = list(&identity, &operator, request).await?;
    assert_eq!(of_operator[0].target_id, Some(visitor.customer.to_string()));
    Ok(())
}

#[tokio::test]
async fn only_committed_changes_are_recorded_with_their_values() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let create = create_group("Writers", "Login, Write");
    identity.groups().create_user_group(caller.call(create.clone())).await?;
    let duplicate = identity.groups().create_user_group(caller.call(create)).await.unwrap_err();
    assert_eq!(duplicate.code(), Code::AlreadyExists);
    identity.user(&caller, "grace@example.com", "Writers").await?;
    identity.refine(&caller, &caller.customer.to_string()).await?;
    assert_eq!(
        actions(&identity, &caller).await?,
        ["TokenRefined", "UserCreated", "UserGroupCreated", "LoggedIn"]
    );
    let events: Vec<String> =
        sqlx::query_scalar("select noun || ' ' || action from outbox order by id")
            .fetch_all(&identity.db)
            .await?;
    assert_eq!(
        events,
        ["audit_entry recorded", "user_group created", "user created", "audit_entry recorded",]
    );
    let (action, actor): (String, String) = sqlx::query_as(
        "select data ->> 'Action', data -> 'Actor' ->> 'UserId' from outbox order by id limit 1",
    )
    .fetch_one(&identity.db)
    .await?;
    assert_eq!((action.as_str(), actor), ("LoggedIn", caller.user.to_string()));
    Ok(())
}

#[tokio::test]
async fn the_audit_log_of_a_customer_can_be_filtered_and_paged() -> Result<()> {
    let identity = Identity::new().await?;
    let visitor = identity.visitor("acme").await?;
    let member = identity.member(&visitor, "grace@example.com", "Administrators").await?;
    assert_eq!(
        actions(&identity, &member).await?,
        ["LoggedIn", "UserCreated", "TokenRefined"],
        "all actions in the customer, by any user"
    );

    let by = |request| list(&identity, &member, request);
    let user_id = Some(member.user.to_string());
    let own = by(ListAuditEntriesRequest { user_id, ..Default::default() }).await?;
    assert_eq!(own.len(), 1);
    let action = Some("UserCreated".to_owned());
    let created = by(ListAuditEntriesRequest { action, ..Default::default() }).await?;
    assert_eq!(created.len(), 1);
    let later = by(ListAuditEntriesRequest { from: own[0].time, ..Default::default() }).await?;
    let earlier = by(ListAuditEntriesRequest { to: own[0].time, ..Default::default() }).await?;
    assert_eq!((later.len(), earlier.len()), (1, 2));
    let page = Some(Page { limit: Some(2), ..Page::default() });
    assert_eq!(by(ListAuditEntriesRequest { page, ..Default::default() }).await?.len(), 2);

    let tester = identity.member(&visitor, "tester@example.com", "Testers").await?;
    let request = tester.call(ListAuditEntriesRequest::default());
    let refused = identity.audit().list_audit_entries(request).await.map(drop).unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn audit_entries_are_removed_after_the_configured_retention() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let first = Identity::start(&settings).await?;
    let caller = first.caller_of(ADMIN).await?;
    // An entry of 1970.
    sqlx::query(
        "insert into audit_entry (id, customer_id, action)
         values ('00000000-0000-7000-8000-000000000000', $1, 'Old')",
    )
    .bind(caller.customer)
    .execute(&first.db)
    .await?;
    let second = Identity::start(&settings).await?;
    assay_testkit::eventually("the old entry to be removed", async || {
        (actions(&second, &caller).await.ok()? == ["LoggedIn"]).then_some(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn a_rejected_login_reveals_no_account_of_another_customer() -> Result<()> {
    let settings = Settings::new().await?.with_administrator().and("base-domain", "assay.example");
    let identity = Identity::start(&settings).await?;
    let (home, prober) = (identity.visitor("home").await?, identity.visitor("prober").await?);
    identity.member(&home, "known@example.com", "Testers").await?;
    for email in ["known@example.com", "unknown@example.com"] {
        identity.login_at("prober.assay.example", email, "wrong").await.unwrap_err();
    }
    let action = Some("LoginRefused".to_owned());
    let refused = |caller| {
        list(
            &identity,
            caller,
            ListAuditEntriesRequest { action: action.clone(), ..Default::default() },
        )
    };
    let seen: Vec<_> = refused(&prober)
        .await?
        .into_iter()
        .map(|entry| (entry.user_email.unwrap_or_default(), entry.user_id))
        .collect();
    assert_eq!(
        seen,
        [("unknown@example.com".to_owned(), None), ("known@example.com".to_owned(), None)]
    );
    assert_eq!(refused(&home).await?.len(), 1, "the customer of the account has the entry");
    Ok(())
}
