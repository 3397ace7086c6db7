//! Failing deliveries: receivers that answer with errors, hang, redirect, ask for a delay or are
//! gone, and addresses that webhooks may not access.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_proto::notification::{
    Delivery, DeliveryStatus, RedeliverFailedRequest, RedeliverRequest, Webhook, WebhookInput,
};
use assay_testkit::{TestUser, eventually};
use tonic::{Code, Status};

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{World, notification, numbered},
};

fn has_failed(delivery: &Delivery) -> bool {
    delivery.attempts > 0 && delivery.error.is_some()
}

#[tokio::test]
async fn a_failed_delivery_is_retried_until_the_receiver_accepts_it() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    let created = world.create(&user, notification()).await?;
    let failed = world.delivery(&user, &webhook, has_failed).await;
    assert_eq!(failed.status(), DeliveryStatus::Pending);
    assert_eq!(failed.response_status, Some(500));
    assert_eq!(failed.error.as_deref(), Some("the receiver answered 500 Internal Server Error"));
    assert!(failed.next_attempt_date_time > failed.last_attempt_date_time);
    assert!(world.webhook(&user, &webhook.id).await?.failing_since.is_some());

    receiver.set(Behaviour::Answer(200));
    world.skip_delays().await?;
    let delivered = world
        .delivery(&user, &webhook, |delivery| delivery.status() == DeliveryStatus::Delivered)
        .await;
    assert_eq!(
        (delivered.attempts, delivered.error, delivered.next_attempt_date_time),
        (2, None, None)
    );
    let ids: Vec<_> =
        receiver.requests().iter().map(|sent| sent.header("webhook-id").to_owned()).collect();
    assert_eq!(ids, [created.id.clone(), created.id], "all attempts have the same id");
    assert_eq!(world.webhook(&user, &webhook.id).await?.failing_since, None);
    Ok(())
}

#[tokio::test]
async fn a_delivery_that_no_program_survives_fails_and_others_are_sent() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    let fatal = world.create(&user, numbered(1)).await?;
    world.delivery(&user, &webhook, has_failed).await;
    // Programs began to send it, and did not survive.
    let taken = "update webhook set taken = 5, rests_until = now()";
    sqlx::query(taken).execute(&world.db).await?;
    receiver.set(Behaviour::Answer(200));
    world.skip_delays().await?;
    let failed =
        world.delivery(&user, &webhook, |one| one.status() == DeliveryStatus::Failed).await;
    assert!(failed.error.unwrap().starts_with("no attempt came to an end"));
    let other = world.create(&user, numbered(2)).await?;
    world.skip_delays().await?;
    eventually("the other delivery", || async {
        let sent = receiver.requests();
        (sent.last()?.header("webhook-id") == other.id).then_some(())
    })
    .await;

    // An operator sees it, and has it sent again.
    let deliveries = assay_notification::WORK.iter().find(|work| work.kind == "delivery").unwrap();
    let mut letters = Vec::new();
    deliveries.list(&world.db, Some(user.customer), |one| letters.push(one)).await?;
    assert_eq!(letters.len(), 1);
    let mut connection = world.db.acquire().await?;
    assert_eq!(deliveries.retry(&mut connection, Some(&[letters.remove(0).id])).await?, 1);
    eventually("the delivery", || async {
        let sent = receiver.requests();
        (sent.last()?.header("webhook-id") == fatal.id).then_some(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn hanging_receivers_of_some_customers_do_not_delay_other_customers() -> Result<()> {
    let world = World::new().await?;
    let hanging = Receiver::start(Behaviour::Hang).await?;
    for _ in 0..3 {
        let user = world.manager().await;
        for _ in 0..50 {
            world.subscribe(&user, &hanging).await?;
        }
        world.create(&user, notification()).await?;
    }
    // Each customer has its share of the rounds.
    hanging.receives(3 * 16).await;
    let user = world.manager().await;
    let healthy = Receiver::start(Behaviour::Answer(200)).await?;
    world.subscribe(&user, &healthy).await?;
    for number in 1..=5 {
        let begun = Instant::now();
        world.create(&user, numbered(number)).await?;
        healthy.receives(number).await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    assert_eq!(hanging.requests().len(), 3 * 16, "the other webhooks wait for a round");
    Ok(())
}

#[tokio::test]
async fn a_hanging_receiver_does_not_delay_other_receivers() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let hanging = Receiver::start(Behaviour::Hang).await?;
    let healthy = Receiver::start(Behaviour::Answer(200)).await?;
    let slow = world.subscribe(&user, &hanging).await?;
    world.subscribe(&user, &healthy).await?;
    let begun = Instant::now();
    for number in 0..40 {
        world.create(&user, numbered(number)).await?;
    }
    healthy.receives(40).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(hanging.requests().len() <= 16, "the hanging receiver gets one batch");

    let unanswered = world.delivery(&user, &slow, |_| true).await;
    assert_eq!((unanswered.status(), unanswered.attempts), (DeliveryStatus::Pending, 0));
    eventually("a timeout", || async {
        let deliveries = world.deliveries(&user, &slow, None).await.expect("deliveries");
        deliveries.iter().find(|delivery| has_failed(delivery)).map(|delivery| {
            assert_eq!(delivery.error.as_deref(), Some("the receiver did not answer within 15 s"));
        })
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn retry_after_delays_the_next_attempt_by_up_to_an_hour() -> Result<()> {
    for (requested, delay) in [(600, 600), (100_000, 3600)] {
        let world = World::new().await?;
        let user = world.manager().await;
        let receiver = Receiver::start(Behaviour::RetryAfter(requested)).await?;
        let webhook = world.subscribe(&user, &receiver).await?;
        world.create(&user, notification()).await?;
        let failed = world.delivery(&user, &webhook, has_failed).await;
        let [last, next] = [failed.last_attempt_date_time, failed.next_attempt_date_time];
        let between = next.expect("a next attempt").0 - last.expect("an attempt").0;
        assert_eq!(between.num_seconds(), delay);
    }
    Ok(())
}

#[tokio::test]
async fn redirects_are_not_followed() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let internal = Receiver::start(Behaviour::Answer(200)).await?;
    let receiver = Receiver::start(Behaviour::RedirectTo(internal.url.clone())).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    world.create(&user, notification()).await?;
    let failed = world.delivery(&user, &webhook, has_failed).await;
    assert_eq!(
        failed.error.as_deref(),
        Some("the receiver answered 302 Found; redirects are not followed")
    );
    assert!(internal.requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn webhooks_cannot_access_internal_addresses_by_any_name() -> Result<()> {
    let world = World::allowing("").await?;
    let user = world.manager().await;
    let internal = Receiver::start(Behaviour::Answer(200)).await?;
    for url in [&internal.url, "https://127.0.0.1/", "https://[::ffff:127.0.0.1]/"] {
        let refused = world.add_webhook(&user, webhook_to(url)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{url}");
    }
    let by_name = internal.url.replace("http://127.0.0.1", "https://localhost");
    let webhook = world.add_webhook(&user, webhook_to(&by_name)).await?;
    // The addresses of a host are known only when it is resolved.
    let failed = world.delivery(&user, &webhook, has_failed).await;
    let error = failed.error.unwrap_or_default();
    assert!(error.contains("which webhooks may not access"), "{error}");
    assert!(!error.contains("127.0.0.1") && !error.contains("::1"), "{error}");
    assert!(internal.requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_is_gone_or_fails_for_days_is_archived() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let (gone, failing) = (
        Receiver::start(Behaviour::Answer(410)).await?,
        Receiver::start(Behaviour::Answer(503)).await?,
    );
    let [first, second] = [&gone, &failing].map(|receiver| world.subscribe(&user, receiver));
    let (first, second) = (first.await?, second.await?);
    world.create(&user, notification()).await?;
    world.delivery(&user, &second, has_failed).await;
    assert!(!world.webhook(&user, &second.id).await?.archived);
    let days = "update webhook set failing_since = now() - interval '6 days' where id = $1::uuid";
    sqlx::query(days).bind(&second.id).execute(&world.db).await?;
    world.skip_delays().await?;

    for webhook in [&first, &second] {
        eventually("an archived webhook", || async {
            world.webhook(&user, &webhook.id).await.expect("a webhook").archived.then_some(())
        })
        .await;
    }
    let disabled = world.list_of(&user, Some("Webhook"), Some("Disabled")).await?;
    let mut disabled: Vec<_> =
        disabled.into_iter().map(|notification| notification.source_id).collect();
    disabled.sort_unstable();
    let mut both = [first.id, second.id.clone()];
    both.sort_unstable();
    assert_eq!(disabled, both);
    let before = failing.requests().len();
    world.skip_delays().await?;
    world.create(&user, numbered(2)).await?;
    assert_eq!(
        world.deliveries(&user, &second, None).await?.len(),
        1,
        "an archived webhook gets no new deliveries"
    );
    let refused = redeliver_failed(&world, &user, &second).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);

    // Once it is active again, its pending deliveries are sent.
    failing.set(Behaviour::Answer(200));
    let webhook = world.webhook(&user, &second.id).await?;
    world.change(&user, &webhook, &["Archived"], WebhookInput::default()).await?;
    failing.receives(before + 1).await;
    assert_eq!(world.webhook(&user, &second.id).await?.failing_since, None);
    Ok(())
}

async fn redeliver_failed(
    world: &World,
    user: &TestUser,
    webhook: &Webhook,
) -> Result<i64, Status> {
    let request = RedeliverFailedRequest { webhook_id: webhook.id.clone() };
    let redelivery = world.webhooks.clone().redeliver_failed(user.call(request)).await?;
    Ok(redelivery.into_inner().count)
}

#[tokio::test]
async fn a_delivery_fails_after_its_last_attempt_and_can_be_requeued() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(404)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    let created = world.create(&user, notification()).await?;
    world.delivery(&user, &webhook, has_failed).await;
    let last = "update webhook_delivery set attempts = 8";
    sqlx::query(last).execute(&world.db).await?;
    world.skip_delays().await?;
    let failed = world
        .delivery(&user, &webhook, |delivery| delivery.status() == DeliveryStatus::Failed)
        .await;
    assert_eq!((failed.attempts, failed.next_attempt_date_time), (9, None));
    let failures = world.deliveries(&user, &webhook, Some(DeliveryStatus::Failed)).await?;
    assert_eq!(failures, [failed]);

    receiver.set(Behaviour::Answer(200));
    assert_eq!(redeliver_failed(&world, &user, &webhook).await?, 1);
    world.skip_delays().await?;
    let is_delivered = |delivery: &Delivery| delivery.status() == DeliveryStatus::Delivered;
    world.delivery(&user, &webhook, is_delivered).await;
    assert_eq!(redeliver_failed(&world, &user, &webhook).await?, 0);

    let before = receiver.requests().len();
    let request = RedeliverRequest { webhook_id: webhook.id.clone(), id: created.id };
    let again = world.webhooks.clone().redeliver(user.call(request)).await?.into_inner();
    assert_eq!((again.status(), again.attempts), (DeliveryStatus::Pending, 0));
    receiver.receives(before + 1).await;
    Ok(())
}

#[tokio::test]
async fn many_failed_deliveries_are_requeued_in_steps() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(200)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    world.add_history(&user, 1001).await?;
    for statement in [
        "update webhook set rests_until = now() + interval '1 hour'",
        "insert into webhook_delivery (webhook_id, notification_id, attempts, next_attempt_at)
         select webhook.id, notification.id, 9, null
         from webhook join notification using (customer_id) where action = 'Changed'",
        "create function bounded() returns trigger language plpgsql as $$
         begin
             if (select count(*) from changed) > 1000 then
                 raise exception 'the statement changes too many deliveries';
             end if;
             return null;
         end $$",
        "create trigger bounded after update on webhook_delivery
             referencing new table as changed for each statement execute function bounded()",
    ] {
        sqlx::query(statement).execute(&world.db).await?;
    }
    assert_eq!(redeliver_failed(&world, &user, &webhook).await?, 1001);
    let failed = world.deliveries(&user, &webhook, Some(DeliveryStatus::Failed)).await?;
    assert!(failed.is_empty(), "{}", failed.len());
    assert_eq!(redeliver_failed(&world, &user, &webhook).await?, 0);
    Ok(())
}
