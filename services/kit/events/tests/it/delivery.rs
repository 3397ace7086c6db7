//! Redelivery of messages whose consumer or connection fails.

use std::time::{Duration, Instant};

use assay_events::Event;
use assay_testkit::eventually;
use async_nats::jetstream::{self, consumer::pull::Config};

use crate::world::{TEST_CASE_CREATED, World};

/// Maximum time until all events are applied.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn events_are_applied_within_seconds_although_nats_responds_late() {
    let mut world = World::new().await;
    world.relay();
    let (proxy, nats) = world.proxied_nats().await;
    world.consumer_on(&world.pool.clone(), &nats);
    world.publish_each([0]).await;
    world.wait_for_effects(1).await;
    for (delay, numbers) in [(3200, 1..20), (1700, 20..40), (0, 40..50)] {
        proxy.delay_answers(Duration::from_millis(delay));
        world.publish_each(numbers.clone()).await;
        let begun = Instant::now();
        world.wait_for_effects(usize::try_from(numbers.end).unwrap()).await;
        let limit = Duration::from_millis(delay * 4) + SOON;
        assert!(begun.elapsed() < limit, "{:?} with {delay} ms", begun.elapsed());
        println!("{:?} with answers {delay} ms late", begun.elapsed());
    }
    let mut effects = world.effects().await;
    effects.sort_unstable();
    assert_eq!(effects, (0..50).collect::<Vec<_>>(), "each once");
}

#[tokio::test]
async fn pending_messages_of_a_killed_consumer_are_applied_within_seconds() {
    let mut world = World::new().await;
    world.relay();
    world.failures.set(1, "endless");
    let first = world.consumer_on(&world.pool.clone(), &world.nats.clone());
    world.publish_together(0..50).await;
    world.wait_until_published().await;
    let delivered = || async {
        let stream = world.stream("ASSAY_CATALOG").await;
        let info = stream.consumer_info("notification").await.ok()?;
        (info.delivered.consumer_sequence >= 50).then_some(())
    };
    eventually("deliveries", delivered).await;
    first.abort();
    world.failures.clear();
    let begun = Instant::now();
    world.consumer_on(&world.pool.clone(), &world.nats.clone());
    let effects = world.wait_for_effects(50).await;
    println!("applied after {:?}", begun.elapsed());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(effects.len(), 50, "each once");
}

#[tokio::test]
async fn later_messages_wait_for_those_in_process_when_the_database_connection_is_lost() {
    let mut world = World::new().await;
    world.relay();
    world.default_consumer();
    world.publish_of_record([0]).await;
    world.wait_for_effects(1).await;
    let blocked = world.block([1]).await;
    world.publish_of_record(1..50).await;
    world.wait_until_blocked().await;
    world.terminate("assay consumer").await;
    blocked.rollback().await.unwrap();
    world.publish_of_record(50..60).await;

    assert_eq!(world.wait_for_effects(60).await, (0..60).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_configuration_of_an_existing_consumer_is_updated() {
    let mut world = World::new().await;
    let relay = world.relay();
    world.publish_each([0]).await;
    world.wait_until_published().await;
    let config = Config {
        durable_name: Some("notification".to_owned()),
        filter_subject: "assay.catalog.>".to_owned(),
        ack_wait: Duration::from_mins(1),
        max_ack_pending: 20_000,
        ..Config::default()
    };
    let jetstream = jetstream::new(world.nats.client().clone());
    jetstream.create_consumer_on_stream(config, "ASSAY_CATALOG").await.unwrap();
    world.default_consumer();
    world.wait_for_effects(1).await;

    let info = world.stream("ASSAY_CATALOG").await.consumer_info("notification").await.unwrap();
    assert!(info.config.ack_wait < SOON, "{:?}", info.config.ack_wait);
    relay.cancel();
}

#[tokio::test]
async fn large_events_are_delivered() {
    let mut world = World::new().await;
    world.relay();
    let text = "x".repeat(700 * 1024);
    for number in 0..12 {
        let event = Event::new(world.customer, number, TEST_CASE_CREATED, &(number, &text));
        world.publish(&event.unwrap()).await;
    }
    world.wait_until_published().await;
    world.default_consumer();
    assert_eq!(world.wait_for_effects(12).await, (0..12).collect::<Vec<_>>());
}

#[tokio::test]
async fn standbys_replace_a_frozen_relay_and_a_frozen_consumer_within_seconds() {
    let mut world = World::new().await;
    let (proxy, pool) = world.proxied_pool().await;
    world.relay_on(&pool);
    world.consumer_on(&pool, &world.nats.clone());
    world.publish_each([0]).await;
    world.wait_for_effects(1).await;
    world.relay();
    world.default_consumer();
    proxy.freeze();
    let begun = Instant::now();
    world.publish_each([1]).await;
    assert_eq!(world.wait_for_effects(2).await, [0, 1]);
    println!("replaced after {:?}", begun.elapsed());
    assert!(begun.elapsed() < SOON * 3, "{:?}", begun.elapsed());
}
