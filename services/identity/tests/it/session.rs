//! Sessions: all tokens of one login, until it ends.

use std::time::Duration;

use anyhow::Result;
use assay_auth::Caller;
use assay_proto::{
    Permission,
    identity::{
        ListAuditEntriesRequest, ListRevocationsRequest, RefineRequest, UpdateUserRequest,
        UserInput,
    },
};
use assay_testkit::eventually;
use tonic::{Code, Status};

use crate::{
    api_token, audit,
    world::{ADMIN, Identity, Settings},
};

async fn log_out(identity: &Identity, caller: &Caller) -> Result<(), Status> {
    identity.tokens().logout(caller.call(())).await.map(drop)
}

#[tokio::test]
async fn logging_out_revokes_all_tokens_of_only_that_session() -> Result<()> {
    let identity = Identity::new().await?;
    let visitor = identity.visitor("acme").await?;
    let member = identity.member(&visitor, "grace@example.com", "Testers").await?;
    let other = identity.caller_of("grace@example.com").await?;
    let own = member.customer.to_string();
    let refined = identity.caller(&identity.refine(&member, &own).await?).await?;
    assert_eq!(refined.session, member.session);
    assert_ne!(other.session, member.session);

    log_out(&identity, &refined).await?;
    eventually("the session to end", async || {
        (!identity.accepts(&member).await && !identity.accepts(&refined).await).then_some(())
    })
    .await;
    assert!(identity.accepts(&other).await);
    let again = log_out(&identity, &member).await.unwrap_err();
    assert_eq!(again.code(), Code::Unauthenticated);
    Ok(())
}

#[tokio::test]
async fn logging_out_ends_the_session_at_all_customers_of_the_account() -> Result<()> {
    let identity = Identity::new().await?;
    let (first, second) = (identity.customer("first").await?, identity.customer("second").await?);
    let account = identity.account("grace@example.com").await?;
    identity.membership(first, account, "Login, UserManagement").await?;
    identity.membership(second, account, "Login").await?;
    let colleague = identity.account("alan@example.com").await?;
    identity.membership(first, colleague, "Login").await?;
    let here = identity.caller_of("grace@example.com").await?;
    let elsewhere = [first, second].into_iter().find(|id| *id != here.customer).expect("another");
    let there = identity.caller(&identity.refine(&here, &elsewhere.to_string()).await?).await?;
    let colleague = identity.caller_of("alan@example.com").await?;

    log_out(&identity, &here).await?;
    // No revoked token is exchanged for a new one, even before it is refused elsewhere.
    let request = there.call(RefineRequest { customer_id: here.customer.to_string() });
    let refused = identity.tokens().refine(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    eventually("the session to end", async || {
        (!identity.accepts(&here).await && !identity.accepts(&there).await).then_some(())
    })
    .await;
    assert!(identity.accepts(&colleague).await, "the session of a colleague");
    Ok(())
}

#[tokio::test]
async fn logging_out_is_audited_and_not_possible_with_an_api_token() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let secret = api_token::create(&identity, &caller, "Read", None).await?.secret;
    let machine = api_token::exchange(&identity, &secret).await?;
    let refused = log_out(&identity, &machine).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("DELETE /api/users/current/tokens/"), "{refused}");

    let session = identity.caller_of(ADMIN).await?;
    log_out(&identity, &session).await?;
    assert!(identity.accepts(&machine).await, "the API token is not part of the session");
    let action = Some("LoggedOut".to_owned());
    let request = ListAuditEntriesRequest { action, ..Default::default() };
    let entries = audit::list(&identity, &caller, request).await?;
    let users: Vec<_> = entries.iter().map(|entry| entry.user_id.clone()).collect();
    assert_eq!(users, [Some(session.user.to_string())], "{entries:?}");
    Ok(())
}

#[tokio::test]
async fn refining_a_token_does_not_extend_the_session() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let identity = Identity::start(&settings.and("session-lifetime", "1")).await?;
    let token = identity.login(ADMIN, crate::world::PASSWORD).await?;
    let caller = identity.caller(&token).await?;
    let session = caller.session.expect("a session");
    assert!(session.remaining(Duration::from_hours(1)) > Duration::from_mins(59));
    assert!(session.remaining(Duration::ZERO).is_zero());
    let refined = identity.refine(&caller, &caller.customer.to_string()).await?;
    let refined = identity.caller(&refined).await?;
    assert_eq!(refined.session, Some(session), "the session is that of the login");
    Ok(())
}

#[tokio::test]
async fn a_visit_ends_when_the_home_customer_revokes_the_permission() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let home = identity.customer("home").await?;
    let account = identity.account("grace@example.com").await?;
    identity.membership(home, account, "Login, CustomerManagement").await?;
    let grace = identity.caller_of("grace@example.com").await?;
    let operator = admin.customer.to_string();
    let visitor = identity.caller(&identity.refine(&grace, &operator).await?).await?;
    assert!(visitor.may(Permission::CustomerManagement));

    let change = |archived| assay_proto::identity::UpdateCustomerRequest {
        id: home.to_string(),
        data_version: None,
        changes: Some(assay_proto::identity::CustomerInput { archived, ..Default::default() }),
        fields: vec!["Archived".to_owned()],
    };
    identity.customers().update_customer(admin.call(change(true))).await?;
    eventually("the visit to end", async || (!identity.accepts(&visitor).await).then_some(()))
        .await;

    // The membership is checked even without a revocation.
    identity.customers().update_customer(admin.call(change(false))).await?;
    let grace = identity.caller_of("grace@example.com").await?;
    let visitor = identity.caller(&identity.refine(&grace, &operator).await?).await?;
    sqlx::query("update user_group set usage_permission = 'Login' where customer_id = $1")
        .bind(home)
        .execute(&identity.db)
        .await?;
    let refused = identity.refine(&visitor, &operator).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn a_new_name_appears_in_tokens_issued_earlier() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let member = identity.member(&admin, "grace@example.com", "Testers").await?;
    let changes = UserInput { display_name: "Rear Admiral".to_owned(), ..UserInput::default() };
    let request = UpdateUserRequest {
        id: member.user.to_string(),
        data_version: None,
        changes: Some(changes),
        fields: vec!["DisplayName".to_owned()],
    };
    identity.users().update_user(admin.call(request)).await?;
    assert!(identity.accepts(&member).await);
    let revocations = identity
        .tokens()
        .list_revocations(assay_auth::anonymous(ListRevocationsRequest::default()))
        .await?
        .into_inner()
        .items;
    let [renamed] = &revocations[..] else { panic!("{revocations:?}") };
    assert_eq!(renamed.display_name.as_deref(), Some("Rear Admiral"));
    assert_eq!(renamed.user_id, Some(member.user.to_string()));
    Ok(())
}
