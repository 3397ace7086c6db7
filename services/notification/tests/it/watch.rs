//! Streams of new notifications.

use std::iter;

use anyhow::{Context, Result};
use assay_proto::notification::{
    NotificationFilter, NotificationInput, WatchNotificationsRequest, WatchedNotification,
};
use assay_testkit::{TestUser, eventually};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use tokio::time::{Duration, timeout};
use tonic::{Code, Status, Streaming};

use crate::world::{World, notification, numbered};

impl World {
    async fn watch(
        &self,
        user: &TestUser,
        request: WatchNotificationsRequest,
    ) -> Result<Streaming<WatchedNotification>, Status> {
        Ok(self.client.clone().watch_notifications(user.call(request)).await?.into_inner())
    }

    /// Returns the number of rows of notifications that were read so far. The connections of the
    /// service report their statistics first, which they otherwise do with a delay.
    async fn rows_read(&self) -> Result<i64> {
        let mut connections = eventually("idle connections", async || {
            let idle: Vec<_> = iter::from_fn(|| self.db.try_acquire()).collect();
            (!idle.is_empty() && idle.len() == self.db.size() as usize).then_some(idle)
        })
        .await;
        for connection in &mut connections {
            let flush = sqlx::query("select pg_stat_force_next_flush()");
            flush.execute(&mut **connection).await?;
        }
        let read = "select (seq_tup_read + idx_tup_fetch)::bigint from pg_stat_user_tables
                    where relname = 'notification'";
        Ok(sqlx::query_scalar(read).fetch_one(&mut *connections[0]).await?)
    }
}

/// A request to continue after an event.
fn after_event(id: &str) -> WatchNotificationsRequest {
    WatchNotificationsRequest { last_event_id: Some(id.to_owned()), ..Default::default() }
}

/// Returns the next message: the id of a notification, or to which one the stream was reset.
async fn message(
    watched: &mut Streaming<WatchedNotification>,
) -> Result<(Option<String>, Option<String>)> {
    let message = timeout(Duration::from_secs(20), watched.message()).await??;
    let message = message.context("the stream has ended")?;
    if message.is_reset {
        return Ok((None, Some(message.event_id)));
    }
    let event: Value = serde_json::from_str(&message.event)?;
    assert_eq!(event["id"], message.event_id);
    Ok((Some(message.event_id), None))
}

fn after(position: i64) -> WatchNotificationsRequest {
    WatchNotificationsRequest { after: Some(position), ..WatchNotificationsRequest::default() }
}

fn builds() -> NotificationFilter {
    NotificationFilter { source: Some("Build".to_owned()), ..NotificationFilter::default() }
}

/// Returns the ids of the next notifications, and the position of the last.
async fn next(
    watched: &mut Streaming<WatchedNotification>,
    count: usize,
) -> Result<(Vec<String>, i64)> {
    let (mut ids, mut position) = (Vec::new(), 0);
    while ids.len() < count {
        let message = timeout(Duration::from_secs(20), watched.message()).await??;
        let message = message.context("the stream has ended")?;
        assert!(message.position > position, "positions must increase");
        position = message.position;
        let event: Value = serde_json::from_str(&message.event)?;
        ids.push(event["id"].as_str().context("an id")?.to_owned());
    }
    Ok((ids, position))
}

#[tokio::test]
async fn a_stream_returns_the_new_notifications_of_its_customer() -> Result<()> {
    let world = World::new().await?;
    let (user, stranger) = (world.user().await, world.user().await);
    world.create(&user, numbered(0)).await?;
    let mut watched = world.watch(&user, WatchNotificationsRequest::default()).await?;
    let mut other_stream = world.watch(&stranger, WatchNotificationsRequest::default()).await?;

    let first = world.create(&user, numbered(1)).await?;
    assert_eq!(next(&mut watched, 1).await?.0, [first.id]);
    let second = world.create(&user, numbered(2)).await?;
    assert_eq!(next(&mut watched, 1).await?.0, [second.id]);
    let other = world.create(&stranger, notification()).await?;
    assert_eq!(next(&mut other_stream, 1).await?.0, [other.id]);
    Ok(())
}

#[tokio::test]
async fn a_stream_resumes_after_a_position_without_gaps_or_repetitions() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    // More than a stream reads at once.
    world.add_history(&user, 1000).await?;
    let created = stream::iter((0..100).map(|number| world.create(&user, numbered(number))));
    created.buffer_unordered(8).try_for_each(async |_| Ok(())).await?;

    let (mut streamed, mut position) = (Vec::new(), 0);
    for count in [1, 499, 600] {
        let mut watched = world.watch(&user, after(position)).await?;
        let (ids, last) = next(&mut watched, count).await?;
        streamed.extend(ids);
        position = last;
    }
    let mut listed: Vec<_> =
        world.list(&user).await?.into_iter().map(|notification| notification.id).collect();
    listed.reverse();
    assert_eq!(streamed, listed);
    Ok(())
}

#[tokio::test]
async fn a_stream_continues_after_a_known_event_and_is_reset_after_an_unknown_one() -> Result<()> {
    let world = World::new().await?;
    let (user, stranger) = (world.user().await, world.user().await);
    let foreign = world.create(&stranger, notification()).await?;
    let mut ids = Vec::new();
    for number in 0..3 {
        ids.push(world.create(&user, numbered(number)).await?.id);
    }
    world.delete(&user, &ids[0]).await?;
    // The id of an event, also of a deleted one, and the beginning.
    for (last, next) in
        [(ids[1].clone(), &ids[2]), (ids[0].clone(), &ids[1]), ("0".to_owned(), &ids[1])]
    {
        let mut watched = world.watch(&user, after_event(&last)).await?;
        assert_eq!(message(&mut watched).await?, (Some(next.clone()), None), "{last}");
    }

    for unknown in [assay_proto::NotificationId::new().to_string(), foreign.id] {
        let mut watched = world.watch(&user, after_event(&unknown)).await?;
        assert_eq!(message(&mut watched).await?, (None, Some(ids[2].clone())), "{unknown}");
        let new = world.create(&user, notification()).await?.id;
        assert_eq!(message(&mut watched).await?, (Some(new.clone()), None));
        ids[2] = new;
    }
    let empty = world.user().await;
    let mut watched = world.watch(&empty, after_event(&ids[1])).await?;
    assert_eq!(message(&mut watched).await?, (None, Some("0".to_owned())));
    let missed = world.create(&empty, notification()).await?.id;
    let mut watched = world.watch(&empty, after_event("0")).await?;
    assert_eq!(message(&mut watched).await?, (Some(missed), None));
    for wrong in ["x", "-1", ""] {
        let refused = world.watch(&user, after_event(wrong)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{wrong:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_event_that_a_restored_database_does_not_know_resets_the_stream() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    world.create(&user, numbered(0)).await?;
    let lost = world.create(&user, numbered(1)).await?;
    // The backup is older than the second notification, whose position another one gets.
    let restore = "with lost as (delete from notification where id = $1::uuid returning position)
                   select setval(pg_get_serial_sequence('notification', 'position'), position, false)
                   from lost";
    sqlx::query("delete from webhook_delivery").execute(&world.db).await?;
    sqlx::query(restore).bind(&lost.id).execute(&world.db).await?;
    let other = world.create(&user, numbered(2)).await?;
    let mut watched = world.watch(&user, after_event(&lost.id)).await?;
    assert_eq!(message(&mut watched).await?, (None, Some(other.id)));
    Ok(())
}

#[tokio::test]
async fn streams_and_lists_can_be_filtered() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let filter = NotificationFilter {
        source: Some("testcase".to_owned()),
        action: Some("Done2".to_owned()),
        ..NotificationFilter::default()
    };
    let request = WatchNotificationsRequest { filter: Some(filter), ..after(0) };
    let mut watched = world.watch(&user, request).await?;
    for number in 1..=3 {
        world.create(&user, numbered(number)).await?;
    }
    let second = world.list(&user).await?.remove(1);
    assert_eq!(second.action, "Done2");
    assert_eq!(next(&mut watched, 1).await?.0, std::slice::from_ref(&second.id));

    for (source, action, count) in
        [(None, Some("Done2"), 1), (Some("TestCase"), None, 3), (Some("Other"), Some("Done2"), 0)]
    {
        assert_eq!(world.list_of(&user, source, action).await?.len(), count);
    }
    Ok(())
}

#[tokio::test]
async fn a_filtered_stream_returns_rare_and_new_notifications_of_a_long_history() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let rare = || NotificationInput { source: "Build".to_owned(), ..notification() };
    let first = world.create(&user, rare()).await?;
    world.add_history(&user, 25_000).await?;
    let second = world.create(&user, rare()).await?;
    let builds = |position| WatchNotificationsRequest { filter: Some(builds()), ..after(position) };
    let mut watched = world.watch(&user, builds(0)).await?;
    assert_eq!(next(&mut watched, 2).await?.0, [first.id, second.id]);
    let third = world.create(&user, rare()).await?;
    assert_eq!(next(&mut watched, 1).await?.0, [third.id]);
    Ok(())
}

#[tokio::test]
async fn filtered_streams_examine_a_long_history_once() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    world.add_history(&user, 25_000).await?;
    let rare = || NotificationInput { source: "Build".to_owned(), ..notification() };
    let builds = || WatchNotificationsRequest { filter: Some(builds()), ..after(0) };
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(world.watch(&user, builds()).await?);
    }
    world.create(&user, rare()).await?;
    for stream in &mut streams {
        next(stream, 1).await?;
    }

    let before = world.rows_read().await?;
    for number in 0..20 {
        world.create(&user, numbered(number)).await?;
    }
    world.create(&user, rare()).await?;
    for stream in &mut streams {
        next(stream, 1).await?;
    }
    let later = world.rows_read().await?;
    assert!(before >= 25_000, "the streams have read only {before} rows of the history");
    assert!(later - before < 25_000, "{before} rows were read, then {later}");
    Ok(())
}

#[tokio::test]
async fn watching_needs_the_permission_to_read() -> Result<()> {
    let world = World::new().await?;
    let writer = world.user_who_may("Write").await;
    let refused = world.watch(&writer, after(0)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn streams_end_when_the_program_stops() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let mut watched = world.watch(&user, after(0)).await?;
    world.stop();
    assert!(timeout(Duration::from_secs(20), watched.next()).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_stream_through_a_long_history_ends_when_the_program_stops() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    world.add_history(&user, 25_000).await?;
    let mut watched = world.watch(&user, after(0)).await?;
    next(&mut watched, 1).await?;
    world.stop();
    let rest = timeout(Duration::from_secs(20), watched.count()).await?;
    assert!(rest < 24_000, "{rest} more notifications");
    Ok(())
}
