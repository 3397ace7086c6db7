//! Notifications in PostgreSQL. Every statement is bound to one customer.

use std::time::Duration;

use assay_proto::{
    CustomerId, Fault, NotificationId, NotificationOrigin, Rendered, name_of,
    notification::{Notification, NotificationInput},
};
use assay_rpc::{
    history::{self, SCANNED},
    list::{Rows, Slice},
};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

use super::rules::NO_STATE;

const COLUMNS: &str = Notification::COLUMNS;

/// Maximum number of notifications that [`scan_after`] returns.
const BATCH: i64 = 500;

/// Selects notifications by the kind of their source and by their action.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) source: Option<String>,
    pub(crate) action: Option<String>,
}

impl Filter {
    fn is_none(&self) -> bool {
        self.source.is_none() && self.action.is_none()
    }
}

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
        let query = sqlx::query_as(AssertSqlSafe(format!(
            "select {COLUMNS} from notification
             where customer_id = $1 and id >= $2 and id < $3 and deleted_at is null
               and ($4::text is null
                    or source ilike $4 or target ilike $4 or action ilike $4 or state ilike $4)
               and ($5::text is null or source = $5) and ($6::text is null or action = $6)
             order by id desc
             limit $7"
        )));
        let found = query.bind(customer).bind(from).bind(before).bind(slice.pattern.clone());
        let found = found.bind(filter.source.clone()).bind(filter.action.clone()).bind(limit);
        slice.read(found.fetch(db)).await
    };
    history::search(slice, bound, find).await
}

/// Notifications found after a position, oldest first.
pub(crate) struct Scan {
    pub(crate) found: Vec<(i64, Notification)>,
    /// The last position that was examined.
    pub(crate) last: i64,
    /// Whether there may be more after that.
    pub(crate) is_more: bool,
}

/// Examines a bounded number of notifications after a position and returns those that match.
pub(crate) async fn scan_after(
    db: &PgPool,
    customer: CustomerId,
    filter: &Filter,
    after: i64,
) -> Result<Scan, Fault> {
    let limit = if filter.is_none() { BATCH } else { SCANNED };
    let examined = sqlx::query_as(
        "select coalesce(max(position), $2), count(*) from (
             select position from notification
             where customer_id = $1 and position > $2 and deleted_at is null
             order by position limit $3
         ) as examined",
    );
    let examined = examined.bind(customer).bind(after).bind(limit);
    let (last, count): (i64, i64) = examined.fetch_one(db).await?;
    let scan = Scan { found: Vec::new(), last, is_more: count == limit };
    if count == 0 {
        return Ok(scan);
    }
    let found = sqlx::query_as::<_, Positioned>(AssertSqlSafe(format!(
        "select position, {COLUMNS} from notification
         where customer_id = $1 and position > $2 and position <= $3 and deleted_at is null
           and ($4::text is null or source = $4) and ($5::text is null or action = $5)
         order by position
         limit $6"
    )));
    let found = found.bind(customer).bind(after).bind(last);
    let found = found.bind(&filter.source).bind(&filter.action).bind(BATCH);
    let found = found.fetch_all(db).await?.into_iter();
    let found: Vec<_> =
        found.map(|Positioned { position, notification }| (position, notification)).collect();
    match found.last() {
        Some((last, _)) if i64::try_from(found.len()).is_ok_and(|count| count == BATCH) => {
            Ok(Scan { last: *last, is_more: true, found })
        }
        _ => Ok(Scan { found, ..scan }),
    }
}

#[derive(sqlx::FromRow)]
struct Positioned {
    position: i64,
    #[sqlx(flatten)]
    notification: Notification,
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

/// Inserts notifications of an origin and returns them in this order.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    origin: NotificationOrigin,
    inputs: &[&NotificationInput],
) -> Result<Vec<Notification>, Fault> {
    let column = |of: fn(&NotificationInput) -> &str| {
        inputs.iter().map(|input| of(input)).collect::<Vec<_>>()
    };
    let target_ids: Vec<Option<&str>> =
        inputs.iter().map(|input| input.target_id.as_deref()).collect();
    let query = sqlx::query_as(AssertSqlSafe(format!(
        "insert into notification
             (customer_id, origin, id, source, source_id, target, target_id, action, state)
         select $1, $9, input.*
         from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                     $8::text[]) as input
         returning {COLUMNS}"
    )));
    let mut inserted: Vec<Notification> = query
        .bind(customer)
        .bind(inputs.iter().map(|_| NotificationId::new()).collect::<Vec<_>>())
        .bind(column(|input| &input.source))
        .bind(column(|input| &input.source_id))
        .bind(column(|input| &input.target))
        .bind(target_ids)
        .bind(column(|input| &input.action))
        .bind(column(|input| input.state.as_deref().unwrap_or(NO_STATE)))
        .bind(name_of(origin))
        .fetch_all(&mut **tx)
        .await?;
    inserted.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    Ok(inserted)
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
