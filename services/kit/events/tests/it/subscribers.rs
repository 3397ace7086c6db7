//! Subscribers of other systems.

use std::time::Duration;

use assay_events::{SubscriberFilter, Subscribers};
use async_nats::jetstream::consumer::PullConsumer;
use futures::StreamExt as _;

use crate::world::{CATALOG, World};

const ACK_TIMEOUT: Duration = Duration::from_secs(1);

async fn world() -> (World, Subscribers) {
    let mut world = World::new().await;
    world.relay();
    world.publish_each(0..3).await;
    world.wait_until_published().await;
    let subscribers = Subscribers::of(CATALOG, world.nats.client().clone());
    (world, subscribers)
}

#[tokio::test]
async fn a_subscriber_receives_the_messages_of_its_filter_from_the_oldest_on() {
    let (world, subscribers) = world().await;
    let customer = Some(world.customer.to_string());
    let noun = Some("TEST_CASE".to_owned());
    let ours = SubscriberFilter { customer, noun, ..SubscriberFilter::default() };
    let added = subscribers.add("ours", &ours, 1, ACK_TIMEOUT).await.unwrap();
    assert_eq!(added.filter, format!("assay.catalog.{}.test_case.*", world.customer));
    let deleted =
        SubscriberFilter { action: Some("deleted".to_owned()), ..SubscriberFilter::default() };
    subscribers.add("deleted", &deleted, 1, ACK_TIMEOUT).await.unwrap();
    let twice =
        subscribers.add("ours", &SubscriberFilter::default(), 1, ACK_TIMEOUT).await.unwrap_err();
    assert_eq!(twice.to_string(), "the subscriber ours already exists");

    let all = subscribers.list().await.unwrap();
    let backlogs: Vec<_> = all.iter().map(|one| (one.name.as_str(), one.backlog)).collect();
    assert_eq!(backlogs, [("deleted", 0), ("ours", 3)]);
    subscribers.remove("ours").await.unwrap();
    assert_eq!(subscribers.list().await.unwrap().len(), 1);
    let gone = subscribers.remove("ours").await.unwrap_err();
    assert_eq!(gone.to_string(), "no such subscriber: ours");
}

#[tokio::test]
async fn redelivery_keeps_the_order_with_one_pending_message() {
    let (world, subscribers) = world().await;
    subscribers.add("ours", &SubscriberFilter::default(), 1, ACK_TIMEOUT).await.unwrap();
    let consumer: PullConsumer =
        world.stream("ASSAY_CATALOG").await.get_consumer("ours").await.unwrap();
    let mut messages = consumer.messages().await.unwrap();
    let first = messages.next().await.unwrap().unwrap();
    assert_eq!(subscribers.list().await.unwrap()[0].pending, 1);
    // Not acknowledged, as if the subscriber had died.
    drop(messages);

    let mut messages = consumer.messages().await.unwrap();
    for sequence in 1..=3 {
        let message = messages.next().await.unwrap().unwrap();
        assert_eq!(message.info().unwrap().stream_sequence, sequence);
        message.double_ack().await.unwrap();
    }
    drop(first);
}
