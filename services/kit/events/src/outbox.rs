//! Publishing events through the outbox.

use std::time::Duration;

use assay_proto::{CustomerId, Fault};
use assay_rpc::parts::PART;
use futures::{FutureExt, future::BoxFuture};
use sqlx::{PgExecutor, PgPool, PgTransaction, types::Json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::Event;

/// Pause between two checks for unpublished events, and time without progress after which they are not awaited.
const PAUSE: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_mins(5);

/// Adds an event to the outbox. It is published after the transaction is committed.
pub async fn publish(tx: &mut PgTransaction<'_>, event: &Event) -> Result<(), Fault> {
    insert(tx, std::slice::from_ref(event)).await
}

/// Adds several events to the outbox. They are published in this order after the transaction is
/// committed.
///
/// Events of one record are in the order of its changes, if each change locks the record before it
/// publishes. Only the events of one statement are in memory at a time.
///
/// The future is boxed, since futures with closures that borrow are often not [`Send`] for the compiler.
pub fn publish_all<'t, I>(
    tx: &'t mut PgTransaction<'_>,
    events: I,
) -> BoxFuture<'t, Result<(), Fault>>
where
    I: IntoIterator<Item = Result<Event, Fault>, IntoIter: Send + 't>,
{
    let events = events.into_iter();
    async move {
        let (mut part, mut size) = (Vec::new(), 0);
        for event in events {
            let event = event?;
            size += event.size();
            part.push(event);
            if size >= PART {
                insert(tx, &part).await?;
                part.clear();
                size = 0;
            }
        }
        insert(tx, &part).await
    }
    .boxed()
}

async fn insert(tx: &mut PgTransaction<'_>, events: &[Event]) -> Result<(), Fault> {
    if events.is_empty() {
        return Ok(());
    }
    let column = |of: fn(&Event) -> &str| events.iter().map(of).collect::<Vec<_>>();
    let traces = events.iter().map(|event| event.trace.as_ref().map(Json));
    sqlx::query(
        "insert into outbox (event_id, customer_id, record, noun, action, data, trace, client_id)
         select event_id, customer_id, record, noun, action, data::json, coalesce(trace, $8), client_id
         from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[],
                     $7::jsonb[], $9::uuid[])
             with ordinality
             as event (event_id, customer_id, record, noun, action, data, trace, client_id, position)
         order by position",
    )
    .bind(events.iter().map(|event| event.id).collect::<Vec<Uuid>>())
    .bind(events.iter().map(|event| event.customer).collect::<Vec<CustomerId>>())
    .bind(column(|event| &event.record))
    .bind(column(|event| &event.noun))
    .bind(column(|event| &event.action))
    .bind(column(|event| &event.data))
    .bind(traces.collect::<Vec<_>>())
    .bind(Json(assay_runtime::trace::to_map()))
    .bind(events.iter().map(|event| event.client).collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Returns the number of events that have not been published.
pub async fn unpublished(db: impl PgExecutor<'_>) -> Result<i64, Fault> {
    let count = sqlx::query_scalar("select count(*) from outbox where published_at is null");
    Ok(count.fetch_one(db).await?)
}

/// Waits while more than `most` events are unpublished, so that those of users do not wait behind many events of work in
/// the background. Fails if their number does not fall for five minutes.
pub async fn wait_for_relay(db: &PgPool, most: i64) -> Result<(), Fault> {
    let (mut least, mut since) = (i64::MAX, Instant::now());
    while is_behind(db, most).await? {
        let waiting = unpublished(db).await?;
        if waiting < least {
            (least, since) = (waiting, Instant::now());
        } else if since.elapsed() > PATIENCE {
            return Err(Fault::Unavailable("the relay of events"));
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Whether more than `most` events have not been published.
async fn is_behind(db: impl PgExecutor<'_>, most: i64) -> Result<bool, Fault> {
    let behind = sqlx::query_scalar(
        "select count(*) > $1
         from (select from outbox where published_at is null limit $1 + 1) unpublished",
    );
    Ok(behind.bind(most).fetch_one(db).await?)
}
