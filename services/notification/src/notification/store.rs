//! Notifications in PostgreSQL. Every statement is bound to one customer.

use std::time::Duration;

use assay_proto::{
    CustomerId, Fault, NotificationId, Rendered, Timestamp, name_of, notification::Notification,
};
use assay_rpc::{
    history::{self, SCANNED},
    list::{Rows, Slice},
};
use futures::TryStreamExt;
use prost::Message;
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction, types::Json};
use uuid::Uuid;

use super::details;
use crate::filter::Filter;

const COLUMNS: &str = Notification::COLUMNS;

/// Lists a slice of the notifications, newest first. A search through a long history takes several short
/// queries.
pub(crate) async fn list(
    db: &PgPool,
    customer: CustomerId,
    filter: &Filter,
    slice: &Slice,
) -> Result<Rows<Rendered<Notification>>, Fault> {
    let bound = move |before: Uuid| async move {
        if filter.is_none() && slice.pattern.is_none() {
            return Ok(None);
        }
        let bound = sqlx::query_scalar(
            "select id from notification
             where customer_id = $1 and id < $2 and deleted_at is null
             order by id desc offset $3 limit 1",
        );
        let bound = bound.bind(customer).bind(before).bind(SCANNED - 1);
        Ok(bound.fetch_optional(db).await?)
    };
    let find = move |from: Uuid, before: Uuid, limit: i64| async move {
        let conditions = Filter::conditions(6);
        let query = sqlx::query_as(AssertSqlSafe(format!(
            "select {COLUMNS} from notification
             where customer_id = $1 and id >= $2 and id < $3 and deleted_at is null
               and ($4::text is null
                    or source ilike $4 or target ilike $4 or action ilike $4 or state ilike $4)
               and {conditions}
             order by id desc
             limit $5"
        )));
        let found = query.bind(customer).bind(from).bind(before).bind(slice.pattern.clone());
        let found = filter.bind(found.bind(limit));
        slice.read(found.fetch(db)).await
    };
    history::search(slice, bound, find).await
}

/// Notifications found after a position, oldest first.
pub(crate) struct Scan {
    pub(crate) found: Vec<Positioned>,
    /// Memory that they take, in bytes.
    pub(crate) size: usize,
    /// The last position that was examined.
    pub(crate) last: i64,
    /// Whether there may be more after that.
    pub(crate) is_more: bool,
}

/// Examines a bounded number of notifications after a position and returns those that match, up to the one with which
/// they take `most` bytes of memory.
pub(crate) async fn scan_after(
    db: &PgPool,
    customer: CustomerId,
    filter: &Filter,
    after: i64,
    most: usize,
) -> Result<Scan, Fault> {
    let batch = i64::try_from(most / size_of::<Positioned>()).map_err(Fault::internal)?.max(1);
    let limit = if filter.is_wide() { batch } else { SCANNED };
    let examined = sqlx::query_as(
        "select coalesce(max(position), $2), count(*) from (
             select position from notification
             where customer_id = $1 and position > $2 and deleted_at is null
             order by position limit $3
         ) as examined",
    );
    let examined = examined.bind(customer).bind(after).bind(limit);
    let (last, count): (i64, i64) = examined.fetch_one(db).await?;
    let scan = Scan { found: Vec::new(), size: 0, last, is_more: count == limit };
    if count == 0 {
        return Ok(scan);
    }
    let conditions = Filter::conditions(5);
    let found = sqlx::query_as::<_, Positioned>(AssertSqlSafe(format!(
        "select position, created_at, {COLUMNS} from notification
         where customer_id = $1 and position > $2 and position <= $3 and deleted_at is null
           and {conditions}
         order by position
         limit $4"
    )));
    let found = found.bind(customer).bind(after).bind(last).bind(batch);
    let mut rows = filter.bind(found).fetch(db);
    let (mut found, mut size) = (Vec::new(), 0);
    while size < most
        && let Some(row) = rows.try_next().await?
    {
        size += size_of::<Positioned>() + row.notification.encoded_len();
        found.push(row);
    }
    drop(rows);
    let is_full = size >= most || i64::try_from(found.len()).is_ok_and(|count| count == batch);
    match found.last() {
        Some(last) if is_full => Ok(Scan { last: last.position, is_more: true, size, found }),
        _ => Ok(Scan { found, size, ..scan }),
    }
}

/// A notification, with its position in the stream of its customer and its time.
#[derive(sqlx::FromRow)]
pub(crate) struct Positioned {
    pub(crate) position: i64,
    pub(crate) created_at: Timestamp,
    #[sqlx(flatten)]
    pub(crate) notification: Notification,
}

/// Removes up to `limit` notifications older than `age`, of all customers, and returns their number.
pub(crate) async fn prune(
    db: impl PgExecutor<'_>,
    age: Duration,
    limit: i64,
) -> Result<u64, Fault> {
    let removed = sqlx::query(
        "delete from notification where id = any(array(
             select id from notification
             where created_at < now() - make_interval(secs => $1)
             order by created_at
             limit $2
             for update skip locked
         ))",
    );
    let removed = removed.bind(age.as_secs_f64()).bind(limit).execute(db).await?;
    Ok(removed.rows_affected())
}

/// Returns the largest id of a notification of a customer, deleted or not.
pub(super) async fn last_id(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<Option<NotificationId>, Fault> {
    let last = sqlx::query_scalar(
        "select greatest(
             (select id from notification where customer_id = $1 and deleted_at is null
              order by id desc limit 1),
             (select id from notification where customer_id = $1 and deleted_at is not null
              order by id desc limit 1)
         )",
    );
    Ok(last.bind(customer).fetch_one(db).await?)
}

/// Inserts notifications.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    notifications: &[Notification],
) -> Result<(), Fault> {
    let column = |of: fn(&Notification) -> &str| notifications.iter().map(of).collect::<Vec<_>>();
    let ids: Result<Vec<_>, _> =
        notifications.iter().map(|one| NotificationId::from_path(&one.id)).collect();
    let details: Result<Vec<_>, _> =
        notifications.iter().map(|one| details::of(one).map(Json)).collect();
    sqlx::query(
        "insert into notification
             (customer_id, id, source, source_id, target, target_id, action, state, origin, details)
         select $1, input.*
         from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                     $8::text[], $9::text[], $10::jsonb[]) as input",
    )
    .bind(customer)
    .bind(ids?)
    .bind(column(|one| &one.source))
    .bind(column(|one| &one.source_id))
    .bind(column(|one| &one.target))
    .bind(notifications.iter().map(|one| one.target_id.as_deref()).collect::<Vec<_>>())
    .bind(column(|one| &one.action))
    .bind(column(|one| &one.state))
    .bind(notifications.iter().map(|one| name_of(one.origin())).collect::<Vec<_>>())
    .bind(details?)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Marks a notification as deleted.
pub(crate) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: NotificationId,
) -> Result<(), Fault> {
    let done = sqlx::query(
        "update notification set deleted_at = now(), revision = revision + 1
         where customer_id = $1 and id = $2 and deleted_at is null",
    )
    .bind(customer)
    .bind(id)
    .execute(&mut **tx)
    .await?;
    if done.rows_affected() == 0 { Err(Fault::NotFound("notification")) } else { Ok(()) }
}
