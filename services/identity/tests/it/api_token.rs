//! API tokens.

use anyhow::Result;
use assay_auth::{Caller, anonymous};
use assay_proto::{
    Batch as _, CustomerId, Timestamp,
    identity::{
        ApiToken, ApiTokenInput, CreateApiTokenRequest, DeleteApiTokenRequest,
        DeleteUserApiTokenRequest, ExchangeApiTokenRequest, ListApiTokensRequest,
        ListUserApiTokensRequest, NewApiToken,
    },
};
use assay_testkit::eventually;
use futures::TryStreamExt;
use sqlx::AssertSqlSafe;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::world::{ADMIN, Identity, reason};

pub(crate) async fn create(
    identity: &Identity,
    caller: &Caller,
    permissions: &str,
    expires_at: Option<Timestamp>,
) -> Result<NewApiToken, Status> {
    let token = ApiTokenInput {
        name: "CI".to_owned(),
        usage_permission: permissions.to_owned(),
        expires_at,
    };
    let request = CreateApiTokenRequest { api_token: Some(token) };
    Ok(identity.api_tokens().create_api_token(caller.call(request)).await?.into_inner())
}

pub(crate) async fn exchange(identity: &Identity, secret: &str) -> Result<Caller> {
    let request = anonymous(ExchangeApiTokenRequest { secret: secret.to_owned() });
    let token = identity.tokens().exchange_api_token(request).await?.into_inner().token;
    identity.caller(&token).await
}

async fn delete(identity: &Identity, caller: &Caller, id: &str) -> Result<(), Status> {
    let request = caller.call(DeleteApiTokenRequest { id: id.to_owned() });
    identity.api_tokens().delete_api_token(request).await.map(drop)
}

async fn error_code(identity: &Identity, secret: &str) -> Code {
    let error = exchange(identity, secret).await.unwrap_err();
    error.downcast::<Status>().expect("a gRPC status").code()
}

async fn list(identity: &Identity, caller: &Caller) -> Result<Vec<ApiToken>> {
    let request = caller.call(ListApiTokensRequest { page: None });
    let batches: Vec<_> =
        identity.api_tokens().list_api_tokens(request).await?.into_inner().try_collect().await?;
    Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

async fn time(identity: &Identity, offset: &str) -> Result<Timestamp> {
    let time = sqlx::query_scalar("select now() + $1::text::interval").bind(offset);
    Ok(time.fetch_one(&identity.db).await?)
}

#[tokio::test]
async fn an_api_token_acts_as_its_user_with_the_granted_permissions() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let made = create(&identity, &caller, "Automation,Read", None).await?;
    assert_eq!(made.usage_permission, "Read, Automation");
    assert!(made.secret.starts_with("assay_") && made.secret.len() == 49, "{}", made.secret);

    let machine = exchange(&identity, &made.secret).await?;
    assert_eq!((machine.customer, machine.user), (caller.customer, caller.user));
    assert_eq!(machine.permissions.to_string(), "Read, Automation");
    assert_eq!(machine.api_token.map(|id| id.to_string()), Some(made.id.clone()));
    assert!(identity.accepts(&machine).await);
    let [listed] = &list(&identity, &caller).await?[..] else { panic!("expected one token") };
    assert_eq!((listed.id.as_str(), listed.name.as_str()), (made.id.as_str(), "CI"));
    assert!(listed.last_used_at.is_some() && made.last_used_at.is_none());

    for table in ["api_token", "audit_entry", "outbox"] {
        let stored = format!("select t::text from {table} as t");
        let stored = sqlx::query_scalar(AssertSqlSafe(stored));
        let stored: Vec<String> = stored.fetch_all(&identity.db).await?;
        assert!(!stored.concat().contains(&made.secret[6..]), "{table}");
    }
    for wrong in ["", "assay_", &made.secret[..48], &format!("{}x", made.secret)] {
        assert_eq!(error_code(&identity, wrong).await, Code::Unauthenticated, "{wrong}");
    }
    Ok(())
}

#[tokio::test]
async fn invalid_api_tokens_are_rejected() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let member = identity.member(&admin, "grace@example.com", "Viewers").await?;
    let (past, long) = (time(&identity, "-1 second").await?, "x".repeat(256));
    for (name, permissions, expires_at, field) in [
        ("", "Read", None, "Name"),
        (&long, "Read", None, "Name"),
        ("CI", "", None, "UsagePermission"),
        ("CI", "Everything", None, "UsagePermission"),
        ("CI", "Read", Some(past), "ExpiresAt"),
    ] {
        let (name, usage_permission) = (name.to_owned(), permissions.to_owned());
        let token = ApiTokenInput { name, usage_permission, expires_at };
        let request = member.call(CreateApiTokenRequest { api_token: Some(token) });
        let error = identity.api_tokens().create_api_token(request).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{field}: {permissions}");
        assert!(error.message().starts_with(&format!("{field}: ")), "{error}");
    }
    let too_much = create(&identity, &member, "Read, Write", None).await.unwrap_err();
    assert_eq!(too_much.code(), Code::PermissionDenied);
    let visitor = identity.visitor("acme").await?;
    let stranger = create(&identity, &visitor, "Read", None).await.unwrap_err();
    assert_eq!(stranger.code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn an_api_token_can_neither_create_tokens_nor_change_the_customer() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let made = create(&identity, &admin, &admin.permissions.to_string(), None).await?;
    let machine = exchange(&identity, &made.secret).await?;
    let error = create(&identity, &machine, "Read", None).await.unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    let delete = machine.call(DeleteApiTokenRequest { id: made.id });
    let error = identity.api_tokens().delete_api_token(delete).await.unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    for customer in [admin.customer, CustomerId::new()] {
        let error = identity.refine(&machine, &customer.to_string()).await.unwrap_err();
        assert_eq!(error.code(), Code::PermissionDenied);
    }
    Ok(())
}

#[tokio::test]
async fn an_api_token_never_has_more_permissions_than_its_user() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let member = identity.member(&admin, "grace@example.com", "Testers").await?;
    let made = create(&identity, &member, "Read, Write", None).await?;
    let set = async |permissions: &str| {
        sqlx::query("update user_group set usage_permission = $1 where name = 'Testers'")
            .bind(permissions)
            .execute(&identity.db)
            .await
    };
    set("Login, Read, Invoicing").await?;
    assert_eq!(exchange(&identity, &made.secret).await?.permissions.to_string(), "Read");
    for permissions in ["Login", "Read, Write"] {
        set(permissions).await?;
        assert_eq!(error_code(&identity, &made.secret).await, Code::Unauthenticated);
    }
    set("Login, Read").await?;
    identity.set(member.customer, "archived = true").await?;
    assert_eq!(error_code(&identity, &made.secret).await, Code::Unauthenticated);
    Ok(())
}

#[tokio::test]
async fn an_expired_or_deleted_api_token_is_rejected() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let soon = time(&identity, "1 hour").await?;
    let ending = create(&identity, &admin, "Read", Some(soon)).await?;
    exchange(&identity, &ending.secret).await?;
    sqlx::query("update api_token set expires_at = now()").execute(&identity.db).await?;
    assert_eq!(error_code(&identity, &ending.secret).await, Code::Unauthenticated);

    let (kept, deleted) = (
        create(&identity, &admin, "Read", None).await?,
        create(&identity, &admin, "Read", None).await?,
    );
    let (keeps, goes) =
        (exchange(&identity, &kept.secret).await?, exchange(&identity, &deleted.secret).await?);
    let delete = DeleteApiTokenRequest { id: deleted.id };
    identity.api_tokens().delete_api_token(admin.call(delete.clone())).await?;
    eventually("the token is revoked", async || (!identity.accepts(&goes).await).then_some(()))
        .await;
    assert!(identity.accepts(&keeps).await && identity.accepts(&admin).await);
    assert_eq!(error_code(&identity, &deleted.secret).await, Code::Unauthenticated);
    let again = identity.api_tokens().delete_api_token(admin.call(delete)).await.unwrap_err();
    assert_eq!(again.code(), Code::NotFound);

    let member = identity.member(&admin, "grace@example.com", "Testers").await?;
    let foreign = DeleteApiTokenRequest { id: kept.id };
    let error = identity.api_tokens().delete_api_token(member.call(foreign)).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "another user's");
    Ok(())
}

#[tokio::test]
async fn a_manager_lists_and_revokes_the_api_tokens_of_members() -> Result<()> {
    let identity = Identity::new().await?;
    let (visitor, elsewhere) = (identity.visitor("acme").await?, identity.visitor("other").await?);
    let member = identity.member(&visitor, "grace@example.com", "Testers").await?;
    let made = create(&identity, &member, "Read", None).await?;
    let machine = exchange(&identity, &made.secret).await?;
    let user_id = member.user.to_string();
    let of_member = ListUserApiTokensRequest { user_id: user_id.clone(), page: None };
    let delete = DeleteUserApiTokenRequest { user_id, id: made.id.clone() };

    let mut tokens = identity.api_tokens();
    let list = tokens.list_user_api_tokens(visitor.call(of_member.clone())).await?.into_inner();
    let batches: Vec<_> = list.try_collect().await?;
    let listed = batches.iter().flat_map(|batch| batch.parse().unwrap());
    let ids: Vec<_> = listed.map(|token| token.id).collect();
    assert_eq!(ids, [made.id.as_str()]);
    let foreign = tokens.list_user_api_tokens(elsewhere.call(of_member.clone())).await;
    assert_eq!(foreign.map(drop).unwrap_err().code(), Code::NotFound);
    let foreign = tokens.delete_user_api_token(elsewhere.call(delete.clone())).await;
    assert_eq!(foreign.unwrap_err().code(), Code::NotFound);
    let tester = tokens.list_user_api_tokens(member.call(of_member)).await;
    assert_eq!(tester.map(drop).unwrap_err().code(), Code::PermissionDenied);

    tokens.delete_user_api_token(visitor.call(delete)).await?;
    eventually("the token is revoked", async || (!identity.accepts(&machine).await).then_some(()))
        .await;
    assert!(identity.accepts(&member).await);
    Ok(())
}

#[tokio::test]
async fn a_new_password_revokes_the_api_tokens_of_the_account() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let made = create(&identity, &admin, "Read", None).await?;
    identity.prepare_reset(ADMIN, "").await?;
    identity.reset(&identity.token(1).await?, "a password that is new").await?;
    assert_eq!(error_code(&identity, &made.secret).await, Code::Unauthenticated);
    Ok(())
}

#[tokio::test]
async fn a_user_has_a_limited_number_of_api_tokens() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    sqlx::query(
        "insert into api_token
             (customer_id, id, user_id, name, usage_permission, secret_hash, expires_at)
         select $1, gen_random_uuid(), $2, 'CI', 'Read', decode(md5(number::text), 'hex'),
                case when number > 99 then now() - interval '1 minute' end
         from generate_series(1, 120) as number",
    )
    .bind(admin.customer)
    .bind(admin.user)
    .execute(&identity.db)
    .await?;
    let last = create(&identity, &admin, "Read", None).await?;
    let refused = create(&identity, &admin, "Read", None).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(reason(&refused), "too_many_api_tokens");
    let member = identity.member(&admin, "grace@example.com", "Testers").await?;
    create(&identity, &member, "Read", None).await?;

    delete(&identity, &admin, &last.id).await?;
    create(&identity, &admin, "Read", None).await?;
    Ok(())
}

#[tokio::test]
async fn a_user_creates_a_limited_number_of_api_tokens_in_a_row() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    create(&identity, &admin, "Read", None).await?;
    sqlx::query("update throttle set level = level + 98 where subject like 'API token %'")
        .execute(&identity.db)
        .await?;
    let last = create(&identity, &admin, "Read", None).await?;
    delete(&identity, &admin, &last.id).await?;
    let refused = create(&identity, &admin, "Read", None).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("too many API tokens"), "{refused}");
    let pause = refused.get_details_retry_info().and_then(|info| info.retry_delay);
    assert!(pause.is_some_and(|pause| (1..=60).contains(&pause.as_secs())), "{pause:?}");
    let member = identity.member(&admin, "grace@example.com", "Testers").await?;
    create(&identity, &member, "Read", None).await?;
    Ok(())
}

#[tokio::test]
async fn an_unknown_api_token_does_not_wait_for_revocations() -> Result<()> {
    let identity = Identity::new().await?;
    // As a transaction that revokes tokens.
    let mut tx = assay_database::begin(&identity.db).await?;
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('assay revocation', 0))")
        .execute(&mut *tx)
        .await?;
    assert_eq!(error_code(&identity, "assay_unknown").await, Code::Unauthenticated);
    tx.rollback().await?;
    Ok(())
}
