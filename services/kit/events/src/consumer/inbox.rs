//! The inbox: the events that a consumer has applied.

use std::collections::HashSet;

use sqlx::{Error, PgConnection};
use uuid::Uuid;

/// Marks events as applied. Returns those that were not marked before. The others are remembered as
/// long as if they had just been applied, since their outbox keeps them for longer after a replay.
pub(super) async fn enter(
    db: &mut PgConnection,
    consumer: &str,
    events: &[Uuid],
) -> Result<HashSet<Uuid>, Error> {
    let entered: Vec<Uuid> = sqlx::query_scalar(
        "insert into inbox (consumer, event_id) select $1, unnest($2::uuid[])
         on conflict do nothing returning event_id",
    )
    .bind(consumer)
    .bind(events)
    .fetch_all(&mut *db)
    .await?;
    let entered: HashSet<Uuid> = entered.into_iter().collect();
    let known: Vec<_> = events.iter().filter(|event| !entered.contains(event)).collect();
    if !known.is_empty() {
        renew(db, consumer, &known).await?;
    }
    Ok(entered)
}

/// Renews entries, except those that a redelivery repeats soon.
async fn renew(db: &mut PgConnection, consumer: &str, known: &[&Uuid]) -> Result<(), Error> {
    let renewal = sqlx::query(
        "update inbox set received_at = now()
         where consumer = $1 and event_id = any($2) and received_at < now() - interval '1 hour'",
    );
    renewal.bind(consumer).bind(known).execute(db).await.map(drop)
}
