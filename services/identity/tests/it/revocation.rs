//! Revocations of tokens, as services that verify tokens receive them.

use anyhow::Result;
use assay_auth::anonymous;
use assay_proto::identity::{
    ListRevocationsRequest, Revocation, UpdateUserGroupRequest, UserGroupInput,
};
use assay_testkit::eventually;
use futures::future::join_all;
use tonic::Code;

use crate::world::{ADMIN, Identity, Settings, link};

async fn revocations(identity: &Identity, after: i64) -> Result<Vec<Revocation>> {
    let request = anonymous(ListRevocationsRequest { after });
    Ok(identity.tokens().list_revocations(request).await?.into_inner().items)
}

#[tokio::test]
async fn revocations_are_listed_after_a_given_one() -> Result<()> {
    let identity = Identity::new().await?;
    assert_eq!(revocations(&identity, 0).await?, []);
    let caller = identity.caller_of(ADMIN).await?;
    for count in 1..=2 {
        identity.prepare_reset(ADMIN, "").await?;
        let token = link(&identity.mails(count).await[count - 1])?.1;
        identity.reset(&token, "a password that is new").await?;
    }
    let all = revocations(&identity, 0).await?;
    let [first, second] = &all[..] else { panic!("{all:?}") };
    assert_eq!(first.user_id, Some(caller.user.to_string()));
    assert_eq!((&first.customer_id, &first.api_token_id), (&None, &None));
    assert!(first.sequence < second.sequence && first.issued_until < second.issued_until);
    assert_eq!(revocations(&identity, first.sequence).await?, all[1..]);
    let request = anonymous(ListRevocationsRequest { after: 0 });
    let list = identity.tokens().list_revocations(request).await?.into_inner();
    assert!((1..first.issued_until).contains(&list.expired_until), "{list:?}");
    Ok(())
}

#[tokio::test]
async fn revocations_are_deleted_when_their_tokens_have_expired() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let identity = Identity::start(&settings).await?;
    // Tokens of logins live for 12 hours, and those of API tokens for 10 minutes.
    sqlx::query(
        "insert into revocation (user_id, api_token_id, issued_until, created_at)
         select gen_random_uuid(), case when of_api_token then gen_random_uuid() end, number,
                now() - age
         from (values (1, false, interval '12 hours'), (2, false, interval '14 hours'),
                      (3, true, interval '1 hour'), (4, true, interval '2 hours'))
              as revoked (number, of_api_token, age)",
    )
    .execute(&identity.db)
    .await?;
    // A program deletes expired rows when it starts.
    let _second = Identity::start(&settings).await?;
    eventually("the others to be deleted", async || {
        let left = sqlx::query_scalar("select issued_until from revocation order by issued_until");
        let left: Vec<i64> = left.fetch_all(&identity.db).await.ok()?;
        (left == [1, 3]).then_some(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn revocations_reach_running_and_new_replicas() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let (first, second) = (Identity::start(&settings).await?, Identity::start(&settings).await?);
    let caller = first.caller_of(ADMIN).await?;
    assert!(second.accepts(&caller).await);
    first.prepare_reset(ADMIN, "").await?;
    let token = link(&first.mails(1).await[0])?.1;
    first.reset(&token, "a password that is new").await?;

    eventually("the token is revoked", async || (!second.accepts(&caller).await).then_some(()))
        .await;
    let third = Identity::start(&settings).await?;
    assert!(!third.accepts(&caller).await);
    Ok(())
}

#[tokio::test]
async fn a_revoked_token_cannot_be_exchanged_even_before_the_replica_is_notified() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let member = identity.member(&admin, "grace@example.com", "Testers").await?;
    let customer = member.customer.to_string();
    identity.refine(&member, &customer).await?;
    // Committed by another replica; this one has not received it yet.
    sqlx::query(
        "insert into revocation (user_id, issued_until)
         values ($1, extract(epoch from clock_timestamp()) * 1000000)",
    )
    .bind(member.user)
    .execute(&identity.db)
    .await?;
    let refused = identity.refine(&member, &customer).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    Ok(())
}

#[tokio::test]
async fn tokens_issued_during_a_change_of_permissions_are_revoked() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    identity.member(&admin, "grace@example.com", "Testers").await?;
    let id = identity.group(&admin, "Testers").await?;
    for permissions in ["Login, Read", "Login, Write", "Login, Execute"] {
        let changes =
            UserGroupInput { usage_permission: permissions.to_owned(), ..Default::default() };
        let request = UpdateUserGroupRequest {
            id: id.clone(),
            data_version: None,
            changes: Some(changes),
            fields: vec!["UsagePermission".to_owned()],
        };
        let mut groups = identity.groups();
        let logins = join_all((0..12).map(|_| identity.caller_of("grace@example.com")));
        let (callers, done) = futures::join!(logins, groups.update_user_group(admin.call(request)));
        done?;
        eventually("only tokens with old permissions to be revoked", async || {
            for caller in callers.iter().flatten() {
                let is_new = caller.permissions.to_string() == permissions;
                if identity.accepts(caller).await != is_new {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }
    Ok(())
}
