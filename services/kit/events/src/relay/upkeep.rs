//! Keeps outbox and inbox small, and tells how the outbox is doing.

use std::time::Duration;

use sqlx::{Error, PgPool};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    Nats, Stream,
    connection::{PATIENCE, within},
};

/// How often the outbox is measured.
const MEASURE: Duration = Duration::from_secs(10);

/// How many measurements lie between two removals of what is old.
const TIDY: u64 = 6;

/// How many rows are removed at once: few enough to be in nobody's way.
const PORTION: i64 = 1000;

/// Works until dropped. Its failures are the database's, which others report.
pub(super) async fn run(pool: &PgPool, nats: &Nats, stream: Stream) {
    let mut ticks = interval(MEASURE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in 0_u64.. {
        ticks.tick().await;
        let mut done = measure(pool, stream).await;
        if tick % TIDY == 0 {
            done = done.and(tidy(pool, nats.retention()).await);
        }
        if let Err(error) = done {
            tracing::debug!(%error, "outbox not kept up");
        }
    }
}

async fn measure(pool: &PgPool, stream: Stream) -> Result<(), Error> {
    let state = sqlx::query_as(
        "select count(*)::float8,
                coalesce(extract(epoch from now() - min(created_at)), 0)::float8
         from outbox where published_at is null",
    );
    let (depth, age): (f64, f64) = within(PATIENCE, state.fetch_one(pool)).await?;
    tell(stream, depth, age);
    Ok(())
}

/// Leaves it to the next relay to tell how the outbox is doing.
pub(super) fn forget(stream: Stream) {
    tell(stream, 0.0, 0.0);
}

fn tell(stream: Stream, depth: f64, age: f64) {
    metrics::gauge!("assay_outbox_depth", "stream" => stream.name()).set(depth);
    metrics::gauge!("assay_outbox_age_seconds", "stream" => stream.name()).set(age);
}

/// Removes what is too old to come again. An event may be published again at the end of its time in
/// the outbox, and delivered at the end of its time in the stream, so the inbox remembers twice as
/// long.
async fn tidy(pool: &PgPool, retention: Duration) -> Result<(), Error> {
    remove(
        pool,
        "delete from outbox where id in (
             select id from outbox
             where published_at < now() - make_interval(secs => $1) limit $2)",
        retention,
    )
    .await?;
    remove(
        pool,
        "delete from inbox where (consumer, event_id) in (
             select consumer, event_id from inbox
             where received_at < now() - make_interval(secs => $1) limit $2)",
        retention * 2,
    )
    .await
}

async fn remove(pool: &PgPool, statement: &'static str, age: Duration) -> Result<(), Error> {
    loop {
        let removal = sqlx::query(statement).bind(age.as_secs_f64()).bind(PORTION).execute(pool);
        if within(PATIENCE, removal).await?.rows_affected() < PORTION.unsigned_abs() {
            return Ok(());
        }
    }
}
