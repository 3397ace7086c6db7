//! Publishing from the outbox.

use std::time::{Duration, Instant};

use assay_events::{Event, publish, publish_all, unpublished};
use assay_testkit::{eventually, rows_read};
use serde_json::Value;
use sqlx::AssertSqlSafe;

use crate::world::{CATALOG, TEST_CASE_CREATED, World};

#[tokio::test]
async fn committed_events_are_published_once_and_in_order() {
    let mut world = World::new().await;
    world.publish_each(0..10).await;
    world.relay();
    // Several statements add them.
    world.publish_together(10..1500).await;
    world.publish_each(1500..1510).await;
    world.wait_until_published().await;

    let stream = world.stream("ASSAY_CATALOG").await;
    assert_eq!(stream.cached_info().state.messages, 1510);
    for number in 0..1510 {
        let message = stream.get_raw_message(u64::try_from(number).unwrap() + 1).await.unwrap();
        let event: Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(event["data"], number);
    }
}

/// Number of rows of [`add_published`].
const PUBLISHED: i32 = 20_000;

/// Adds many events that were just published.
async fn add_published(world: &World) {
    let published = "insert into outbox (event_id, customer_id, record, noun, action, data, trace,
                                         published_at)
                     select gen_random_uuid(), $1, n::text, 'test_case', 'created', '1', '{}', now()
                     from generate_series(1, $2) as n";
    let published = sqlx::query(published).bind(world.customer).bind(PUBLISHED);
    published.execute(&world.pool).await.unwrap();
}

/// Waits until sessions have reported this number of changes to a table, which they do later.
async fn wait_for_reported(world: &World, table: &str, changes: &str, count: i64) {
    let reported = format!("select {changes} from pg_stat_user_tables where relname = '{table}'");
    eventually("all changes are reported", async || {
        let reported = sqlx::query_scalar(AssertSqlSafe(reported.clone()));
        let reported: i64 = reported.fetch_one(&world.pool).await.unwrap();
        (reported == count).then_some(())
    })
    .await;
}

/// PostgreSQL may have planned the statements of the relay while the table was nearly empty.
#[tokio::test]
async fn the_relay_reads_only_events_that_are_not_published() {
    let mut world = World::new().await;
    world.relay();
    for number in 0..10 {
        world.publish_each([number]).await;
        world.wait_until_published().await;
    }
    add_published(&world).await;
    let before = rows_read(&world.pool, "outbox").await;
    for number in 10..20 {
        world.publish_each([number]).await;
        let published = u64::try_from(number).unwrap() + 1;
        eventually("the event", async || {
            (world.messages("ASSAY_CATALOG").await == published).then_some(())
        })
        .await;
    }
    wait_for_reported(&world, "outbox", "n_tup_upd", 20).await;
    let read = rows_read(&world.pool, "outbox").await - before;
    assert!((10..i64::from(PUBLISHED)).contains(&read), "{read} rows");
}

#[tokio::test]
async fn an_event_is_a_cloud_event() {
    let mut world = World::new().await;
    world.publish_each([7]).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let traced = "update outbox set trace = jsonb_build_object('traceparent', $1)";
    sqlx::query(traced).bind(trace).execute(&world.pool).await.unwrap();
    world.relay();
    world.wait_until_published().await;

    let message = world.stream("ASSAY_CATALOG").await.get_raw_message(1).await.unwrap();
    let subject = format!("assay.catalog.{}.test_case.created", world.customer);
    assert_eq!(message.subject.as_str(), subject);
    let header = |name| message.headers.get(name).map(ToString::to_string);
    let event: Value = serde_json::from_slice(&message.payload).unwrap();
    assert_eq!(header("Content-Type").as_deref(), Some("application/cloudevents+json"));
    assert_eq!(header("Nats-Msg-Id").as_deref(), event["id"].as_str());
    assert_eq!(header("traceparent").as_deref(), Some(trace));
    assert_eq!(event["traceparent"], trace);
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["source"], "/assay/catalog");
    assert_eq!(event["type"], "io.assay.catalog.test_case.created.v1");
    assert_eq!(event["subject"], "7");
    assert_eq!(event["tenantid"], world.customer.to_string());
    assert_eq!(event["datacontenttype"], "application/json");
    assert!(event["time"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn an_event_is_published_without_a_trace_that_headers_cannot_have() {
    let mut world = World::new().await;
    let trace = [("traceparent".to_owned(), "00\r\nNats-Msg-Id: 1".to_owned())];
    world.publish(&world.event(7).with_trace(trace.into())).await;
    world.relay();
    world.wait_until_published().await;

    let message = world.stream("ASSAY_CATALOG").await.get_raw_message(1).await.unwrap();
    assert!(message.headers.get("traceparent").is_none());
}

#[tokio::test]
async fn an_event_that_is_rolled_back_is_not_published() {
    let mut world = World::new().await;
    world.relay();
    let mut tx = assay_database::begin(&world.pool).await.unwrap();
    publish(&mut tx, &world.event(1)).await.unwrap();
    tx.rollback().await.unwrap();
    world.publish_each([2]).await;
    world.wait_until_published().await;

    assert_eq!(world.messages("ASSAY_CATALOG").await, 1);
}

#[tokio::test]
async fn an_event_that_is_committed_late_is_published() {
    let mut world = World::new().await;
    world.relay();
    world.consumer();
    let mut late = assay_database::begin(&world.pool).await.unwrap();
    publish(&mut late, &world.event(1)).await.unwrap();
    world.publish_each([2, 3]).await;
    world.wait_for_effects(2).await;
    late.commit().await.unwrap();

    assert_eq!(world.wait_for_effects(3).await, [2, 3, 1]);
}

#[tokio::test]
async fn a_commit_wakes_a_sleeping_relay() {
    let mut world = World::new().await;
    world.relay();
    world.consumer();
    let mut times = Vec::new();
    // Tests share their machine, so one of a few attempts has to succeed.
    for number in 0..3 {
        eventually("a relay with a quarter of a second of sleep before it", || async {
            let idle = "select count(*) from pg_stat_activity
                        where datname = current_database()
                          and application_name = 'assay outbox relay'
                          and clock_timestamp() - state_change
                              between interval '650 ms' and interval '720 ms'";
            let idle: i64 = sqlx::query_scalar(idle).fetch_one(&world.pool).await.unwrap();
            (idle == 1).then_some(())
        })
        .await;
        let start = Instant::now();
        world.publish_each([number]).await;
        world.wait_for_effects(usize::try_from(number).unwrap() + 1).await;
        times.push(start.elapsed());
        if start.elapsed() < Duration::from_millis(200) {
            return;
        }
    }
    panic!("events took {times:?}");
}

#[tokio::test]
async fn later_events_wait_for_one_that_nats_rejects() {
    let mut world = World::new().await;
    world.nats.ensure_stream(CATALOG).await.unwrap();
    world.limit_messages(2000).await;
    let large = Event::new(world.customer, 1, TEST_CASE_CREATED, &"x".repeat(2000)).unwrap();
    let mut tx = assay_database::begin(&world.pool).await.unwrap();
    publish_all(&mut tx, [world.event(0), large, world.event(2)].map(Ok)).await.unwrap();
    tx.commit().await.unwrap();
    let stop = world.relay();
    eventually("the first event", || async {
        (unpublished(&world.pool).await.unwrap() == 2).then_some(())
    })
    .await;
    stop.cancel();
    world.wait_until_stopped().await;
    assert_eq!(world.messages("ASSAY_CATALOG").await, 1);

    world.limit_messages(-1).await;
    world.relay();
    world.wait_until_published().await;
    let third = world.stream("ASSAY_CATALOG").await.get_raw_message(3).await.unwrap();
    let third: Value = serde_json::from_slice(&third.payload).unwrap();
    assert_eq!(third["data"], 2);
}

#[tokio::test]
async fn old_events_are_removed() {
    let mut world = World::new().await;
    let relay = world.relay();
    world.consumer();
    world.publish_each(0..4).await;
    world.wait_for_effects(4).await;
    world.wait_until_published().await;
    relay.cancel();
    world.wait_until_stopped().await;
    for age in [
        "update outbox set published_at = now() - id * interval '3 days'",
        "update inbox set received_at = now() - interval '3 days' * (
             select outbox.id * 2 from outbox where outbox.event_id = inbox.event_id)",
    ] {
        sqlx::query(age).execute(&world.pool).await.unwrap();
    }

    add_published(&world).await;
    let applied = "insert into inbox (consumer, event_id)
                   select 'another', gen_random_uuid() from generate_series(1, $1)";
    sqlx::query(applied).bind(PUBLISHED).execute(&world.pool).await.unwrap();
    let letters = "insert into inbox_parked (consumer, stream, event_id, customer_id, record, subject,
                       sequence, payload, failures, diverts, next_attempt_at, given_up_at)
                   select 'another', '', gen_random_uuid(), gen_random_uuid(), '', '', days, '', 5, false,
                       now(), now() - make_interval(days => days)
                   from unnest(array[89, 91]) as days";
    sqlx::query(letters).execute(&world.pool).await.unwrap();
    let mut before = Vec::new();
    for table in ["outbox", "inbox"] {
        before.push((table, rows_read(&world.pool, table).await));
    }
    world.relay();
    for (table, before) in before {
        wait_for_reported(&world, table, "n_tup_del", 2).await;
        let read = rows_read(&world.pool, table).await - before;
        assert!((2..i64::from(PUBLISHED)).contains(&read), "{read} rows of {table}");
    }
    // Events younger than a week are left, and those applied in the last two weeks.
    let left = "select (select array_agg(id order by id) from outbox where id <= 4),
                       (select count(*) from inbox where consumer <> 'another')";
    let left: (Vec<i64>, i64) = sqlx::query_as(left).fetch_one(&world.pool).await.unwrap();
    assert_eq!(left, (vec![1, 2], 2));
    // Dead letters are left for three months.
    let left = eventually("the removal of a dead letter", || async {
        let left = "select array_agg(sequence) from inbox_parked";
        let left: Vec<i64> = sqlx::query_scalar(left).fetch_one(&world.pool).await.unwrap();
        (left.len() == 1).then_some(left)
    })
    .await;
    assert_eq!(left, [89]);
}

#[tokio::test]
async fn a_stopped_nats_server_delays_events_but_loses_none() {
    let mut world = World::new().await;
    world.relay();
    world.consumer();
    world.publish_each(0..10).await;
    world.wait_for_effects(10).await;
    world.broker.stop().await;
    world.publish_each(10..300).await;
    assert_eq!(unpublished(&world.pool).await.unwrap(), 290);
    world.broker.start().await;

    let expected: Vec<_> = (0..300).collect();
    assert_eq!(world.wait_for_effects(300).await, expected);
    world.wait_until_published().await;
}

#[tokio::test]
async fn relays_and_consumers_may_start_before_nats() {
    let mut world = World::without_broker().await;
    world.consumer();
    world.relay();
    world.publish_each(0..3).await;
    world.broker.start().await;

    assert_eq!(world.wait_for_effects(3).await, [0, 1, 2]);
}

#[tokio::test]
async fn a_standby_relay_takes_over_without_duplicates() {
    let mut world = World::new().await;
    let first = world.relay();
    world.relay();
    world.relay();
    world.consumer();
    world.publish_each(0..100).await;
    first.cancel();
    world.wait_until_stopped().await;
    world.publish_each(100..200).await;

    let expected: Vec<_> = (0..200).collect();
    assert_eq!(world.wait_for_effects(200).await, expected);
    world.wait_until_published().await;
    assert_eq!(world.messages("ASSAY_CATALOG").await, 200);
}

#[tokio::test]
async fn events_published_but_not_marked_are_not_duplicated() {
    let mut world = World::new().await;
    world.relay();
    world.consumer();
    world.publish_together(0..50).await;
    world.wait_until_published().await;
    // As if the relay was killed before it marked some of the events.
    let forget = "update outbox set published_at = null where id % 3 <> 0";
    sqlx::query(forget).execute(&world.pool).await.unwrap();
    world.publish_together(50..100).await;
    world.wait_until_published().await;

    let expected: Vec<_> = (0..100).collect();
    assert_eq!(world.wait_for_effects(100).await, expected);
    assert_eq!(world.messages("ASSAY_CATALOG").await, 100);
}
