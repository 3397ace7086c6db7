//! The inbox: the events that a consumer has applied.

use std::collections::HashSet;

use sqlx::{Error, PgExecutor};
use uuid::Uuid;

/// Marks events as applied. Returns those that were not marked before.
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
