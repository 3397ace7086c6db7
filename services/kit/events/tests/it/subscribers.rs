//! Other systems that read what is published.

use std::time::Duration;

use assay_events::{Interest, Subscribers};
use async_nats::jetstream::consumer::PullConsumer;
use futures::StreamExt as _;

use crate::world::{CATALOG, World};

const PATIENCE: Duration = Duration::from_secs(1);

async fn world() -> (World, Subscribers) {
    let mut world = World::new().await;
    world.relay();
    world.tell(0..3).await;
    world.all_published().await;
    let subscribers = Subscribers::of(CATALOG, world.nats.client().clone());
    (world, subscribers)
}

#[tokio::test]
async fn a_subscriber_gets_what_it_is_interested_in_from_the_oldest_on() {
    let (world, subscribers) = world().await;
    let customer = Some(world.customer.to_string());
    let noun = Some("TEST_CASE".to_owned());
    let ours = Interest { customer, noun, action: None };
    let added = subscribers.add("ours", &ours, 1, PATIENCE).await.unwrap();
    assert_eq!(added.filter, format!("assay.catalog.{}.test_case.*", world.customer));
    let deleted = Interest { action: Some("deleted".to_owned()), ..Interest::default() };
    subscribers.add("deleted", &deleted, 1, PATIENCE).await.unwrap();
    let twice = subscribers.add("ours", &Interest::default(), 1, PATIENCE).await.unwrap_err();
    assert_eq!(twice.to_string(), "there is a subscriber ours already");

    let all = subscribers.list().await.unwrap();
    let behind: Vec<_> = all.iter().map(|one| (one.name.as_str(), one.behind)).collect();
    assert_eq!(behind, [("deleted", 0), ("ours", 3)]);
    subscribers.remove("ours").await.unwrap();
    assert_eq!(subscribers.list().await.unwrap().len(), 1);
    let gone = subscribers.remove("ours").await.unwrap_err();
    assert_eq!(gone.to_string(), "there is no subscriber ours");
}

#[tokio::test]
async fn with_one_in_hand_at_a_time_a_repetition_is_not_overtaken() {
    let (world, subscribers) = world().await;
    subscribers.add("ours", &Interest::default(), 1, PATIENCE).await.unwrap();
    let consumer: PullConsumer =
        world.stream("ASSAY_CATALOG").await.get_consumer("ours").await.unwrap();
    let mut messages = consumer.messages().await.unwrap();
    let first = messages.next().await.unwrap().unwrap();
    assert_eq!(subscribers.list().await.unwrap()[0].in_hand, 1);
    // Not acknowledged, as by somebody who dies.
    drop(messages);

    let mut messages = consumer.messages().await.unwrap();
    for sequence in 1..=3 {
        let message = messages.next().await.unwrap().unwrap();
        assert_eq!(message.info().unwrap().stream_sequence, sequence);
        message.double_ack().await.unwrap();
    }
    drop(first);
}
