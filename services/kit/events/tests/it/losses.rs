//! Events that NATS loses before every consumer has received them.

use assay_testkit::eventually;

use crate::world::World;

/// Returns a world with a consumer that has received the first three events and has stopped, and a
/// relay that knows it.
async fn world() -> World {
    let mut world = World::new().await;
    world.relay();
    let consumer = world.consumer();
    world.publish_each(0..3).await;
    world.wait_for_effects(3).await;
    world.accept_duplicates().await;
    eventually("the position of the consumer", || async {
        (world.received().await == Some(3)).then_some(())
    })
    .await;
    consumer.cancel();
    world.wait_until_stopped().await;
    world
}

#[tokio::test]
async fn events_that_a_wiped_store_has_lost_are_published_again_by_themselves() {
    let mut world = world().await;
    world.publish_each(3..6).await;
    world.wait_until_published().await;
    world.lose_messages().await;
    world.consumer();

    assert_eq!(world.wait_for_effects(6).await, [0, 1, 2, 3, 4, 5]);
    assert_eq!(world.published().await, [3, 4, 5], "only what the consumer has not received");
}

#[tokio::test]
async fn a_store_may_be_wiped_again_before_its_consumers_are_back() {
    let mut world = world().await;
    world.publish_each(3..6).await;
    world.wait_until_published().await;
    for _ in 0..2 {
        world.lose_messages().await;
        eventually("the events", || async {
            (world.messages("ASSAY_CATALOG").await == 3).then_some(())
        })
        .await;
        world.wait_until_checked().await;
    }
    world.consumer();

    assert_eq!(world.wait_for_effects(6).await, [0, 1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn events_that_are_removed_too_early_are_published_again() {
    let mut world = world().await;
    world.publish_each(3..6).await;
    world.wait_until_published().await;
    world.stream("ASSAY_CATALOG").await.purge().await.unwrap();
    world.publish_each([6]).await;
    world.consumer();

    let mut effects = world.wait_for_effects(7).await;
    assert_eq!(effects[..3], [0, 1, 2]);
    effects.sort_unstable();
    assert_eq!(effects, [0, 1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn events_removed_by_a_limit_are_published_again_when_the_consumer_is_back() {
    let mut world = world().await;
    world.keep_messages(2).await;
    world.publish_each(3..7).await;
    world.wait_until_published().await;
    for _ in 0..2 {
        world.wait_until_checked().await;
    }
    assert_eq!(world.published().await, [5, 6], "nothing is published again for nobody");
    world.keep_messages(-1).await;
    world.consumer();

    assert_eq!(world.wait_for_effects(7).await, [0, 1, 2, 5, 6, 3, 4]);
    assert_eq!(world.published().await, [5, 6, 3, 4]);
}

#[tokio::test]
async fn events_that_an_older_state_of_the_store_lacks_are_published_again() {
    let mut world = world().await;
    world.publish_each(3..6).await;
    world.wait_until_published().await;
    // As if the messages after the fourth had been in a part of the store that was not written.
    let stream = world.stream("ASSAY_CATALOG").await;
    for sequence in [5, 6] {
        stream.delete_message(sequence).await.unwrap();
    }
    let lost = "update outbox set sequence = sequence + 10 where id > 4";
    sqlx::query(lost).execute(&world.pool).await.unwrap();
    world.consumer();

    assert_eq!(world.wait_for_effects(6).await, [0, 1, 2, 3, 4, 5]);
    assert_eq!(world.published().await, [0, 1, 2, 3, 4, 5]);
}
