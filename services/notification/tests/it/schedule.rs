//! Times at which messages are sent: not in quiet hours, and not before the receiver has asked for it.

use anyhow::{Context, Result};
use assay_proto::notification::{DeliveryStatus, WebhookDigest, WebhookFormat, WebhookInput};
use assay_testkit::{TestUser, eventually};
use serde_json::Value;

use crate::{
    receiver::{Behaviour, Receiver},
    world::{World, notification, numbered},
};

impl World {
    /// Makes all deliveries due for their first attempt.
    async fn make_due(&self) -> Result<()> {
        let due = "update webhook_delivery set next_attempt_at = now() where attempts = 0";
        sqlx::query(due).execute(&self.db).await?;
        Ok(())
    }
}

/// Returns quiet hours that began an hour ago and end in an hour.
async fn quiet_now(world: &World) -> Result<WebhookInput> {
    let local = |shift: &str| format!("to_char(now() at time zone 'UTC' {shift}, 'HH24:MI')");
    let from = world.sql(&local("- interval '1 hour'")).await?;
    let until = world.sql(&local("+ interval '1 hour'")).await?;
    Ok(WebhookInput { quiet_from: Some(from), quiet_until: Some(until), ..WebhookInput::default() })
}

/// Waits until the due deliveries of all webhooks of a user have been looked for.
async fn look_for_due(world: &World, user: &TestUser) -> Result<()> {
    let receiver = Receiver::start(Behaviour::Answer(200)).await?;
    let webhook = world.subscribe(user, &receiver).await?;
    world.create(user, notification()).await?;
    receiver.receives(1).await;
    world.delete_webhook(user, &webhook.id).await?;
    Ok(())
}

#[tokio::test]
async fn only_retries_are_sent_in_quiet_hours_whenever_deliveries_are_due() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    for batch_size in [1, 10] {
        let receiver = Receiver::start(Behaviour::Answer(200)).await?;
        let fields = WebhookInput { batch_size, ..quiet_now(&world).await? };
        let webhook = world.subscribe_with(&user, &receiver, fields).await?;
        let retried = world.create(&user, numbered(1)).await?;
        let first = world.create(&user, numbered(2)).await?;
        // As after an outage that has lasted into the quiet hours.
        let due = "update webhook_delivery
                   set next_attempt_at = now(), attempts = (notification_id = $2::uuid)::int,
                       last_attempt_at = case when notification_id = $2::uuid then now() end
                   where webhook_id = $1::uuid";
        sqlx::query(due).bind(&webhook.id).bind(&retried.id).execute(&world.db).await?;
        eventually("the retry", async || {
            let delivered = world.deliveries(&user, &webhook, Some(DeliveryStatus::Delivered));
            (delivered.await.ok()?.first()?.id == retried.id).then_some(())
        })
        .await;
        look_for_due(&world, &user).await?;
        let is_free = "select claim is null and taken = 0 from webhook where id = $1::uuid";
        let is_free: bool =
            sqlx::query_scalar(is_free).bind(&webhook.id).fetch_one(&world.db).await?;
        assert!(is_free, "no round looks for deliveries that wait");
        assert_eq!(receiver.requests().len(), 1);
        let waiting = world.deliveries(&user, &webhook, Some(DeliveryStatus::Pending)).await?;
        let waiting = waiting.into_iter().find(|one| one.id == first.id).context("it waits")?;
        let next = waiting.next_attempt_date_time.context("a next attempt")?.0.timestamp();
        let now: i64 = world.sql("extract(epoch from now())::bigint").await?.parse()?;
        assert!((now + 1800..=now + 3600).contains(&next), "{next} is not the end");

        let fields = ["QuietFrom", "QuietUntil"];
        world.change(&user, &webhook, &fields, WebhookInput::default()).await?;
        let requests = receiver.receives(2).await;
        let body: Value = serde_json::from_slice(&requests[1].body)?;
        let event = if batch_size > 1 { &body[0] } else { &body };
        assert_eq!(event["id"], first.id);
        world.delete_webhook(&user, &webhook.id).await?;
    }
    Ok(())
}

#[tokio::test]
async fn quiet_hours_hold_up_a_digest_that_was_planned_before() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(200)).await?;
    let digest = WebhookInput {
        format: WebhookFormat::Slack.into(),
        digest: WebhookDigest::Hourly.into(),
        ..WebhookInput::default()
    };
    let webhook = world.subscribe_with(&user, &receiver, digest).await?;
    world.create(&user, notification()).await?;
    let fields = ["QuietFrom", "QuietUntil"];
    let webhook = world.change(&user, &webhook, &fields, quiet_now(&world).await?).await?;
    world.make_due().await?;
    look_for_due(&world, &user).await?;
    assert!(receiver.requests().is_empty());

    world.change(&user, &webhook, &fields, WebhookInput::default()).await?;
    receiver.receives(1).await;
    Ok(())
}

#[tokio::test]
async fn a_batch_is_retried_no_earlier_than_the_receiver_has_asked_for() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::RetryAfter(120)).await?;
    let fields = WebhookInput { batch_size: 10, batch_window_in_sec: 300, ..Default::default() };
    let webhook = world.subscribe_with(&user, &receiver, fields).await?;
    for number in 0..2 {
        world.create(&user, numbered(number)).await?;
    }
    world.make_due().await?;
    world.delivery(&user, &webhook, |one| one.attempts == 1).await;
    receiver.set(Behaviour::Answer(200));
    let another = world.create(&user, notification()).await?;
    sqlx::query("update webhook set rests_until = now()").execute(&world.db).await?;
    world.make_due().await?;
    let requests = receiver.receives(2).await;
    let events: Vec<Value> = serde_json::from_slice(&requests[1].body)?;
    let sent: Vec<_> = events.iter().map(|event| &event["id"]).collect();
    assert_eq!(sent, [&another.id]);
    Ok(())
}
