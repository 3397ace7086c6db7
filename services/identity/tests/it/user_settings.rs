//! Settings of users.

use anyhow::Result;
use assay_auth::Caller;
use assay_proto::{
    Batch as _, Page, UserId,
    identity::{
        DeleteUserRequest, ListAuditEntriesRequest, UpdateUserSettingsRequest, UserSettings,
        UserSettingsInput,
    },
};
use futures::{TryStreamExt, future::join_all};
use tonic::{Code, Status};

use crate::world::{ADMIN, Identity};

async fn get(identity: &Identity, caller: &Caller) -> Result<UserSettings, Status> {
    Ok(identity.settings().get_user_settings(caller.call(())).await?.into_inner())
}

async fn set(
    identity: &Identity,
    caller: &Caller,
    mail: bool,
    data_version: Option<&str>,
) -> Result<UserSettings, Status> {
    let request = UpdateUserSettingsRequest {
        data_version: data_version.map(ToOwned::to_owned),
        changes: Some(UserSettingsInput { mail_when_execution_ends: mail }),
        fields: vec!["MailWhenExecutionEnds".to_owned()],
    };
    Ok(identity.settings().update_user_settings(caller.call(request)).await?.into_inner())
}

#[tokio::test]
async fn each_user_has_separate_settings_at_each_customer() -> Result<()> {
    let identity = Identity::new().await?;
    let (own, other) = (identity.customer("own").await?, identity.customer("other").await?);
    let account = identity.account("grace@example.com").await?;
    let permissions = "Login, UserSettings";
    identity.membership(own, account, permissions).await?;
    identity.membership(other, account, permissions).await?;
    identity.membership(own, identity.account("alan@example.com").await?, permissions).await?;
    let [grace, alan] = ["grace@example.com", "alan@example.com"];
    let grace = identity.caller_of(grace).await?;
    let elsewhere = identity.caller(&identity.refine(&grace, &other.to_string()).await?).await?;
    let alan = identity.caller_of(alan).await?;

    let before = get(&identity, &grace).await?;
    assert!(!before.mail_when_execution_ends, "off by default");
    let switched_on = set(&identity, &grace, true, Some(&before.data_version)).await?;
    assert!(switched_on.mail_when_execution_ends);
    assert_ne!(switched_on.data_version, before.data_version);
    assert_eq!(get(&identity, &grace).await?, switched_on);
    for untouched in [&elsewhere, &alan] {
        assert_eq!(get(&identity, untouched).await?, before);
    }
    Ok(())
}

#[tokio::test]
async fn an_update_changes_only_named_fields_and_is_recorded() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let switched_on = set(&identity, &caller, true, None).await?;
    let request = UpdateUserSettingsRequest {
        changes: Some(UserSettingsInput::default()),
        ..Default::default()
    };
    let unchanged = identity.settings().update_user_settings(caller.call(request)).await?;
    assert!(unchanged.into_inner().mail_when_execution_ends, "no field was named");
    let stale = set(&identity, &caller, false, Some(&switched_on.data_version)).await;
    assert_eq!(stale.unwrap_err().code(), Code::Aborted);

    let action = Some("UserSettingsChanged".to_owned());
    let page = Some(Page::default());
    let request = ListAuditEntriesRequest { action, page, ..Default::default() };
    let list = identity.audit().list_audit_entries(caller.call(request)).await?.into_inner();
    let batches: Vec<_> = list.try_collect().await?;
    let entries: Vec<_> = batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect();
    let details: Vec<_> = entries.iter().map(|entry| entry.details.as_deref()).collect();
    assert_eq!(details, [Some("{}"), Some(r#"{"MailWhenExecutionEnds":[false,true]}"#)]);
    assert_eq!(entries[1].target_id, Some(caller.user.to_string()));
    Ok(())
}

#[tokio::test]
async fn one_of_many_concurrent_updates_of_a_version_succeeds() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let seen = get(&identity, &caller).await?.data_version;
    let changes = (0..20).map(|_| set(&identity, &caller, true, Some(&seen)));
    let done = join_all(changes).await;
    assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1);
    let refused = done.into_iter().filter_map(Result::err);
    assert!(refused.into_iter().all(|status| status.code() == Code::Aborted));
    Ok(())
}

#[tokio::test]
async fn settings_need_a_permission_and_are_deleted_with_the_membership() -> Result<()> {
    let identity = Identity::new().await?;
    let visitor = identity.visitor("acme").await?;
    for missing in [get(&identity, &visitor).await, set(&identity, &visitor, true, None).await] {
        assert_eq!(missing.unwrap_err().code(), Code::NotFound);
    }
    let customer = visitor.customer;
    let account = identity.account("reader@example.com").await?;
    identity.membership(customer, account, "Login, Read, Write").await?;
    let reader = identity.caller_of("reader@example.com").await?;
    for refused in [get(&identity, &reader).await, set(&identity, &reader, true, None).await] {
        assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    }

    let member = identity.member(&visitor, "grace@example.com", "Testers").await?;
    set(&identity, &member, true, None).await?;
    let request = DeleteUserRequest { id: member.user.to_string() };
    identity.users().delete_user(visitor.call(request)).await?;
    let kept = sqlx::query_as::<_, (UserId,)>("select user_id from user_settings");
    assert!(kept.fetch_all(&identity.db).await?.is_empty());
    Ok(())
}
