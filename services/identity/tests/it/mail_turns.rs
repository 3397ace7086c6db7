//! Turns of customers with their mails, and mails that the server takes long to accept.

use std::time::Duration;

use anyhow::Result;
use assay_auth::Caller;
use assay_testkit::eventually;

use crate::{
    mail::start,
    mail_server::{DRIPS, HANGS, LATE, Mailbox},
    world::{ADMIN, Identity, Settings},
};

/// Invites users of a domain to the customer of a manager.
async fn invite(identity: &Identity, manager: &Caller, count: usize, domain: &str) -> Result<()> {
    for number in 0..count {
        identity.user(manager, &format!("user{number}{domain}"), "Testers").await?;
    }
    Ok(())
}

#[tokio::test]
async fn mails_that_hang_do_not_delay_those_of_other_customers() -> Result<()> {
    let mailbox = Mailbox::default();
    let identity = start(&mailbox).await?;
    let (acme, other) = (identity.visitor("acme").await?, identity.visitor("other").await?);
    for domain in [HANGS, DRIPS] {
        invite(&identity, &acme, 5, domain).await?;
    }
    mailbox.waits(2).await;
    identity.user(&other, "grace@example.com", "Testers").await?;
    identity.prepare_reset(ADMIN, "").await?;
    let mut to: Vec<_> = mailbox.mails(2).await.into_iter().flat_map(|mail| mail.to).collect();
    to.sort();
    assert_eq!(to, [ADMIN, "grace@example.com"]);
    assert_eq!(mailbox.waiting(), 2, "a customer has a quarter of the connections");
    Ok(())
}

#[tokio::test]
async fn a_password_reset_is_sent_although_other_mails_of_all_customers_hang() -> Result<()> {
    let mailbox = Mailbox::default();
    let identity = start(&mailbox).await?;
    for subdomain in ["a1", "b2", "c3", "d4"] {
        invite(&identity, &identity.visitor(subdomain).await?, 3, HANGS).await?;
    }
    mailbox.waits(6).await;
    identity.prepare_reset(ADMIN, "").await?;
    let [mail] = &mailbox.mails(1).await[..] else { panic!("expected one mail") };
    assert!(mail.text.contains("Subject: Reset your Assay password"), "{}", mail.text);
    assert_eq!(mailbox.waiting(), 6, "a quarter is reserved for password resets");
    Ok(())
}

#[tokio::test]
async fn many_invitations_do_not_delay_mails_of_other_customers() -> Result<()> {
    let mailbox = Mailbox::default();
    let identity = start(&mailbox).await?;
    let (acme, other) = (identity.visitor("acme").await?, identity.visitor("other").await?);
    sqlx::query(
        "with invited as (
             insert into membership (customer_id, id, user_group_id, display_name)
             select customer_id, gen_random_uuid(), id, 'User ' || number
             from user_group, generate_series(1, 300) as number
             where customer_id = $1 and name = 'Testers'
             returning customer_id, id
         ), invitation as (
             insert into invitation (customer_id, user_id, email)
             select customer_id, id, id || '@acme.example' from invited
         )
         insert into mail (id, kind, customer_id, user_id)
         select gen_random_uuid(), 'Invitation', customer_id, id from invited",
    )
    .bind(acme.customer)
    .execute(&identity.db)
    .await?;
    identity.user(&other, "grace@example.com", "Testers").await?;
    identity.prepare_reset(ADMIN, "").await?;
    let sent = mailbox.mails(302).await;
    for recipient in ["grace@example.com", ADMIN] {
        let place = sent.iter().position(|mail| mail.to == [recipient]);
        assert!(place.is_some_and(|place| place < 200), "{recipient} waited: {place:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_conversation_that_hangs_or_drips_is_ended_at_the_deadline() -> Result<()> {
    let mailbox = Mailbox::default();
    let settings = Settings::new().await?.with_administrator();
    let settings = settings.and("smtp-url", &mailbox.serve().await?);
    let settings = settings.and("mail-from", "assay@example.com");
    let identity = Identity::start(&settings.and("mail-timeout-seconds", "1")).await?;
    let admin = identity.caller_of(ADMIN).await?;
    for domain in [HANGS, DRIPS] {
        invite(&identity, &admin, 1, domain).await?;
    }
    let failed = "select count(*) from unfinished_work
                  where failures = 1 and reason = 'the mail was not accepted within 1 s'";
    eventually("the ends of the attempts", async || {
        let failed: i64 = sqlx::query_scalar(failed).fetch_one(&identity.db).await.ok()?;
        (failed == 2).then_some(())
    })
    .await;
    // The next mail does not get the answer that the one before has not waited for.
    mailbox.waits(0).await;
    identity.prepare_reset(ADMIN, "").await?;
    mailbox.mails(1).await;
    Ok(())
}

#[tokio::test]
async fn a_mail_that_is_accepted_late_is_sent_once_by_two_replicas() -> Result<()> {
    let mailbox = Mailbox::default();
    let settings = Settings::new().await?.with_administrator();
    let settings = settings.and("smtp-url", &mailbox.serve().await?);
    let settings = settings.and("mail-from", "assay@example.com");
    let identity = Identity::start(&settings).await?;
    let _other = Identity::start(&settings).await?;
    let admin = identity.caller_of(ADMIN).await?;
    invite(&identity, &admin, 1, LATE).await?;
    mailbox.waits(1).await;
    let outlasts: bool =
        sqlx::query_scalar("select next_attempt_at > now() + interval '5 minutes' from mail")
            .fetch_one(&identity.db)
            .await?;
    assert!(outlasts, "the claim ends before the deadline of five minutes");
    // Other mails are sent meanwhile, by both replicas.
    for _ in 0..5 {
        identity.prepare_reset(ADMIN, "").await?;
    }
    mailbox.mails(6).await;
    mailbox.late.0.add_permits(1);
    identity.no_mail_is_queued().await;
    assert_eq!(mailbox.sent().len(), 6);
    Ok(())
}

#[tokio::test]
async fn a_late_failure_does_not_release_a_mail_that_another_replica_has_claimed() -> Result<()> {
    let mailbox = Mailbox::default();
    let settings = Settings::new().await?.with_administrator();
    let settings = settings.and("smtp-url", &mailbox.serve().await?);
    let settings = settings.and("mail-from", "assay@example.com");
    let identity = Identity::start(&settings.and("mail-timeout-seconds", "1")).await?;
    invite(&identity, &identity.caller_of(ADMIN).await?, 1, HANGS).await?;
    mailbox.waits(1).await;
    // Its claim has expired, because its program was frozen.
    let claim =
        "update mail set attempts = attempts + 1, next_attempt_at = now() + interval '1 hour'";
    sqlx::query(claim).execute(&identity.db).await?;
    eventually("the late failure", async || {
        let failed = sqlx::query_scalar("select count(*) from unfinished_work where failures = 1");
        (failed.fetch_one(&identity.db).await.unwrap_or(0_i64) == 1).then_some(())
    })
    .await;
    identity.runtime.stop(Duration::from_secs(10)).await?;
    let is_claimed =
        sqlx::query_scalar("select next_attempt_at > now() + interval '50 minutes' from mail");
    let is_claimed: bool = is_claimed.fetch_one(&identity.db).await?;
    assert!(is_claimed, "a third replica would send it at the same time");
    Ok(())
}
