//! Formats of messages, and when they are sent: batches, digests and quiet hours.

use anyhow::{Context, Result};
use assay_proto::notification::{
    Delivery, DeliveryStatus, NotificationInput, Webhook, WebhookDigest, WebhookFormat,
    WebhookInput,
};
use assay_testkit::{TestUser, eventually};
use serde_json::Value;
use sqlx::AssertSqlSafe;
use tonic::{Code, Status};

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{World, notification, numbered},
};

/// A name that is harmful where it is not literal.
const HOSTILE: &str = "<!channel> @everyone `x` **b** [a](https://evil.example)";

fn in_format(receiver: &Receiver, format: WebhookFormat) -> WebhookInput {
    let events = vec!["Client.TestCase.*".to_owned()];
    WebhookInput { format: format.into(), events, ..webhook_to(&receiver.url) }
}

impl World {
    pub(crate) async fn subscribe_with(
        &self,
        user: &TestUser,
        receiver: &Receiver,
        fields: WebhookInput,
    ) -> Result<Webhook, Status> {
        let events = vec!["Client.TestCase.*".to_owned()];
        self.add_webhook(user, WebhookInput { events, ..fields_of(receiver, fields) }).await
    }

    /// Returns when a delivery of a new notification is due, as the local time of a time zone.
    async fn due(&self, user: &TestUser, webhook: &Webhook, zone: &str) -> Result<String> {
        let created = self.create(user, notification()).await?;
        let due = "select to_char(next_attempt_at at time zone $3, 'YYYY-MM-DD HH24:MI') from webhook_delivery
                   where webhook_id = $1::uuid and notification_id = $2::uuid";
        let due = sqlx::query_scalar(due).bind(&webhook.id).bind(created.id).bind(zone);
        Ok(due.fetch_one(&self.db).await?)
    }

    pub(crate) async fn sql(&self, expression: &str) -> Result<String> {
        let value = sqlx::query_scalar(AssertSqlSafe(format!("select ({expression})::text")));
        Ok(value.fetch_one(&self.db).await?)
    }
}

fn fields_of(receiver: &Receiver, fields: WebhookInput) -> WebhookInput {
    WebhookInput { url: receiver.url.clone(), ..fields }
}

#[tokio::test]
async fn many_notifications_are_a_few_batches() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    let fields = WebhookInput { batch_size: 400, batch_window_in_sec: 2, ..Default::default() };
    let webhook = world.subscribe_with(&user, &receiver, fields).await?;
    world.add_history(&user, 1000).await?;
    // As an upload of a thousand tests does it.
    let deliveries = "insert into webhook_delivery (webhook_id, notification_id, next_attempt_at)
                      select $1::uuid, id, now() + interval '1 second' from notification
                      where customer_id = $2 and source = 'TestCase'";
    let deliveries = sqlx::query(deliveries).bind(&webhook.id).bind(user.customer);
    deliveries.execute(&world.db).await?;
    let last = world.create(&user, notification()).await?;
    receiver.receives(1).await;
    receiver.set(Behaviour::Answer(200));
    world.skip_delays().await?;
    let is_done = async || {
        let open = "select count(*) from webhook_delivery where delivered_at is null";
        let open: i64 = sqlx::query_scalar(open).fetch_one(&world.db).await.ok()?;
        (open == 0).then_some(())
    };
    eventually("all deliveries", is_done).await;
    let requests = receiver.requests();
    let mut ids = std::collections::HashSet::new();
    let (mut webhook_ids, mut sizes) = (Vec::new(), Vec::new());
    for request in &requests {
        assert_eq!(request.header("content-type"), "application/cloudevents-batch+json");
        let events: Vec<Value> = serde_json::from_slice(&request.body)?;
        assert!(events.iter().all(|event| event["specversion"] == "1.0"));
        ids.extend(events.iter().map(|event| event["id"].as_str().unwrap().to_owned()));
        webhook_ids.push(request.header("webhook-id").to_owned());
        sizes.push(events.len());
    }
    assert!(ids.len() == 1001 && ids.contains(&last.id), "{}", ids.len());
    assert!(sizes.iter().all(|size| *size <= 400) && sizes.len() <= 6, "{sizes:?}");
    webhook_ids.sort_unstable();
    webhook_ids.dedup();
    assert_eq!(webhook_ids.len(), requests.len(), "every request has an id of its own");
    let delivery = world.delivery(&user, &webhook, |_| true).await;
    assert_eq!(
        (delivery.status(), delivery.response_status),
        (DeliveryStatus::Delivered, Some(200))
    );
    Ok(())
}

#[tokio::test]
async fn a_chat_gets_messages_in_which_names_are_literal() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let hostile = NotificationInput { action: HOSTILE.to_owned(), ..numbered(1) };
    for (format, place) in [
        (WebhookFormat::Slack, "/blocks/0/elements/0/elements"),
        (WebhookFormat::MicrosoftTeams, "/attachments/0/content/body/0/inlines"),
        (WebhookFormat::Mattermost, "/text"),
        (WebhookFormat::Discord, "/embeds/0/description"),
    ] {
        let receiver = Receiver::start(Behaviour::Answer(200)).await?;
        let webhook = world.add_webhook(&user, in_format(&receiver, format)).await?;
        world.create(&user, hostile.clone()).await?;
        let request = receiver.first().await?;
        assert_eq!(request.header("content-type"), "application/json");
        let message: Value = serde_json::from_slice(&request.body)?;
        let shown = message.pointer(place).context("a message")?;
        // Elements of Slack and Teams are literal.
        if let Some(elements) = shown.as_array() {
            let texts: Vec<_> = elements.iter().map(|element| &element["text"]).collect();
            assert!(texts.contains(&&Value::from(HOSTILE)), "{texts:?}");
        } else {
            let code = format!("`{}`", HOSTILE.replace('`', "\u{2bc}"));
            assert!(shown.as_str().unwrap().contains(&code), "{shown}");
        }
        world.delete_webhook(&user, &webhook.id).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_digest_is_one_message() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(200)).await?;
    let digest = WebhookInput {
        format: WebhookFormat::Slack.into(),
        digest: WebhookDigest::Hourly.into(),
        ..WebhookInput::default()
    };
    let webhook = world.subscribe_with(&user, &receiver, digest).await?;
    let hour = world.sql("to_char(date_trunc('hour', now() at time zone 'UTC') + interval '1 hour', 'YYYY-MM-DD HH24:MI')").await?;
    assert_eq!(world.due(&user, &webhook, "UTC").await?, hour);
    for number in 0..2 {
        world.create(&user, numbered(number)).await?;
    }
    assert!(receiver.requests().is_empty());
    world.skip_delays().await?;
    let message: Value = serde_json::from_slice(&receiver.first().await?.body)?;
    assert_eq!(message["text"], "3 notifications");
    let is_done = |delivery: &Delivery| delivery.status() == DeliveryStatus::Delivered;
    world.delivery(&user, &webhook, is_done).await;
    assert_eq!(receiver.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn nothing_is_sent_in_quiet_hours_of_a_time_zone() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(200)).await?;
    let zone = "Pacific/Chatham";
    let local = |shift: &str| format!("to_char(now() at time zone '{zone}' {shift}, 'HH24:MI')");
    let quiet = |from: String, until: String| WebhookInput {
        quiet_from: Some(from),
        quiet_until: Some(until),
        time_zone: zone.to_owned(),
        ..WebhookInput::default()
    };
    // Quiet since an hour ago for two hours, which may include midnight.
    let (from, until) = (
        world.sql(&local("- interval '1 hour'")).await?,
        world.sql(&local("+ interval '1 hour'")).await?,
    );
    let webhook = world.subscribe_with(&user, &receiver, quiet(from, until)).await?;
    let end =
        format!("to_char(now() at time zone '{zone}' + interval '1 hour', 'YYYY-MM-DD HH24:MI')");
    let (before, due, after) =
        (world.sql(&end).await?, world.due(&user, &webhook, zone).await?, world.sql(&end).await?);
    // The minute may end meanwhile.
    let earliest = world
        .sql(&format!("to_char('{before}'::timestamp - interval '1 minute', 'YYYY-MM-DD HH24:MI')"))
        .await?;
    assert!(earliest <= due && due <= after, "{before} {due} {after}");
    assert!(receiver.requests().is_empty());

    // Quiet in other hours.
    let (from, until) = (
        world.sql(&local("+ interval '2 hours'")).await?,
        world.sql(&local("- interval '2 hours'")).await?,
    );
    world.subscribe_with(&user, &receiver, quiet(from, until)).await?;
    world.create(&user, notification()).await?;
    receiver.receives(1).await;

    for wrong in ["Europe/Atlantis", "local", "UTC+3"] {
        let fields = WebhookInput { time_zone: wrong.to_owned(), ..WebhookInput::default() };
        let refused = world.subscribe_with(&user, &receiver, fields).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{wrong}");
    }
    Ok(())
}

#[tokio::test]
async fn a_retry_takes_along_its_batch_but_nothing_that_waits_for_the_end_of_quiet_hours()
-> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(200)).await?;
    let fields = WebhookInput { batch_size: 10, batch_window_in_sec: 300, ..Default::default() };
    world.subscribe_with(&user, &receiver, fields).await?;
    let mut created = Vec::new();
    for number in 0..3 {
        created.push(world.create(&user, numbered(number)).await?.id);
    }
    let quiet =
        "update notification set created_at = now() - interval '1 hour' where id = $1::uuid";
    sqlx::query(quiet).bind(&created[0]).execute(&world.db).await?;
    let failed = "update webhook_delivery set attempts = 1, next_attempt_at = now()
                  where notification_id = $1::uuid";
    sqlx::query(failed).bind(&created[1]).execute(&world.db).await?;

    let request = receiver.first().await?;
    let events: Vec<Value> = serde_json::from_slice(&request.body)?;
    let sent: Vec<_> = events.iter().map(|event| &event["id"]).collect();
    assert_eq!(sent, created[1..].iter().collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn a_time_zone_that_the_database_has_lost_counts_as_utc() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(200)).await?;
    let digest = WebhookInput {
        format: WebhookFormat::Slack.into(),
        digest: WebhookDigest::Daily.into(),
        time_zone: "Pacific/Chatham".to_owned(),
        ..WebhookInput::default()
    };
    let webhook = world.subscribe_with(&user, &receiver, digest).await?;
    let lost = "update webhook set time_zone = 'Pacific/Atlantis'";
    sqlx::query(lost).execute(&world.db).await?;
    let due = world.due(&user, &webhook, "UTC").await?;
    assert!(due.ends_with(" 08:00"), "{due}");
    Ok(())
}
