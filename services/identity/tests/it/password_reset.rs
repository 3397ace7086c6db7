//! Password resets by a link in a mail.

use anyhow::Result;
use assay_testkit::eventually;
use futures::future::join_all;
use tonic::Code;

use crate::world::{ADMIN, Identity, PASSWORD, Settings, link, reason};

const NEW: &str = "a password that is new";

/// Waits for this number of mails; returns the token of the link in the last one.
async fn token(identity: &Identity, mails: usize) -> Result<String> {
    Ok(link(&identity.mails(mails).await[mails - 1])?.1)
}

#[tokio::test]
async fn a_password_reset_revokes_all_sessions() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    identity.prepare_reset("ada@example.COM", "").await?;
    identity.reset(&token(&identity, 1).await?, NEW).await?;

    eventually("the token is revoked", async || (!identity.accepts(&caller).await).then_some(()))
        .await;
    let refused = identity.login(ADMIN, PASSWORD).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let caller = identity.caller(&identity.login(ADMIN, NEW).await?).await?;
    assert!(identity.accepts(&caller).await);
    Ok(())
}

#[tokio::test]
async fn a_link_works_once_even_in_concurrent_requests() -> Result<()> {
    let identity = Identity::new().await?;
    identity.prepare_reset(ADMIN, "").await?;
    let token = token(&identity, 1).await?;
    let phrases: Vec<_> = (0..50).map(|n| format!("a phrase of many words, number {n}")).collect();
    let tries = join_all(phrases.iter().map(|phrase| identity.reset(&token, phrase))).await;
    let (won, lost): (Vec<_>, Vec<_>) =
        tries.into_iter().zip(&phrases).partition(|(one, _)| one.is_ok());
    let [(_, phrase)] = &won[..] else { panic!("{} uses succeeded", won.len()) };
    for refused in lost.into_iter().filter_map(|(one, _)| one.err()) {
        assert_eq!(reason(&refused), "invalid_reset_token");
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
    identity.login(ADMIN, phrase).await?;
    Ok(())
}

#[tokio::test]
async fn at_most_three_links_are_valid_and_a_fourth_replaces_the_oldest() -> Result<()> {
    let identity = Identity::new().await?;
    let mut tokens = Vec::new();
    for count in 1..=4 {
        identity.prepare_reset(ADMIN, "").await?;
        tokens.push(token(&identity, count).await?);
    }
    sqlx::query("update password_link set expires_at = now()").execute(&identity.db).await?;
    let unknown = ["", "unknown", "\0", &"x".repeat(10_000)];
    for token in tokens.iter().map(String::as_str).chain(unknown) {
        let refused = identity.reset(token, NEW).await.unwrap_err();
        assert_eq!(reason(&refused), "invalid_reset_token", "{token}");
    }
    sqlx::query("update password_link set expires_at = now() + interval '1 minute'")
        .execute(&identity.db)
        .await?;
    identity.reset(&tokens[0], NEW).await.unwrap_err();
    identity.reset(&tokens[1], NEW).await?;
    identity.reset(&tokens[2], NEW).await.unwrap_err();
    identity.reset(&tokens[3], NEW).await.unwrap_err();
    Ok(())
}

#[tokio::test]
async fn a_password_reset_keeps_a_pending_invitation() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    identity.user(&admin, "grace@example.com", "Testers").await?;
    let invitation = token(&identity, 1).await?;
    for count in 2..=3 {
        identity.prepare_reset("grace@example.com", "").await?;
        identity.mails(count).await;
    }
    let days: Vec<f64> = sqlx::query_scalar(
        "select extract(epoch from expires_at - now())::float8 / 86400 from password_link",
    )
    .fetch_all(&identity.db)
    .await?;
    assert_eq!(days.len(), 3);
    assert!(days.iter().all(|days| *days > 6.9), "{days:?}");
    identity.reset(&invitation, NEW).await?;
    identity.login("grace@example.com", NEW).await?;
    Ok(())
}

#[tokio::test]
async fn an_invalid_password_is_rejected_and_the_link_stays_valid() -> Result<()> {
    let identity = Identity::new().await?;
    identity.prepare_reset(ADMIN, "").await?;
    let token = token(&identity, 1).await?;
    for bad in ["", "short", "password1234", "ada@example.com!", &"x1y2z3".repeat(50)] {
        let refused = identity.reset(&token, bad).await.unwrap_err();
        assert_eq!(reason(&refused), "invalid");
        assert!(refused.message().starts_with("NewPassword: "), "{refused}");
    }
    identity.reset(&token, NEW).await?;
    Ok(())
}

#[tokio::test]
async fn the_token_of_a_link_is_not_stored_in_clear() -> Result<()> {
    let identity = Identity::new().await?;
    identity.prepare_reset(ADMIN, "").await?;
    let token = token(&identity, 1).await?;
    assert_eq!(token.len(), 43, "256 bits in base64");
    for table in ["mail", "password_link", "audit_entry", "outbox"] {
        let statement = format!("select count(*) from {table} as t where t::text like $1");
        let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .bind(format!("%{token}%"))
            .fetch_one(&identity.db)
            .await?;
        assert_eq!(count, 0, "{table}");
    }
    Ok(())
}

/// Responses take equally long: the same is done for both addresses. The worker, which sends mails
/// later, is the first to look for an account.
#[tokio::test]
async fn a_password_reset_does_not_reveal_whether_an_account_exists() -> Result<()> {
    let identity = Identity::new().await?;
    // Mails are deleted when they have been sent.
    for statement in [
        "create table queued as select kind, recipient from mail",
        "create function copy_mail() returns trigger language plpgsql as $$
         begin
             insert into queued values (new.kind, new.recipient);
             return null;
         end
         $$",
        "create trigger copy_mail after insert on mail for each row execute function copy_mail()",
    ] {
        sqlx::query(statement).execute(&identity.db).await?;
    }
    for _ in 0..15 {
        for email in [ADMIN, "unknown@example.com"] {
            identity.prepare_reset(email, "").await?;
        }
    }
    for odd in ["", "no email", "a\0@b.example", "a@b.example\r\nBcc: c@d.example"] {
        identity.prepare_reset(odd, "").await?;
    }
    let queued: Vec<(String, i64)> =
        sqlx::query_as("select kind, count(*) from queued group by kind, recipient")
            .fetch_all(&identity.db)
            .await?;
    assert_eq!(queued, [("PasswordReset".to_owned(), 10), ("PasswordReset".to_owned(), 10)]);
    // The limit of mails in a row.
    identity.mails(10).await;
    eventually("the queue to be empty", async || {
        let left: i64 =
            sqlx::query_scalar("select count(*) from mail").fetch_one(&identity.db).await.ok()?;
        (left == 0).then_some(())
    })
    .await;
    identity.mails(10).await;

    // The refused requests do not count: after the time of one mail, another one is sent.
    sqlx::query("update throttle set updated_at = updated_at - interval '5 minutes'")
        .execute(&identity.db)
        .await?;
    identity.prepare_reset(ADMIN, "").await?;
    identity.mails(11).await;
    Ok(())
}

#[tokio::test]
async fn a_link_points_to_a_host_of_the_accounts_customers_or_to_the_public_url() -> Result<()> {
    let settings = Settings::new().await?.with_administrator().and("base-domain", "assay.example");
    let identity = Identity::start(&settings).await?;
    let visitor = identity.visitor("acme").await?;
    identity.visitor("other").await?;
    for (number, (host, origin)) in [
        ("https://acme.assay.example", "https://acme.assay.example"),
        ("https://other.assay.example", "https://www.assay.example"),
        ("https://acme.assay.example.evil.example", "https://www.assay.example"),
    ]
    .into_iter()
    .enumerate()
    {
        let email = format!("user{number}@example.com");
        identity.member(&visitor, &email, "Testers").await?;
        identity.mails(number * 2 + 1).await;
        identity.prepare_reset(&email, host).await?;
        let mails = identity.mails(number * 2 + 2).await;
        assert_eq!(link(&mails[number * 2 + 1])?.0, origin, "{host}");
    }
    Ok(())
}
