//! Which events a consumer has applied, and which it failed to.

use std::collections::HashSet;

use sqlx::{Error, PgExecutor};
use uuid::Uuid;

/// Notes events as applied. Gives those back that were not before.
pub(super) async fn enter(
    db: impl PgExecutor<'_>,
    consumer: &str,
    events: &[Uuid],
) -> Result<HashSet<Uuid>, Error> {
    let entered: Vec<Uuid> = sqlx::query_scalar(
        "insert into inbox (consumer, event_id) select $1, unnest($2::uuid[])
         on conflict do nothing returning event_id",
    )
    .bind(consumer)
    .bind(events)
    .fetch_all(db)
    .await?;
    Ok(entered.into_iter().collect())
}

/// Notes that applying an event has failed. Says how often it has by now.
///
/// JetStream's count of deliveries would not do: it grows when the database is away, too.
pub(super) async fn note_failure(
    db: impl PgExecutor<'_>,
    consumer: &str,
    event: Uuid,
) -> Result<i32, Error> {
    sqlx::query_scalar(
        "insert into inbox_failure (consumer, event_id) values ($1, $2)
         on conflict (consumer, event_id)
         do update set failures = inbox_failure.failures + 1, failed_at = now()
         returning failures",
    )
    .bind(consumer)
    .bind(event)
    .fetch_one(db)
    .await
}
