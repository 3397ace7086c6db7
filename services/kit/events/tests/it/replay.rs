//! Replay of events that NATS has lost.

use std::time::Duration;

use assay_events::{Since, replay};
use assay_testkit::eventually;
use sqlx::{Connection as _, PgConnection};

use crate::world::World;

const HOUR: Since = Since::Ago(Duration::from_hours(1));

#[tokio::test]
async fn lost_events_are_published_again_and_applied_once() {
    let mut world = World::new().await;
    world.relay();
    world.consumer();
    world.publish_each(0..3).await;
    world.wait_for_effects(3).await;
    world.wait_until_published().await;
    world.lose_messages().await;
    world.publish_each([3]).await;
    world.wait_for_effects(4).await;
    assert_eq!(replay(&world.pool, HOUR).await.unwrap().events, 4);
    world.wait_until_published().await;
    world.publish_each([4]).await;

    assert_eq!(world.wait_for_effects(5).await, [0, 1, 2, 3, 4]);
    let mut published = world.published().await;
    published.sort_unstable();
    assert_eq!(published, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn a_large_replay_is_published_in_batches_and_in_order() {
    const ALL: i32 = 3500;
    let mut world = World::new().await;
    let relay = world.relay();
    world.publish_together(0..ALL).await;
    world.wait_until_published().await;
    relay.cancel();
    world.wait_until_stopped().await;
    world.lose_messages().await;
    // Otherwise the relay replays them as well.
    sqlx::query("delete from outbox_stream").execute(&world.pool).await.unwrap();
    world.relay();

    // A lock on the last event does not delay the first ones.
    let mut other = PgConnection::connect_with(&world.pool.connect_options()).await.unwrap();
    let mut locked = other.begin().await.unwrap();
    let lock = "select id from outbox order by id desc limit 1 for update";
    sqlx::query(lock).execute(&mut *locked).await.unwrap();
    let pool = world.pool.clone();
    let (replayed, ()) = tokio::join!(async { replay(&pool, HOUR).await.unwrap() }, async {
        eventually("the first three batches", || async {
            (world.messages("ASSAY_CATALOG").await == 3000).then_some(())
        })
        .await;
        locked.rollback().await.unwrap();
    });
    world.wait_until_published().await;

    assert_eq!(replayed.events, 3500);
    assert_eq!(world.published().await, (0..ALL).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_replay_starts_at_the_given_time_and_reports_missing_events() {
    let mut world = World::new().await;
    let relay = world.relay();
    world.publish_each(0..4).await;
    world.wait_until_published().await;
    relay.cancel();
    world.wait_until_stopped().await;
    let age = "update outbox set published_at = now() - (5 - id) * interval '1 day'";
    sqlx::query(age).execute(&world.pool).await.unwrap();
    world.lose_messages().await;

    let three_days = "3d".parse::<Since>().unwrap();
    let replayed = replay(&world.pool, three_days).await.unwrap();
    assert_eq!(replayed.events, 2, "the third is three days and a moment old: {replayed}");
    assert!(replayed.oldest < Some(replayed.since));
    assert!(!replayed.to_string().contains("are gone"), "{replayed}");
    world.relay();
    world.wait_until_published().await;
    assert_eq!(world.published().await, [2, 3]);

    let all = replay(&world.pool, "30d".parse().unwrap()).await.unwrap();
    assert_eq!(all.events, 4);
    assert!(all.oldest > Some(all.since));
    assert!(all.to_string().contains("ASSAY_EVENT_RETENTION_DAYS"), "{all}");
    world.wait_until_published().await;

    let none = replay(&world.pool, "0s".parse().unwrap()).await.unwrap();
    assert!(none.to_string().starts_with("nothing was published since "), "{none}");
    let future = replay(&world.pool, "9000-01-01T00:00:00Z".parse().unwrap()).await;
    assert!(future.unwrap_err().to_string().contains("future"));
}
