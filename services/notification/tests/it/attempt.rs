//! The log of attempts, tests of webhooks and their further headers.

use anyhow::{Context, Result};
use assay_notification::{prune, reseal};
use assay_proto::{
    Batch as _,
    notification::{
        Delivery, DeliveryAttempt, DeliveryStatus, ListDeliveryAttemptsRequest, TestWebhookRequest,
        Webhook, WebhookHeader, WebhookInput,
    },
};
use assay_testkit::{TestUser, eventually};
use futures::{TryStreamExt, future::join_all};
use secrecy::ExposeSecret;
use tokio::time::Duration;
use tonic::{Code, Status};

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{World, notification, numbered},
};

const MASK: &str = "********";
const SECRET: &str = "Bearer 2b7e151628aed2a6abf71589";

impl World {
    async fn attempts(
        &self,
        user: &TestUser,
        webhook: &Webhook,
        delivery: Option<&str>,
    ) -> Result<Vec<DeliveryAttempt>, Status> {
        let (webhook_id, delivery_id) = (webhook.id.clone(), delivery.map(ToOwned::to_owned));
        let request = ListDeliveryAttemptsRequest { webhook_id, delivery_id, page: None };
        let batches = self.webhooks.clone().list_delivery_attempts(user.call(request)).await?;
        let batches: Vec<_> = batches.into_inner().try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
    }

    async fn test(&self, user: &TestUser, webhook: &Webhook) -> Result<DeliveryAttempt, Status> {
        let request = TestWebhookRequest { id: webhook.id.clone() };
        Ok(self.webhooks.clone().test_webhook(user.call(request)).await?.into_inner())
    }
}

fn header(name: &str, value: &str) -> WebhookHeader {
    WebhookHeader { name: name.to_owned(), value: value.to_owned() }
}

fn value<'a>(headers: &'a [WebhookHeader], name: &str) -> Option<&'a str> {
    headers.iter().find(|header| header.name == name).map(|header| header.value.as_str())
}

#[tokio::test]
async fn a_test_is_sent_once_and_its_attempt_is_returned_and_logged() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(202)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    let archived = WebhookInput { archived: true, ..WebhookInput::default() };
    let webhook = world.change(&user, &webhook, &["Archived"], archived).await?;
    let passed = world.test(&user, &webhook).await?;
    let sent = receiver.first().await?;
    let event: serde_json::Value = serde_json::from_slice(&sent.body)?;
    assert_eq!(event["type"], "io.assay.notifications.webhook.tested.v1");
    assert_eq!(
        (&event["data"]["SourceId"], &event["data"]["Origin"]),
        (&webhook.id.clone().into(), &"Assay".into())
    );
    assert_eq!(sent.header("webhook-id"), event["id"]);
    assert_eq!(passed.request_body.as_bytes(), sent.body);
    assert_eq!(
        value(&passed.request_headers, "webhook-signature"),
        Some(sent.header("webhook-signature"))
    );
    assert_eq!((passed.delivery_id.as_deref(), passed.response_status), (None, Some(202)));
    assert_eq!(passed.error, None);

    receiver.set(Behaviour::Answer(500));
    let failed = world.test(&user, &webhook).await?;
    assert_eq!(failed.error.as_deref(), Some("the receiver answered 500 Internal Server Error"));
    assert_eq!(world.attempts(&user, &webhook, None).await?, [failed, passed]);
    assert_eq!(world.webhook(&user, &webhook.id).await?.failing_since, None);
    assert_eq!(receiver.requests().len(), 2);
    assert_eq!(world.list_of(&user, Some("Webhook"), Some("Tested")).await?, []);

    drop(receiver);
    let unreachable = world.test(&user, &webhook).await?;
    assert_eq!((unreachable.response_status, unreachable.response_body), (None, None));
    assert!(unreachable.error.is_some());

    let (stranger, reader) = (world.manager().await, world.user().await);
    assert_eq!(world.test(&stranger, &webhook).await.unwrap_err().code(), Code::NotFound);
    let hidden = world.attempts(&stranger, &webhook, None).await.unwrap_err();
    assert_eq!(hidden.code(), Code::NotFound);
    assert_eq!(world.test(&reader, &webhook).await.unwrap_err().code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn a_test_of_a_hanging_receiver_ends_after_ten_seconds() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Hang).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    let attempt = world.test(&user, &webhook).await?;
    assert_eq!(attempt.error.as_deref(), Some("the receiver did not answer within 10 s"));
    assert!((10.0..14.0).contains(&attempt.duration_in_sec), "{}", attempt.duration_in_sec);
    Ok(())
}

#[tokio::test]
async fn a_test_that_finds_no_place_is_refused_before_its_call_times_out() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Hang).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    // A customer has twelve of the sixteen places.
    let running = join_all((0..12).map(|_| world.test(&user, &webhook)));
    let another = async {
        receiver.receives(12).await;
        world.test(&user, &webhook).await
    };
    let refused = tokio::select! {
        answered = another => answered.unwrap_err(),
        _ = running => panic!("it has waited for the others"),
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    Ok(())
}

#[tokio::test]
async fn secret_headers_are_sent_and_shown_nowhere() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Echo).await?;
    let headers = vec![header("Authorization", SECRET), header("X-Team", "rocket")];
    let input = WebhookInput {
        headers,
        events: vec!["Client.TestCase.*".into()],
        ..webhook_to(&receiver.url)
    };
    let webhook = world.add_webhook(&user, input).await?;
    let masked = [header("Authorization", MASK), header("X-Team", MASK)];
    assert_eq!(webhook.headers, masked);
    assert_eq!(world.webhook(&user, &webhook.id).await?.headers, masked);

    let created = world.create(&user, notification()).await?;
    let has_failed = |delivery: &Delivery| delivery.response_status == Some(403);
    world.delivery(&user, &webhook, has_failed).await;
    let sent = receiver.first().await?;
    assert_eq!((sent.header("authorization"), sent.header("x-team")), (SECRET, "rocket"));
    let attempts = world.attempts(&user, &webhook, Some(&created.id)).await?;
    let attempt = attempts.first().context("an attempt")?;
    assert_eq!(attempt.delivery_id.as_deref(), Some(created.id.as_str()));
    assert_eq!(value(&attempt.request_headers, "authorization"), Some(MASK));
    assert_eq!(value(&attempt.response_headers, "set-cookie"), Some(MASK));
    assert_eq!(attempt.response_body.as_deref(), Some(MASK));
    let stored: Vec<String> = sqlx::query_scalar(
        "select row_to_json(w)::text from webhook w union all select row_to_json(a)::text from webhook_attempt a
         union all select row_to_json(d)::text from webhook_delivery d union all select data::text from outbox",
    )
    .fetch_all(&world.db)
    .await?;
    assert!(stored.iter().all(|row| !row.contains("2b7e1516")), "{stored:#?}");
    Ok(())
}

#[tokio::test]
async fn masked_headers_are_kept_unless_the_url_leads_elsewhere() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let (receiver, other) = (
        Receiver::start(Behaviour::Answer(200)).await?,
        Receiver::start(Behaviour::Answer(200)).await?,
    );
    let unmatched = vec!["Client.Nothing.Happens".to_owned()];
    let headers = vec![header("Authorization", SECRET)];
    let input = WebhookInput { headers, events: unmatched, ..webhook_to(&receiver.url) };
    let webhook = world.add_webhook(&user, input).await?;
    let path = format!("{}?team=1", receiver.url);
    let webhook = world.change(&user, &webhook, &["Url"], webhook_to(&path)).await?;
    let both = vec![header("authorization", MASK), header("X-Key", "1")];
    let both = WebhookInput { headers: both, ..WebhookInput::default() };
    let webhook = world.change(&user, &webhook, &["Headers"], both).await?;
    world.test(&user, &webhook).await?;
    let sent = receiver.first().await?;
    assert_eq!((sent.header("authorization"), sent.header("x-key")), (SECRET, "1"));

    // Otherwise, a manager could have the secret sent to a receiver of their own.
    let elsewhere =
        world.change(&user, &webhook, &["Url"], webhook_to(&other.url)).await.unwrap_err();
    assert_eq!(elsewhere.code(), Code::InvalidArgument);
    let input = WebhookInput { headers: vec![header("X-Key", "2")], ..webhook_to(&other.url) };
    let webhook = world.change(&user, &webhook, &["Url", "Headers"], input).await?;
    world.test(&user, &webhook).await?;
    let sent = other.first().await?;
    assert_eq!((sent.header("authorization"), sent.header("x-key")), ("", "2"));

    let unknown = WebhookInput { headers: vec![header("X-New", MASK)], ..WebhookInput::default() };
    let refused = world.change(&user, &webhook, &["Headers"], unknown).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);

    // Headers are encrypted again with another key, and erased with their webhook.
    let mut seal = world.seal.clone();
    let newer = assay_auth::new_seal_key("2")?;
    seal.encryption_keys =
        [newer.expose_secret(), seal.encryption_keys.expose_secret()].join(",").into();
    assert_eq!(reseal(&world.database_url, &seal).await?, 1);
    let sealed = async || -> Result<Option<String>> {
        Ok(sqlx::query_scalar("select sealed_headers from webhook").fetch_one(&world.db).await?)
    };
    assert!(sealed().await?.context("headers")?.starts_with("2."));
    world.delete_webhook(&user, &webhook.id).await?;
    assert_eq!(sealed().await?, None);
    let log: i64 =
        sqlx::query_scalar("select count(*) from webhook_attempt").fetch_one(&world.db).await?;
    assert_eq!(log, 0);
    Ok(())
}

#[tokio::test]
async fn the_log_keeps_failures_beside_many_successes_and_expires() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    world.test(&user, &webhook).await?;
    receiver.set(Behaviour::Answer(200));
    for number in 0..150 {
        world.create(&user, numbered(number)).await?;
    }
    eventually("all deliveries", || async {
        let delivered = world.deliveries(&user, &webhook, Some(DeliveryStatus::Delivered)).await;
        (delivered.ok()?.len() == 150).then_some(())
    })
    .await;
    let attempts = world.attempts(&user, &webhook, None).await?;
    let (failed, passed): (Vec<_>, Vec<_>) =
        attempts.into_iter().partition(|attempt| attempt.error.is_some());
    assert_eq!((failed.len(), passed.len()), (1, 20));

    let old =
        "update webhook_attempt set attempted_at = now() - interval '8 days' where error is null";
    sqlx::query(old).execute(&world.db).await?;
    prune(&world.db, Duration::from_hours(24 * 365)).await?;
    assert_eq!(world.attempts(&user, &webhook, None).await?, failed);
    Ok(())
}

#[tokio::test]
async fn no_delivery_to_a_receiver_that_is_gone_waits_for_an_attempt() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    for number in 0..3 {
        world.create(&user, numbered(number)).await?;
    }
    eventually("a failure", || async {
        let deliveries = world.deliveries(&user, &webhook, None).await.ok()?;
        (deliveries.len() == 3 && deliveries.iter().any(|one| one.error.is_some())).then_some(())
    })
    .await;
    // The other deliveries wait until the receiver has rested.
    let now: i64 =
        sqlx::query_scalar("select extract(epoch from now())::bigint").fetch_one(&world.db).await?;
    for waiting in world.deliveries(&user, &webhook, Some(DeliveryStatus::Pending)).await? {
        let next = waiting.next_attempt_date_time.context("a next attempt")?;
        assert!(next.0.timestamp() + 5 >= now, "{next:?}");
    }
    receiver.set(Behaviour::Answer(410));
    world.skip_delays().await?;
    eventually("an archived webhook", || async {
        world.webhook(&user, &webhook.id).await.ok()?.archived.then_some(())
    })
    .await;
    let deliveries = world.deliveries(&user, &webhook, None).await?;
    assert!(deliveries.iter().all(|one| one.next_attempt_date_time.is_none()), "{deliveries:?}");
    let gone: Vec<_> = deliveries.iter().filter(|one| one.response_status == Some(410)).collect();
    assert!(!gone.is_empty() && gone.iter().all(|one| one.status() == DeliveryStatus::Failed));
    Ok(())
}
