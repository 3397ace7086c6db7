//! Deletion of customers.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::Result;
use assay_events::{Event, Stream, SubscriberFilter, Subscribers};
use assay_notification::prune;
use assay_proto::{
    CustomerId, NotificationId,
    events::RecordChanged,
    notification::{WatchNotificationsRequest, WebhookInput},
};
use assay_servers::{DataDir, Nats};
use assay_testkit::{TestUser, eventually, test_dir};
use async_nats::{ConnectOptions, jetstream};
use tokio::time::timeout;
use tonic::Code;

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{OtherService, World, notification, numbered},
};

impl World {
    /// Publishes the deletion of a user's customer.
    async fn delete_customer(&self, identity: &OtherService, user: &TestUser) -> Result<()> {
        let id = user.customer.to_string();
        let change = RecordChanged {
            source: "Customer".to_owned(),
            source_id: id.clone(),
            target: "Customer".to_owned(),
            target_id: Some(id.clone()),
            action: "Deleted".to_owned(),
            ..RecordChanged::default()
        };
        identity.publish(&Event::untyped(user.customer, id, "customer", "deleted", &change)?).await
    }

    async fn wait_until_deleted(&self, user: &TestUser) {
        eventually("not found", || async {
            let refused = self.list(user).await.err()?;
            (refused.code() == Code::NotFound).then_some(())
        })
        .await;
    }

    async fn count(&self, statement: &'static str, user: &TestUser) -> Result<i64> {
        Ok(sqlx::query_scalar(statement).bind(user.customer).fetch_one(&self.db).await?)
    }
}

#[tokio::test]
async fn deleting_a_customer_ends_its_webhooks_and_streams_and_rejects_its_requests() -> Result<()>
{
    let world = World::new().await?;
    let (user, other) = (world.manager().await, world.manager().await);
    let identity = world.service("identity").await?;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    world.add_webhook(&user, webhook_to(&receiver.url)).await?;
    let kept = Receiver::start(Behaviour::Answer(200)).await?;
    let events = vec!["Client.TestCase.*".to_owned()];
    world.add_webhook(&other, WebhookInput { events, ..webhook_to(&kept.url) }).await?;
    world.create(&user, notification()).await?;
    receiver.receives(1).await;
    let request = WatchNotificationsRequest::default();
    let mut watched =
        world.client.clone().watch_notifications(user.call(request)).await?.into_inner();

    let begun = Instant::now();
    world.delete_customer(&identity, &user).await?;
    world.wait_until_deleted(&user).await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let ended = async { while watched.message().await.is_ok_and(|item| item.is_some()) {} };
    timeout(Duration::from_secs(10), ended).await?;

    let refusals = [
        world.create(&user, notification()).await.err(),
        world.delete(&user, "0199a0de-0000-7000-8000-000000000000").await.err(),
        world.add_webhook(&user, webhook_to(&receiver.url)).await.err(),
    ];
    for refused in refusals {
        assert_eq!(refused.expect("a refusal").code(), Code::NotFound);
    }
    let secrets = "select count(*) from webhook
                   where customer_id = $1 and (secret <> '' or deleted_at is null)";
    assert_eq!(world.count(secrets, &user).await?, 0);
    // Late events of other services are dropped.
    identity
        .publish(&Event::untyped(user.customer, "1", "user", "created", &RecordChanged::default())?)
        .await?;
    let sent = receiver.requests().len();
    world.skip_delays().await?;
    world.create(&other, notification()).await?;
    kept.receives(1).await;
    assert_eq!(
        receiver.requests().len(),
        sent,
        "nothing is sent to a webhook of a deleted customer"
    );
    Ok(())
}

#[tokio::test]
async fn purging_a_deleted_customer_removes_all_its_rows_in_batches() -> Result<()> {
    let world = World::new().await?;
    let (user, other) = (world.manager().await, world.manager().await);
    let identity = world.service("identity").await?;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    world.add_webhook(&user, webhook_to(&receiver.url)).await?;
    let removed = world.create(&user, numbered(1)).await?;
    world.delete(&user, &removed.id).await?;
    world.create(&user, numbered(2)).await?;
    world.add_history(&user, 5000).await?;
    let kept = world.create(&other, notification()).await?;
    world.delete_customer(&identity, &user).await?;
    world.wait_until_deleted(&user).await;

    prune(&world.db, Duration::from_hours(24)).await?;
    for remaining in [
        "select count(*) from notification where customer_id = $1",
        "select count(*) from webhook where customer_id = $1",
        "select count(*) from deleted_customer where customer_id = $1 and purged_at is null",
    ] {
        assert_eq!(world.count(remaining, &user).await?, 0, "{remaining}");
    }
    assert_eq!(world.list(&other).await?, [kept]);
    Ok(())
}

#[tokio::test]
async fn deleting_a_customer_removes_its_subscribers() -> Result<()> {
    let world = World::new().await?;
    let (user, other) = (world.user().await, world.user().await);
    for user in [&user, &other] {
        world.create(user, notification()).await?;
    }
    world.published().await?;
    let nats = world.nats_client();
    let subscribers = Subscribers::of(Stream::of("notifications"), nats.clone());
    let timeout = Duration::from_secs(30);
    let of = |user: &TestUser| SubscriberFilter {
        customer: Some(user.customer.to_string()),
        ..SubscriberFilter::default()
    };
    subscribers.add("own", &of(&user), 1, timeout).await?;
    subscribers.add("others", &of(&other), 1, timeout).await?;
    subscribers.add("all", &SubscriberFilter::default(), 1, timeout).await?;

    assert_eq!(subscribers.remove_customers(&[user.customer]).await?, [user.customer]);
    let remaining: Vec<_> = subscribers
        .list()
        .await?
        .into_iter()
        .map(|subscriber| (subscriber.name, subscriber.backlog))
        .collect();
    assert_eq!(remaining, [("all".to_owned(), 2), ("others".to_owned(), 1)]);
    Ok(())
}

/// A configuration of NATS in which one user may not remove one consumer.
const STUCK: &str = r#"authorization {
  users = [
    { user: operator, password: operator }
    { user: service, password: service,
      permissions: { publish: { deny: "$JS.API.CONSUMER.DELETE.*.stuck" } } }
  ]
}
"#;

#[tokio::test]
async fn a_subscriber_that_cannot_be_removed_does_not_keep_those_of_other_customers() -> Result<()>
{
    let data = DataDir::lock(test_dir()?.join(format!("notification-{}", NotificationId::new())))?;
    let config = data.path().join("nats.conf");
    fs::write(&config, STUCK)?;
    let server = Nats::start_with(&data, &config, &[]).await?;
    let user =
        |name: &str| ConnectOptions::new().user_and_password(name.to_owned(), name.to_owned());
    let operator = user("operator").connect(server.url()).await?;
    let service = user("service").connect(server.url()).await?;
    let notifications = Stream::of("notifications");
    let stream = jetstream::stream::Config {
        name: notifications.name(),
        subjects: vec![notifications.subjects()],
        ..Default::default()
    };
    jetstream::new(operator.clone()).create_stream(stream).await?;
    let customers = [CustomerId::new(), CustomerId::new()];
    let subscribers = Subscribers::of(notifications, operator);
    for (name, customer) in ["stuck", "usual"].into_iter().zip(customers) {
        let customer = Some(customer.to_string());
        let filter = SubscriberFilter { customer, ..SubscriberFilter::default() };
        subscribers.add(name, &filter, 1, Duration::from_secs(30)).await?;
    }

    let removed = Subscribers::of(notifications, service).remove_customers(&customers).await?;
    assert_eq!(removed, [customers[1]]);
    let left = subscribers.list().await?;
    assert_eq!(left.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["stuck"]);
    Ok(())
}
