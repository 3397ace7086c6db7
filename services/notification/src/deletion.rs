//! Deletion of customers. Their notifications and webhooks are hidden at once, and removed in the
//! background.

use std::time::{Duration, Instant};

use assay_events::Subscribers;
use assay_fair::Throttle;
use assay_proto::{CustomerId, Fault};
use assay_work::{Patience, Queue, Work};
use async_nats::Client;
use sqlx::{AssertSqlSafe, PgPool, PgTransaction};

use crate::{customer, streams::NOTIFICATIONS};

/// Removing the rows of a deleted customer. If it is dropped, the rest of them stays, and is not shown.
pub(crate) const PURGE: Work = Work {
    kind: "purge",
    queue: Queue::Unfinished {
        patience: Patience::of_purges(Duration::from_secs(30)),
        pending: "exists (
            select from deleted_customer d where d.customer_id = w.id and d.purged_at is null
        )",
        drop: "update deleted_customer set purged_at = now()
               where customer_id = any($2) and $1::uuid[] is not null",
    },
};

/// The next customers that have notifications or webhooks, with the nil UUID as project, for the search for
/// lost deletions. Each step of the recursion is two index lookups.
pub const LIVE_CUSTOMERS: &str = "
    with recursive customer (id) as (
        values ($1)
        union all
        select (select id from (
            (select customer_id as id from notification n
             where n.customer_id > customer.id and n.deleted_at is null order by 1 limit 1)
            union all
            (select customer_id from webhook w
             where w.customer_id > customer.id and w.deleted_at is null order by 1 limit 1)
        ) as next order by 1 limit 1)
        from customer where customer.id is not null
    )
    select id as customer_id, '00000000-0000-0000-0000-000000000000'::uuid as project_id
    from customer
    where id > $1 and $2::uuid is not null and not exists (
        select from deleted_customer d where d.customer_id = customer.id
    )
    limit $3";

/// Marks a customer and its webhooks as deleted, and erases their secrets.
pub(crate) async fn delete(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<(), Fault> {
    customer::lock(tx, customer).await?;
    let mark = "insert into deleted_customer (customer_id) values ($1) on conflict do nothing";
    sqlx::query(mark).bind(customer).execute(&mut **tx).await?;
    let webhooks = sqlx::query(
        "update webhook
         set deleted_at = now(), revision = revision + 1, secret = '', previous_secret = null,
             sealed_headers = null
         where customer_id = $1 and deleted_at is null",
    );
    webhooks.bind(customer).execute(&mut **tx).await?;
    Ok(())
}

/// Removes the rows of deleted customers in short statements, and returns the number of
/// notifications.
pub(crate) async fn purge(db: &PgPool, throttle: &mut Throttle) -> Result<u64, Fault> {
    let is_due = PURGE.is_due("deleted_customer.customer_id", "deleted_customer.customer_id");
    let pending =
        format!("select customer_id from deleted_customer where purged_at is null and {is_due}");
    let pending: Vec<CustomerId> = sqlx::query_scalar(AssertSqlSafe(pending)).fetch_all(db).await?;
    let mut count = 0;
    for customer in pending {
        let Some(attempt) = PURGE.begin(db, customer, customer.0).await? else { continue };
        match purge_customer(db, throttle, customer).await {
            Ok(removed) => {
                count += removed;
                attempt.done(db).await?;
            }
            Err(fault) => attempt.failed(db, &fault).await?,
        }
    }
    Ok(count)
}

/// Removes the rows of a deleted customer, and returns the number of notifications.
async fn purge_customer(
    db: &PgPool,
    throttle: &mut Throttle,
    customer: CustomerId,
) -> Result<u64, Fault> {
    let mut count = 0;
    // Each of them has an index that begins with the customer.
    for which in ["deleted_at is null", "deleted_at is not null"] {
        count += remove_all(throttle, |limit| async move {
            let removed = sqlx::query(AssertSqlSafe(format!(
                "delete from notification where id = any(array(
                     select id from notification where customer_id = $1 and {which} limit $2
                     for update skip locked
                 ))"
            )));
            Ok(removed.bind(customer).bind(limit).execute(db).await?.rows_affected())
        })
        .await?;
    }
    remove_all(throttle, |limit| async move {
        let removed = sqlx::query(
            "delete from webhook_attempt where id = any(array(
                 select id from webhook_attempt
                 where webhook_id in (select id from webhook where customer_id = $1)
                 limit $2
                 for update skip locked
             ))",
        );
        Ok(removed.bind(customer).bind(limit).execute(db).await?.rows_affected())
    })
    .await?;
    for statement in [
        "delete from webhook where customer_id = $1
         and not exists (select from webhook_delivery where webhook_id = id)",
        "update deleted_customer set purged_at = now() where customer_id = $1
         and not exists (select from notification n where n.customer_id = $1 and n.deleted_at is null)
         and not exists (select from notification n where n.customer_id = $1 and n.deleted_at is not null)
         and not exists (select from webhook w where w.customer_id = $1)",
    ] {
        sqlx::query(statement).bind(customer).execute(db).await?;
    }
    Ok(count)
}

/// Removes the NATS consumers of deleted customers' subscribers, once all their events are published. Those that cannot
/// be removed are tried again by the next call.
pub(crate) async fn remove_subscribers(db: &PgPool, nats: &Client) -> anyhow::Result<()> {
    let pending: Vec<CustomerId> = sqlx::query_scalar(
        "select customer_id from deleted_customer d where withdrawn_at is null
         and not exists (select from outbox o
                         where o.customer_id = d.customer_id and o.published_at is null)",
    )
    .fetch_all(db)
    .await?;
    if pending.is_empty() {
        return Ok(());
    }
    let removed = Subscribers::of(NOTIFICATIONS, nats.clone()).remove_customers(&pending).await?;
    let done = "update deleted_customer set withdrawn_at = now() where customer_id = any($1)";
    sqlx::query(done).bind(removed).execute(db).await?;
    Ok(())
}

/// Removes rows, up to a limit in each statement, until none is left. Returns their number.
pub(crate) async fn remove_all<F: Future<Output = Result<u64, Fault>>>(
    throttle: &mut Throttle,
    remove: impl Fn(i64) -> F,
) -> Result<u64, Fault> {
    let mut count = 0;
    loop {
        let (begun, limit) = (Instant::now(), throttle.batch_size());
        let removed = remove(limit).await?;
        count += removed;
        if removed < limit.unsigned_abs() {
            return Ok(count);
        }
        throttle.pause(begun.elapsed()).await;
    }
}
