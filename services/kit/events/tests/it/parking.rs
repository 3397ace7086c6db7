//! Blocked events, which are parked and retried.

use std::time::{Duration, Instant};

use assay_proto::CustomerId;
use assay_testkit::eventually;

use crate::world::World;

/// Maximum delay of events of other customers.
const DELAY: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_blocked_event_delays_no_other_customer_and_is_applied_in_the_end() {
    let mut world = World::new().await;
    world.relay();
    world.default_consumer();
    world.publish_each([0]).await;
    world.wait_for_effects(1).await;
    let blocked = world.block([1]).await;
    world.publish_together([1, 2, 3]).await;
    for number in 10..15 {
        let begun = Instant::now();
        world.publish_for(CustomerId::new(), number).await;
        eventually("the effect", || async {
            world.effects().await.contains(&number).then_some(())
        })
        .await;
        assert!(begun.elapsed() < DELAY, "{:?}", begun.elapsed());
    }
    eventually("other records of the customer", || async {
        let effects = world.effects().await;
        (effects.contains(&2) && effects.contains(&3)).then_some(())
    })
    .await;
    assert!(!world.effects().await.contains(&1));
    assert_eq!(world.parked().await, 1);

    blocked.rollback().await.unwrap();
    world.wait_for_effects(9).await;
    eventually("nothing parked", || async { (world.parked().await == 0).then_some(()) }).await;
    assert!(world.dead_letters().await.is_empty());
}

#[tokio::test]
async fn events_of_a_blocked_record_keep_their_order() {
    let mut world = World::new().await;
    world.relay();
    world.default_consumer();
    let blocked = world.block([1]).await;
    for number in 1..5 {
        world.publish_of_record([number]).await;
    }
    eventually("four parked events", || async { (world.parked().await == 4).then_some(()) }).await;
    assert!(world.effects().await.is_empty());
    blocked.rollback().await.unwrap();

    assert_eq!(world.wait_for_effects(4).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn many_blocked_events_of_a_customer_delay_no_other_customer() {
    let mut world = World::new().await;
    world.relay();
    world.default_consumer();
    world.publish_each([0]).await;
    world.wait_for_effects(1).await;
    let _blocked = world.block(1..100).await;
    world.publish_together(1..100).await;
    eventually("parked events", || async { (world.parked().await > 0).then_some(()) }).await;
    let begun = Instant::now();
    world.publish_for(CustomerId::new(), 1000).await;
    world.wait_for_effects(2).await;
    assert!(begun.elapsed() < DELAY, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_event_that_stays_blocked_becomes_a_dead_letter() {
    let mut world = World::new().await;
    world.failures.set(2, "away");
    world.relay();
    world.consumer();
    let _blocked = world.block([1]).await;
    world.publish_together(0..4).await;
    world.wait_for_dead_letters(2).await;

    let mut effects = world.wait_for_effects(2).await;
    effects.sort_unstable();
    assert_eq!(effects, [0, 3]);
    assert_eq!(world.parked().await, 0);
}

#[tokio::test]
async fn an_event_that_hangs_delays_no_other() {
    let mut world = World::new().await;
    world.failures.set(1, "endless");
    world.relay();
    world.default_consumer();
    world.publish_each([1]).await;
    eventually("a parked event", || async { (world.parked().await == 1).then_some(()) }).await;
    let begun = Instant::now();
    world.publish_for(CustomerId::new(), 2).await;
    assert_eq!(world.wait_for_effects(1).await, [2]);
    assert!(begun.elapsed() < DELAY, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn parked_events_survive_a_restart_of_the_consumer() {
    let mut world = World::new().await;
    world.relay();
    let first = world.default_consumer();
    let blocked = world.block([0]).await;
    world.publish_each([0, 1]).await;
    world.wait_for_effects(1).await;
    first.cancel();
    world.wait_until_stopped().await;
    blocked.rollback().await.unwrap();
    world.default_consumer();

    assert_eq!(world.wait_for_effects(2).await, [1, 0]);
}
