//! Revocations while the clock of the database steps back, as it does after a failover to a server
//! whose clock is behind.

use anyhow::Result;
use assay_auth::{Caller, anonymous};
use assay_proto::identity::{DeleteUserRequest, ListRevocationsRequest};
use assay_testkit::eventually;
use sqlx::{AssertSqlSafe, PgPool};
use tonic::Code;

use crate::{
    api_token,
    world::{ADMIN, Identity, PASSWORD, Settings},
};

const GRACE: &str = "grace@example.com";
const NEW: &str = "a password that is new";

/// Starts a service, and then sets the clock of its database ten minutes ahead.
async fn start() -> Result<Identity> {
    let settings = Settings::new().await?.with_administrator();
    let db = PgPool::connect(&settings.database_url).await?;
    let name: String = sqlx::query_scalar("select current_database()").fetch_one(&db).await?;
    let clock = |function: &str, stability: &str| {
        format!(
            "create function fake.{function}() returns timestamptz language sql {stability}
             as 'select pg_catalog.{function}() + ahead from fake.clock'"
        )
    };
    for statement in [
        "create schema fake".to_owned(),
        "create table fake.clock as select interval '0' as ahead".to_owned(),
        clock("now", "stable"),
        clock("clock_timestamp", "volatile"),
        format!("alter database {name} set search_path = fake, public, pg_catalog"),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(&db).await?;
    }
    db.close().await;
    let identity = Identity::start(&settings).await?;
    set_clock(&identity, "10 minutes").await?;
    Ok(identity)
}

async fn set_clock(identity: &Identity, ahead: &str) -> Result<()> {
    let set = sqlx::query("update fake.clock set ahead = $1::text::interval").bind(ahead);
    set.execute(&identity.db).await?;
    Ok(())
}

async fn step_back(identity: &Identity) -> Result<()> {
    set_clock(identity, "0").await
}

async fn ends(identity: &Identity, what: &str, caller: &Caller) {
    eventually(what, async || (!identity.accepts(caller).await).then_some(())).await;
    let refined = identity.refine(caller, &caller.customer.to_string()).await.unwrap_err();
    assert_eq!(refined.code(), Code::Unauthenticated, "{what}");
}

#[tokio::test]
async fn logging_out_revokes_tokens_from_before_the_clock_stepped_back() -> Result<()> {
    let identity = start().await?;
    let caller = identity.caller_of(ADMIN).await?;
    step_back(&identity).await?;
    identity.tokens().logout(caller.call(())).await?;
    ends(&identity, "the session to end", &caller).await;
    let again = identity.caller_of(ADMIN).await?;
    assert!(identity.accepts(&again).await);
    Ok(())
}

#[tokio::test]
async fn revocations_are_in_effect_while_the_clock_is_days_ahead() -> Result<()> {
    let identity = start().await?;
    let caller = identity.caller_of(ADMIN).await?;
    identity.tokens().logout(caller.call(())).await?;
    set_clock(&identity, "2 days").await?;
    let request = anonymous(ListRevocationsRequest { after: 0 });
    let list = identity.tokens().list_revocations(request).await?.into_inner();
    assert!(!list.items.is_empty(), "{list:?}");
    assert!(list.items.iter().all(|one| one.issued_until > list.expired_until), "{list:?}");
    Ok(())
}

#[tokio::test]
async fn deleting_a_user_revokes_tokens_from_before_the_clock_stepped_back() -> Result<()> {
    let identity = start().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let member = identity.member(&admin, GRACE, "Testers").await?;
    step_back(&identity).await?;
    let request = DeleteUserRequest { id: member.user.to_string() };
    identity.users().delete_user(admin.call(request)).await?;
    ends(&identity, "the tokens of the deleted user to end", &member).await;
    assert!(identity.accepts(&admin).await);
    Ok(())
}

#[tokio::test]
async fn a_reset_revokes_tokens_from_before_the_clock_stepped_back() -> Result<()> {
    let identity = start().await?;
    let stolen = identity.caller(&identity.login(ADMIN, PASSWORD).await?).await?;
    let secret = api_token::create(&identity, &stolen, "Read", None).await?.secret;
    let machine = api_token::exchange(&identity, &secret).await?;
    step_back(&identity).await?;
    identity.prepare_reset(ADMIN, "").await?;
    identity.reset(&identity.token(1).await?, NEW).await?;
    ends(&identity, "the session of the thief to end", &stolen).await;
    assert!(!identity.accepts(&machine).await);
    // The owner need not wait until the clock has caught up.
    let owner = identity.caller(&identity.login(ADMIN, NEW).await?).await?;
    let refined = identity.refine(&owner, &owner.customer.to_string()).await?;
    for caller in [&owner, &identity.caller(&refined).await?] {
        assert!(identity.accepts(caller).await);
    }
    Ok(())
}
