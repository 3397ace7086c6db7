//! Delivery of events to consumers.

use assay_proto::CustomerId;
use async_nats::HeaderMap;

use crate::world::World;

#[tokio::test]
async fn a_duplicate_delivery_has_one_effect() {
    let mut world = World::new().await;
    world.relay();
    world.consumer();
    world.publish_each(0..3).await;
    world.wait_for_effects(3).await;
    let message = world.stream("ASSAY_CATALOG").await.get_raw_message(2).await.unwrap();
    for _ in 0..3 {
        world.send(&message.subject, HeaderMap::new(), &message.payload).await;
    }
    world.publish_each([3]).await;

    assert_eq!(world.wait_for_effects(4).await, [0, 1, 2, 3]);
}

#[tokio::test]
async fn an_event_that_is_delivered_again_is_remembered_from_then_on() {
    let mut world = World::new().await;
    world.relay();
    world.consumer();
    world.publish_each(0..2).await;
    world.wait_for_effects(2).await;
    let age = "update inbox set received_at = now() - interval '13 days'";
    sqlx::query(age).execute(&world.pool).await.unwrap();
    // A replay publishes the first event again.
    let message = world.stream("ASSAY_CATALOG").await.get_raw_message(1).await.unwrap();
    world.send(&message.subject, HeaderMap::new(), &message.payload).await;
    world.publish_each([2]).await;
    assert_eq!(world.wait_for_effects(3).await, [0, 1, 2]);

    let old = "select count(*) from inbox where received_at < now() - interval '1 day'";
    let old: i64 = sqlx::query_scalar(old).fetch_one(&world.pool).await.unwrap();
    assert_eq!(old, 1, "only the second event may be forgotten soon");
}

#[tokio::test]
async fn a_failing_event_becomes_a_dead_letter_after_five_attempts_and_delays_no_other() {
    let mut world = World::new().await;
    world.failures.set(2, "poison");
    world.failures.set(3, "panic");
    world.relay();
    world.consumer();
    world.publish_together(0..6).await;
    assert_eq!(world.wait_for_effects(4).await, [0, 1, 4, 5]);
    for letter in world.wait_for_dead_letters(2).await {
        assert_eq!((letter.attempts, letter.customer_id), (5, world.customer));
        assert!(letter.reason.unwrap().starts_with("internal error: "));
    }

    world.failures.clear();
    assert_eq!(world.retry(None).await, 2);
    let mut late = world.wait_for_effects(6).await.split_off(4);
    late.sort_unstable();
    assert_eq!(late, [2, 3]);
    assert!(world.dead_letters().await.is_empty());
}

#[tokio::test]
async fn events_of_a_customer_are_applied_together() {
    let mut world = World::new().await;
    world.gathers = true;
    world.relay();
    world.publish_together(0..150).await;
    world.wait_until_published().await;
    world.consumer();

    assert_eq!(world.wait_for_effects(150).await, (0..150).collect::<Vec<_>>());
    let transactions = "select count(distinct xmin::text) from effect";
    let transactions: i64 = sqlx::query_scalar(transactions).fetch_one(&world.pool).await.unwrap();
    // At most as many as if the consumer never applied more than at first.
    assert!(transactions <= 8, "{transactions} transactions");
}

#[tokio::test]
async fn a_large_change_of_a_customer_does_not_delay_the_event_of_another() {
    let mut world = World::new().await;
    // All others arrive while this event is applied.
    world.failures.set(2000, "endless");
    world.publish_for(CustomerId::new(), 2000).await;
    world.relay();
    world.publish_together(0..500).await;
    world.publish_for(CustomerId::new(), 1000).await;
    world.wait_until_published().await;
    world.consumer();

    let effects = world.wait_for_effects(501).await;
    assert_ne!(effects.last(), Some(&1000));
    let of_first: Vec<_> = effects.into_iter().filter(|number| *number < 1000).collect();
    assert_eq!(of_first, (0..500).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_consumer_that_stops_leaves_a_large_change_to_the_next() {
    let mut world = World::new().await;
    world.relay();
    world.publish_together(0..900).await;
    world.wait_until_published().await;
    let first = world.consumer();
    world.wait_for_effects(1).await;
    first.cancel();
    world.wait_until_stopped().await;
    let applied = world.effects().await.len();
    assert!(applied < 900, "the consumer has stopped only after {applied} events");
    world.consumer();

    assert_eq!(world.wait_for_effects(900).await, (0..900).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_event_that_fails_is_parked_alone_although_others_are_applied_together() {
    let mut world = World::new().await;
    world.gathers = true;
    for number in [7, 60, 61] {
        world.failures.set(number, "poison");
    }
    world.relay();
    world.publish_together(0..100).await;
    world.wait_until_published().await;
    world.consumer();

    let expected: Vec<_> = (0..100).filter(|number| ![7, 60, 61].contains(number)).collect();
    assert_eq!(world.wait_for_effects(97).await, expected);
    world.wait_for_dead_letters(3).await;
    assert_eq!(world.effects().await, expected, "each once");
}

#[tokio::test]
async fn a_message_that_is_not_an_event_becomes_a_dead_letter() {
    let mut world = World::new().await;
    world.relay();
    world.consumer();
    world.publish_each([0]).await;
    world.wait_for_effects(1).await;
    world.send("assay.catalog.x", HeaderMap::new(), b"{").await;

    let [letter] = &world.wait_for_dead_letters(1).await[..] else { unreachable!() };
    assert!(letter.reason.as_ref().unwrap().starts_with("not a valid event: "), "{letter:?}");
    assert!(letter.about.as_ref().unwrap().contains("event none, subject assay.catalog.x"));

    // It still is none.
    assert_eq!(world.retry(None).await, 1);
    world.wait_for_dead_letters(1).await;
    world.publish_each([1]).await;
    assert_eq!(world.wait_for_effects(2).await, [0, 1]);
}

#[tokio::test]
async fn lost_database_connections_lose_no_event() {
    let mut world = World::new().await;
    world.relay();
    world.consumer();
    for round in 0..4 {
        // An event that takes too long is parked, and later ones of its record behind it.
        world.publish_of_record(round * 100..round * 100 + 50).await;
        world.terminate_connections().await;
        for number in round * 100 + 50..round * 100 + 100 {
            world.publish_of_record([number]).await;
        }
    }

    let expected: Vec<_> = (0..400).collect();
    assert_eq!(world.wait_for_effects(400).await, expected);
    assert!(world.dead_letters().await.is_empty());
}

#[tokio::test]
async fn a_standby_consumer_takes_over() {
    let mut world = World::new().await;
    world.relay();
    let first = world.consumer();
    world.consumer();
    world.publish_each(0..50).await;
    first.cancel();
    world.wait_until_stopped().await;
    world.publish_each(50..100).await;

    let expected: Vec<_> = (0..100).collect();
    assert_eq!(world.wait_for_effects(100).await, expected);
}
