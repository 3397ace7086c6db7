//! What the broker has delivered, whatever becomes of who consumes it.

use std::time::{Duration, Instant};

use assay_events::Event;
use assay_testkit::eventually;
use async_nats::jetstream::{self, consumer::pull::Config};

use crate::world::{TEST_CASE_CREATED, World};

/// How soon everything is applied.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn events_are_applied_within_seconds_however_late_the_broker_answers() {
    let mut world = World::new().await;
    world.relay();
    let (wire, nats) = world.nats_on_a_wire().await;
    world.consumer_on(&world.pool.clone(), &nats);
    world.tell([0]).await;
    world.has_effects(1).await;
    for (delay, numbers) in [(3200, 1..20), (1700, 20..40), (0, 40..50)] {
        wire.delay_answers(Duration::from_millis(delay));
        world.tell(numbers.clone()).await;
        let begun = Instant::now();
        world.has_effects(usize::try_from(numbers.end).unwrap()).await;
        let patience = Duration::from_millis(delay * 4) + SOON;
        assert!(begun.elapsed() < patience, "{:?} with {delay} ms", begun.elapsed());
        println!("{:?} with answers {delay} ms late", begun.elapsed());
    }
    let mut effects = world.effects().await;
    effects.sort_unstable();
    assert_eq!(effects, (0..50).collect::<Vec<_>>(), "each once");
}

#[tokio::test]
async fn what_a_killed_consumer_had_in_hand_is_applied_within_seconds() {
    let mut world = World::new().await;
    world.relay();
    world.trouble.set(1, "endless");
    let first = world.consumer_on(&world.pool.clone(), &world.nats.clone());
    world.tell_at_once(0..50).await;
    world.all_published().await;
    let delivered = || async {
        let stream = world.stream("ASSAY_CATALOG").await;
        let info = stream.consumer_info("notification").await.ok()?;
        (info.delivered.consumer_sequence >= 50).then_some(())
    };
    eventually("deliveries", delivered).await;
    first.abort();
    world.trouble.clear();
    let begun = Instant::now();
    world.consumer_on(&world.pool.clone(), &world.nats.clone());
    let effects = world.has_effects(50).await;
    println!("applied after {:?}", begun.elapsed());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(effects.len(), 50, "each once");
}

#[tokio::test]
async fn a_consumer_of_an_earlier_release_is_changed() {
    let mut world = World::new().await;
    let relay = world.relay();
    world.tell([0]).await;
    world.all_published().await;
    let config = Config {
        durable_name: Some("notification".to_owned()),
        filter_subject: "assay.catalog.>".to_owned(),
        ack_wait: Duration::from_mins(1),
        max_ack_pending: 20_000,
        ..Config::default()
    };
    let jetstream = jetstream::new(world.nats.client().clone());
    jetstream.create_consumer_on_stream(config, "ASSAY_CATALOG").await.unwrap();
    world.patient_consumer();
    world.has_effects(1).await;

    let info = world.stream("ASSAY_CATALOG").await.consumer_info("notification").await.unwrap();
    assert!(info.config.ack_wait < SOON, "{:?}", info.config.ack_wait);
    relay.cancel();
}

#[tokio::test]
async fn large_events_are_taken_a_few_at_a_time() {
    let mut world = World::new().await;
    world.relay();
    let text = "x".repeat(700 * 1024);
    for number in 0..12 {
        let event = Event::new(world.customer, number, TEST_CASE_CREATED, &(number, &text));
        world.publish(&event.unwrap()).await;
    }
    world.all_published().await;
    world.patient_consumer();
    assert_eq!(world.has_effects(12).await, (0..12).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_frozen_relay_and_a_frozen_consumer_are_replaced_within_seconds() {
    let mut world = World::new().await;
    let (wire, pool) = world.pool_on_a_wire().await;
    world.relay_on(&pool);
    world.consumer_on(&pool, &world.nats.clone());
    world.tell([0]).await;
    world.has_effects(1).await;
    world.relay();
    world.patient_consumer();
    wire.freeze();
    let begun = Instant::now();
    world.tell([1]).await;
    assert_eq!(world.has_effects(2).await, [0, 1]);
    println!("replaced after {:?}", begun.elapsed());
    assert!(begun.elapsed() < SOON * 3, "{:?}", begun.elapsed());
}
