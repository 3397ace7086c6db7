//! Deliveries to webhooks.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use assay_notification::prune;
use assay_proto::{
    Batch as _,
    notification::{
        Delivery, DeliveryStatus, ListDeliveriesRequest, Webhook, WebhookHeader, WebhookInput,
    },
};
use assay_testkit::{TestUser, eventually};
use futures::{TryStreamExt, future::try_join_all};
use tokio::sync::Semaphore;
use tonic::Status;

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{World, notification, numbered},
};

impl World {
    pub(crate) async fn deliveries(
        &self,
        user: &TestUser,
        webhook: &Webhook,
        status: Option<DeliveryStatus>,
    ) -> Result<Vec<Delivery>, Status> {
        let (webhook_id, status) = (webhook.id.clone(), status.map(Into::into));
        let request = ListDeliveriesRequest { webhook_id, status, page: None };
        let batches = self.webhooks.clone().list_deliveries(user.call(request)).await?;
        let batches: Vec<_> = batches.into_inner().try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
    }

    /// Waits until the latest delivery matches a condition, and returns it.
    pub(crate) async fn delivery(
        &self,
        user: &TestUser,
        webhook: &Webhook,
        condition: impl Fn(&Delivery) -> bool,
    ) -> Delivery {
        eventually("a delivery", || async {
            let deliveries = self.deliveries(user, webhook, None).await.expect("deliveries");
            deliveries.into_iter().next().filter(&condition)
        })
        .await
    }

    /// Ends all delays between attempts.
    pub(crate) async fn skip_delays(&self) -> Result<()> {
        for statement in [
            "update webhook_delivery set next_attempt_at = now() where next_attempt_at is not null",
            "update webhook set rests_until = now()",
        ] {
            sqlx::query(statement).execute(&self.db).await?;
        }
        Ok(())
    }

    /// Makes all deliveries due that wait for a batch.
    async fn end_windows(&self) -> Result<()> {
        let due = "update webhook_delivery set next_attempt_at = now()";
        sqlx::query(due).execute(&self.db).await?;
        Ok(())
    }

    /// Adds a webhook for notifications about test cases, and not for those about webhooks.
    pub(crate) async fn subscribe(
        &self,
        user: &TestUser,
        receiver: &Receiver,
    ) -> Result<Webhook, Status> {
        let events = vec!["TestCase.*".to_owned(), "Client.TestCase.*".to_owned()];
        self.add_webhook(user, WebhookInput { events, ..webhook_to(&receiver.url) }).await
    }
}

#[tokio::test]
async fn a_notification_is_delivered_immediately_and_once_as_a_signed_event() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(204)).await?;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
    let events = vec!["client.testcase.created".to_owned(), "*.Deleted".to_owned()];
    let webhook = world
        .add_webhook(&user, WebhookInput { events, secret, ..webhook_to(&receiver.url) })
        .await?;
    let begun = Instant::now();
    world.create(&user, numbered(1)).await?;
    let created = world.create(&user, notification()).await?;
    world.create(&world.user().await, notification()).await?;

    let request = receiver.first().await?;
    assert!(begun.elapsed() < Duration::from_secs(5), "not delivered immediately");
    let published = &world.published().await?[2];
    assert_eq!(request.body, published.payload, "the same event as on NATS");
    assert_eq!(request.header("content-type"), "application/cloudevents+json");
    assert_eq!(request.header("webhook-id"), created.id);
    assert!(request.header("user-agent").starts_with("Assay/"));
    assert!(request.header("webhook-timestamp").parse::<u64>()? > 1_700_000_000);
    let signature = request.header("webhook-signature");
    assert!(signature.starts_with("v1,") && !signature.contains(' '), "{signature}");
    let is_delivered = |delivery: &Delivery| delivery.status() == DeliveryStatus::Delivered;
    let delivery = world.delivery(&user, &webhook, is_delivered).await;
    assert_eq!((delivery.id, delivery.action.as_str()), (created.id, "Created"));
    assert_eq!((delivery.attempts, delivery.response_status), (1, Some(204)));
    assert_eq!(world.deliveries(&user, &webhook, None).await?.len(), 1);
    assert_eq!(receiver.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn after_a_rotation_both_secrets_sign() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(200)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    world.change(&user, &webhook, &["Secret"], WebhookInput::default()).await?;
    world.create(&user, notification()).await?;
    let request = receiver.first().await?;
    let signatures: Vec<_> = request.header("webhook-signature").split(' ').collect();
    assert_eq!(signatures.len(), 2);
    assert!(signatures.iter().all(|signature| signature.starts_with("v1,")));
    Ok(())
}

#[tokio::test]
async fn two_replicas_send_each_delivery_once() -> Result<()> {
    let world = World::new().await?;
    world.second_replica()?;
    let user = world.manager().await;
    let receivers = try_join_all((0..4).map(|_| Receiver::start(Behaviour::Answer(200)))).await?;
    for receiver in &receivers {
        world.subscribe(&user, receiver).await?;
    }
    try_join_all((0..100).map(|number| world.create(&user, numbered(number)))).await?;
    for receiver in &receivers {
        let requests = receiver.receives(100).await;
        let mut ids: Vec<_> = requests.iter().map(|sent| sent.header("webhook-id")).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((requests.len(), ids.len()), (100, 100));
    }
    Ok(())
}

#[tokio::test]
async fn deliveries_are_removed_with_their_webhook_and_their_notification() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(200)).await?;
    let (kept, deleted) =
        (world.subscribe(&user, &receiver).await?, world.subscribe(&user, &receiver).await?);
    for number in 0..3 {
        world.create(&user, numbered(number)).await?;
    }
    receiver.receives(6).await;
    world.delete_webhook(&user, &deleted.id).await?;
    let old = "update notification set created_at = now() - interval '8 days'
               where action = 'Done0'";
    sqlx::query(old).execute(&world.db).await?;
    // The outcome of a delivery may still be recorded: it is removed the next time.
    let only_those_of_the_other = async || {
        prune(&world.db, Duration::from_hours(24 * 7)).await.ok()?;
        let count = sqlx::query_scalar("select count(*) from webhook_delivery");
        let count: i64 = count.fetch_one(&world.db).await.ok()?;
        (count == 2).then_some(())
    };
    eventually("the removal of deliveries", only_those_of_the_other).await;
    assert_eq!(world.deliveries(&user, &kept, None).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_round_ends_with_the_request_in_which_the_program_stops() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let mut receivers = Vec::new();
    // Batches, and single deliveries of which more are waiting than are sent at once.
    for (batch_size, count) in [(2, 6), (1, 40)] {
        let permits = Arc::new(Semaphore::new(0));
        let receiver = Receiver::start(Behaviour::Late(permits.clone(), 204)).await?;
        let events = vec![format!("Client.TestCase.Done{batch_size}")];
        let (url, batch_window_in_sec) = (receiver.url.clone(), 1);
        let webhook =
            WebhookInput { url, events, batch_size, batch_window_in_sec, ..Default::default() };
        world.add_webhook(&user, webhook).await?;
        // All deliveries are there when the round begins.
        let later = "update webhook set rests_until = now() + interval '1 hour'";
        sqlx::query(later).execute(&world.db).await?;
        let of_webhook = || numbered(usize::try_from(batch_size).unwrap());
        try_join_all((0..count).map(|_| world.create(&user, of_webhook()))).await?;
        receivers.push((receiver, permits));
    }
    world.skip_delays().await?;
    receivers[0].0.receives(1).await;
    receivers[1].0.receives(16).await;
    world.stop();
    for (_, permits) in &receivers {
        permits.add_permits(100);
    }
    world.finish().await?;
    let requests: Vec<_> = receivers.iter().map(|(one, _)| one.requests().len()).collect();
    assert_eq!(requests, [1, 16]);
    Ok(())
}

#[tokio::test]
async fn a_full_batch_ends_its_round_and_the_failure_of_its_webhook() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    let webhook = world.add_webhook(&user, of_two(&receiver)).await?;
    for number in 0..2 {
        world.create(&user, numbered(number)).await?;
    }
    world.end_windows().await?;
    world.delivery(&user, &webhook, |delivery| delivery.attempts == 1).await;
    receiver.set(Behaviour::Answer(200));
    world.skip_delays().await?;
    receiver.receives(2).await;
    // Otherwise the next batch waits until the claim expires.
    eventually("the end of the round", async || {
        let ended = "select claim is null and failing_since is null from webhook";
        let ended: bool = sqlx::query_scalar(ended).fetch_one(&world.db).await.ok()?;
        ended.then_some(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn batches_after_a_change_of_their_webhook_follow_the_change() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let permits = Arc::new(Semaphore::new(0));
    let receiver = Receiver::start(Behaviour::Late(permits.clone(), 204)).await?;
    let with_key = |value: &str| {
        let key = WebhookHeader { name: "X-Key".to_owned(), value: value.to_owned() };
        WebhookInput { headers: vec![key], ..of_two(&receiver) }
    };
    let webhook = world.add_webhook(&user, with_key("old")).await?;
    for number in 0..4 {
        world.create(&user, numbered(number)).await?;
    }
    world.end_windows().await?;
    receiver.receives(1).await;
    world.change(&user, &webhook, &["Headers"], with_key("new")).await?;
    permits.add_permits(10);
    let requests = receiver.receives(2).await;
    let keys: Vec<_> = requests.iter().map(|request| request.header("x-key")).collect();
    assert_eq!(keys, ["old", "new"]);
    Ok(())
}

#[tokio::test]
async fn a_batch_that_finds_no_place_is_claimed_again_at_once() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Hang).await?;
    for _ in 0..7 {
        world.add_webhook(&user, of_two(&receiver)).await?;
    }
    world.create(&user, notification()).await?;
    world.end_windows().await?;
    // A customer has six of the eight places.
    receiver.receives(6).await;
    let claims = async || {
        let claims = sqlx::query_scalar("select claim from webhook where claim is not null");
        claims.fetch_all(&world.db).await.map(|claims: Vec<uuid::Uuid>| BTreeSet::from_iter(claims))
    };
    let (first, begun) = (claims().await?, Instant::now());
    assert_eq!(first.len(), 7);
    eventually("another claim", async || {
        let new = claims().await.ok()?;
        (!new.is_subset(&first)).then_some(())
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    Ok(())
}

/// A webhook that gets batches of two, long after they have happened.
fn of_two(receiver: &Receiver) -> WebhookInput {
    let (url, events) = (receiver.url.clone(), vec!["Client.TestCase.*".to_owned()]);
    WebhookInput { url, events, batch_size: 2, batch_window_in_sec: 300, ..Default::default() }
}
