//! Receivers that fail, hang, redirect, ask for time or are gone, and addresses that may not be
//! reached.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_proto::notification::{
    Delivery, DeliveryStatus, RedeliverFailedRequest, RedeliverRequest, Webhook, WebhookInput,
};
use assay_testkit::{TestUser, eventually};
use tonic::{Code, Status};

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::to,
    world::{World, notification, numbered},
};

fn has_failed(delivery: &Delivery) -> bool {
    delivery.attempts > 0 && delivery.error.is_some()
}

#[tokio::test]
async fn a_receiver_that_fails_is_tried_again_until_it_takes_it() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    let webhook = world.tell(&user, &receiver).await?;
    let created = world.create(&user, notification()).await?;
    let failed = world.delivery(&user, &webhook, has_failed).await;
    assert_eq!(failed.status(), DeliveryStatus::Pending);
    assert_eq!(failed.response_status, Some(500));
    assert_eq!(failed.error.as_deref(), Some("500 Internal Server Error was answered"));
    assert!(failed.next_attempt_date_time > failed.last_attempt_date_time);
    assert!(world.webhook(&user, &webhook.id).await?.failing_since.is_some());

    receiver.set(Behaviour::Answer(200));
    world.hurry().await?;
    let taken = world
        .delivery(&user, &webhook, |delivery| delivery.status() == DeliveryStatus::Delivered)
        .await;
    assert_eq!((taken.attempts, taken.error, taken.next_attempt_date_time), (2, None, None));
    let ids: Vec<_> =
        receiver.requests().iter().map(|sent| sent.header("webhook-id").to_owned()).collect();
    assert_eq!(ids, [created.id.clone(), created.id], "an attempt can be recognised");
    assert_eq!(world.webhook(&user, &webhook.id).await?.failing_since, None);
    Ok(())
}

#[tokio::test]
async fn hanging_receivers_of_some_customers_hold_up_no_other_customer() -> Result<()> {
    let world = World::new().await?;
    let hanging = Receiver::start(Behaviour::Hang).await?;
    for _ in 0..3 {
        let user = world.manager().await;
        for _ in 0..50 {
            world.tell(&user, &hanging).await?;
        }
        world.create(&user, notification()).await?;
    }
    // A share of the rounds each.
    hanging.receives(3 * 16).await;
    let user = world.manager().await;
    let healthy = Receiver::start(Behaviour::Answer(200)).await?;
    world.tell(&user, &healthy).await?;
    for number in 1..=5 {
        let begun = Instant::now();
        world.create(&user, numbered(number)).await?;
        healthy.receives(number).await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    assert_eq!(hanging.requests().len(), 3 * 16, "others wait for their customer's turn");
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_up_nobody_else() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let hanging = Receiver::start(Behaviour::Hang).await?;
    let healthy = Receiver::start(Behaviour::Answer(200)).await?;
    let stuck = world.tell(&user, &hanging).await?;
    world.tell(&user, &healthy).await?;
    let begun = Instant::now();
    for number in 0..40 {
        world.create(&user, numbered(number)).await?;
    }
    healthy.receives(40).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(hanging.requests().len() <= 16, "no more is sent to it at once");

    let unanswered = world.delivery(&user, &stuck, |_| true).await;
    assert_eq!((unanswered.status(), unanswered.attempts), (DeliveryStatus::Pending, 0));
    eventually("that there was no answer", || async {
        let deliveries = world.deliveries(&user, &stuck, None).await.expect("deliveries");
        deliveries.iter().find(|delivery| has_failed(delivery)).map(|delivery| {
            assert_eq!(delivery.error.as_deref(), Some("there was no answer within 15 s"));
        })
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_asks_for_time_is_given_up_to_an_hour() -> Result<()> {
    for (asked, given) in [(600, 600), (100_000, 3600)] {
        let world = World::new().await?;
        let user = world.manager().await;
        let receiver = Receiver::start(Behaviour::Rest(asked)).await?;
        let webhook = world.tell(&user, &receiver).await?;
        world.create(&user, notification()).await?;
        let failed = world.delivery(&user, &webhook, has_failed).await;
        let [last, next] = [failed.last_attempt_date_time, failed.next_attempt_date_time];
        let pause = next.expect("a next attempt").0 - last.expect("an attempt").0;
        assert_eq!(pause.num_seconds(), given);
    }
    Ok(())
}

#[tokio::test]
async fn a_redirect_is_not_followed() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let inside = Receiver::start(Behaviour::Answer(200)).await?;
    let receiver = Receiver::start(Behaviour::RedirectTo(inside.url.clone())).await?;
    let webhook = world.tell(&user, &receiver).await?;
    world.create(&user, notification()).await?;
    let failed = world.delivery(&user, &webhook, has_failed).await;
    assert_eq!(failed.error.as_deref(), Some("302 Found was answered; redirects are not followed"));
    assert!(inside.requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn what_is_inside_cannot_be_reached_by_any_name() -> Result<()> {
    let world = World::reaching("").await?;
    let user = world.manager().await;
    let inside = Receiver::start(Behaviour::Answer(200)).await?;
    for url in [&inside.url, "https://127.0.0.1/", "https://[::ffff:127.0.0.1]/"] {
        let refused = world.hook(&user, to(url)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{url}");
    }
    let named = inside.url.replace("http://127.0.0.1", "https://localhost");
    let webhook = world.hook(&user, to(&named)).await?;
    // Where it leads is seen only when it is looked up.
    let failed = world.delivery(&user, &webhook, has_failed).await;
    let error = failed.error.unwrap_or_default();
    assert!(error.ends_with("which webhooks may not reach here"), "{error}");
    assert!(inside.requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_is_gone_or_fails_for_days_is_sent_nothing_more() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let (gone, failing) = (
        Receiver::start(Behaviour::Answer(410)).await?,
        Receiver::start(Behaviour::Answer(503)).await?,
    );
    let [first, second] = [&gone, &failing].map(|receiver| world.tell(&user, receiver));
    let (first, second) = (first.await?, second.await?);
    world.create(&user, notification()).await?;
    world.delivery(&user, &second, has_failed).await;
    assert!(!world.webhook(&user, &second.id).await?.archived);
    let days = "update webhook set failing_since = now() - interval '6 days' where id = $1::uuid";
    sqlx::query(days).bind(&second.id).execute(&world.db).await?;
    world.hurry().await?;

    for webhook in [&first, &second] {
        eventually("a webhook in the archive", || async {
            world.webhook(&user, &webhook.id).await.expect("it").archived.then_some(())
        })
        .await;
    }
    let told = world.list_of(&user, Some("Webhook"), Some("Disabled")).await?;
    let mut told: Vec<_> = told.into_iter().map(|notification| notification.source_id).collect();
    told.sort_unstable();
    let mut both = [first.id, second.id.clone()];
    both.sort_unstable();
    assert_eq!(told, both);
    let before = failing.requests().len();
    world.hurry().await?;
    world.create(&user, numbered(2)).await?;
    assert_eq!(world.deliveries(&user, &second, None).await?.len(), 1, "no more is kept for it");
    let refused = redeliver_failed(&world, &user, &second).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);

    // Mended, it goes on with what it has missed.
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
async fn a_delivery_is_given_up_in_the_end_and_can_be_made_again() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(404)).await?;
    let webhook = world.tell(&user, &receiver).await?;
    let created = world.create(&user, notification()).await?;
    world.delivery(&user, &webhook, has_failed).await;
    let last = "update webhook_delivery set attempts = 8";
    sqlx::query(last).execute(&world.db).await?;
    world.hurry().await?;
    let failed = world
        .delivery(&user, &webhook, |delivery| delivery.status() == DeliveryStatus::Failed)
        .await;
    assert_eq!((failed.attempts, failed.next_attempt_date_time), (9, None));
    let failures = world.deliveries(&user, &webhook, Some(DeliveryStatus::Failed)).await?;
    assert_eq!(failures, [failed]);

    receiver.set(Behaviour::Answer(200));
    assert_eq!(redeliver_failed(&world, &user, &webhook).await?, 1);
    world.hurry().await?;
    let is_taken = |delivery: &Delivery| delivery.status() == DeliveryStatus::Delivered;
    world.delivery(&user, &webhook, is_taken).await;
    assert_eq!(redeliver_failed(&world, &user, &webhook).await?, 0);

    let before = receiver.requests().len();
    let request = RedeliverRequest { webhook_id: webhook.id.clone(), id: created.id };
    let again = world.webhooks.clone().redeliver(user.call(request)).await?.into_inner();
    assert_eq!((again.status(), again.attempts), (DeliveryStatus::Pending, 0));
    receiver.receives(before + 1).await;
    Ok(())
}
