//! Customers that were deleted: refused at once, their webhooks gone, the rest removed in the
//! background.

use assay_events::Subscribers;
use assay_proto::{CustomerId, Fault};
use assay_runtime::Pace;
use async_nats::Client;
use sqlx::{PgExecutor, PgPool, PgTransaction};

use crate::{PUBLISHED, notification::store::take_turn, retention::remove_all};

/// Deletes a customer. Its webhooks and their secrets go now.
pub(crate) async fn delete(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<(), Fault> {
    take_turn(tx, customer).await?;
    let note = "insert into deleted_customer (customer_id) values ($1) on conflict do nothing";
    sqlx::query(note).bind(customer).execute(&mut **tx).await?;
    let webhooks = sqlx::query(
        "update webhook
         set deleted_at = now(), revision = revision + 1, secret = '', previous_secret = null
         where customer_id = $1 and deleted_at is null",
    );
    webhooks.bind(customer).execute(&mut **tx).await?;
    Ok(())
}

pub(crate) async fn is_deleted(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<bool, Fault> {
    let is = "select exists (select from deleted_customer where customer_id = $1)";
    Ok(sqlx::query_scalar(is).bind(customer).fetch_one(db).await?)
}

/// Fails if the customer is deleted. Who adds something has the customer's turn.
pub(crate) async fn refuse_deleted(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    if is_deleted(db, customer).await? { Err(Fault::NotFound("customer")) } else { Ok(()) }
}

/// Removes what is left of deleted customers, some at a time.
pub(crate) async fn purge(db: &PgPool, pace: &mut Pace) -> Result<u64, Fault> {
    let left = "select customer_id from deleted_customer where purged_at is null";
    let left: Vec<CustomerId> = sqlx::query_scalar(left).fetch_all(db).await?;
    let mut count = 0;
    for customer in left {
        count += remove_all(pace, |limit| async move {
            let removed = sqlx::query(
                "delete from notification where id = any(array(
                         select id from notification where customer_id = $1 limit $2
                         for update skip locked
                     ))",
            );
            Ok(removed.bind(customer).bind(limit).execute(db).await?.rows_affected())
        })
        .await?;
        for done in [
            "delete from webhook where customer_id = $1
             and not exists (select from webhook_delivery where webhook_id = id)",
            "update deleted_customer set purged_at = now() where customer_id = $1
             and not exists (select from notification n where n.customer_id = $1)
             and not exists (select from webhook w where w.customer_id = $1)",
        ] {
            sqlx::query(done).bind(customer).execute(db).await?;
        }
    }
    Ok(count)
}

/// Removes the subscribers of deleted customers, as soon as everything is published.
pub(crate) async fn withdraw(db: &PgPool, nats: &Client) -> anyhow::Result<()> {
    let left: Vec<CustomerId> = sqlx::query_scalar(
        "select customer_id from deleted_customer d where withdrawn_at is null
         and not exists (select from outbox o
                         where o.customer_id = d.customer_id and o.published_at is null)",
    )
    .fetch_all(db)
    .await?;
    for customer in left {
        Subscribers::of(PUBLISHED, nats.clone()).remove_customer(customer).await?;
        let done = "update deleted_customer set withdrawn_at = now() where customer_id = $1";
        sqlx::query(done).bind(customer).execute(db).await?;
    }
    Ok(())
}
