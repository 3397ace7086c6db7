//! Metrics of the outbox, and removal of old rows from outbox and inbox.

use std::time::Duration;

use sqlx::{Error, PgPool};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    Nats, Stream,
    connection::{STATEMENT_TIMEOUT, within},
};

/// Interval of metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(10);

/// Number of metrics intervals between removals of old rows.
const REMOVAL_TICKS: u64 = 6;

/// Time for which dead letters are kept.
const DEAD_LETTER_RETENTION: Duration = Duration::from_hours(24 * 90);

/// Maximum number of rows that a statement removes, so that it is short.
const BATCH: i64 = 1000;

/// Runs until dropped. Failures of the database are logged elsewhere.
pub(super) async fn run(pool: &PgPool, nats: &Nats, stream: Stream) {
    let mut ticks = interval(METRICS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in 0_u64.. {
        ticks.tick().await;
        let mut done = measure(pool, stream).await;
        if tick % REMOVAL_TICKS == 0 {
            done = done.and(remove_old(pool, nats.retention()).await);
        }
        if let Err(error) = done {
            tracing::debug!(%error, "cannot maintain the outbox");
        }
    }
}

async fn measure(pool: &PgPool, stream: Stream) -> Result<(), Error> {
    let state = sqlx::query_as(
        "select count(*)::float8,
                coalesce(extract(epoch from now() - min(created_at)), 0)::float8
         from outbox where published_at is null",
    );
    let (depth, age): (f64, f64) = within(STATEMENT_TIMEOUT, state.fetch_one(pool)).await?;
    record(stream, depth, age);
    Ok(())
}

/// Resets the metrics of a relay that is no longer active.
pub(super) fn reset(stream: Stream) {
    record(stream, 0.0, 0.0);
}

fn record(stream: Stream, depth: f64, age: f64) {
    metrics::gauge!("assay_outbox_depth", "stream" => stream.name()).set(depth);
    metrics::gauge!("assay_outbox_age_seconds", "stream" => stream.name()).set(age);
}

/// Removes rows past their retention, and dead letters except the latest 10,000. An event may be published again at the end of its retention
/// in the outbox, and delivered at the end of that in the stream, so the retention of the inbox is
/// twice as long. Both begin again whenever the event is published and delivered again.
///
/// The order and the array make PostgreSQL use indexes, also if it expects many rows past their
/// retention. The key of the inbox has two columns, so its array has the places of rows.
async fn remove_old(pool: &PgPool, retention: Duration) -> Result<(), Error> {
    remove(
        pool,
        "delete from outbox where id = any(array(
             select id from outbox
             where published_at < now() - make_interval(secs => $1)
             order by published_at limit $2))",
        retention,
    )
    .await?;
    remove(
        pool,
        "delete from inbox where ctid = any(array(
             select ctid from inbox
             where received_at < now() - make_interval(secs => $1)
             order by received_at limit $2))",
        retention * 2,
    )
    .await?;
    remove(
        pool,
        "delete from inbox_parked where id = any(array(
             select id from inbox_parked
             where given_up_at < greatest(now() - make_interval(secs => $1), (
                 select given_up_at from inbox_parked where given_up_at is not null
                 order by given_up_at desc offset 10000 limit 1
             ))
             order by given_up_at limit $2))",
        DEAD_LETTER_RETENTION,
    )
    .await
}

async fn remove(pool: &PgPool, statement: &'static str, age: Duration) -> Result<(), Error> {
    loop {
        let removal = sqlx::query(statement).bind(age.as_secs_f64()).bind(BATCH).execute(pool);
        if within(STATEMENT_TIMEOUT, removal).await?.rows_affected() < BATCH.unsigned_abs() {
            return Ok(());
        }
    }
}
