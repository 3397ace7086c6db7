//! Notifications in PostgreSQL. Every statement is bound to one customer.

use std::time::Duration;

use assay_events::{Event, publish_all};
use assay_proto::{
    CustomerId, Fault, NotificationId,
    notification::{Notification, NotificationInput},
};
use assay_runtime::{
    history::{self, EXAMINED},
    list::{Rows, Slice},
};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction, Postgres, postgres::PgArguments};
use uuid::Uuid;

use super::rules::NO_STATE;
use crate::{deletion, delivery};

/// How many notifications are read at once by who watches.
const BATCH: i64 = 500;

type Query = sqlx::query::QueryAs<'static, Postgres, Notification, PgArguments>;

pub(crate) const COLUMNS: &str = "id, source, source_id, target, target_id, action, state,
                       revision::text as data_version, archived";

/// Which notifications somebody wants to see; what is absent does not matter.
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

/// Lists a slice of the notifications, newest first. What is rare is searched for in short looks.
pub(crate) async fn list(
    db: &PgPool,
    customer: CustomerId,
    filter: &Filter,
    slice: &Slice,
) -> Result<Rows<Notification>, Fault> {
    let bound = move |before: Uuid| async move {
        if filter.is_none() && slice.pattern.is_none() {
            return Ok(None);
        }
        let bound = sqlx::query_scalar(
            "select id from notification
             where customer_id = $1 and id < $2 and deleted_at is null
             order by id desc offset $3 limit 1",
        );
        let bound = bound.bind(customer).bind(before).bind(EXAMINED - 1);
        Ok(bound.fetch_optional(db).await?)
    };
    let find = move |from: Uuid, before: Uuid, limit: i64| async move {
        let query: Query = sqlx::query_as(AssertSqlSafe(format!(
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

/// Where the latest notification stands.
pub(crate) async fn last_position(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<i64, Fault> {
    let last = sqlx::query_scalar(
        "select coalesce(max(position), 0) from notification
         where customer_id = $1 and deleted_at is null",
    );
    Ok(last.bind(customer).fetch_one(db).await?)
}

/// The notifications found after a position, oldest first.
pub(crate) struct Look {
    pub(crate) found: Vec<(i64, Notification)>,
    /// The last position that was examined.
    pub(crate) last: i64,
    /// Whether there may be more after that.
    pub(crate) is_more: bool,
}

/// Looks at some notifications after a position, whether they match or not.
pub(crate) async fn look_after(
    db: &PgPool,
    customer: CustomerId,
    filter: &Filter,
    after: i64,
) -> Result<Look, Fault> {
    let most = if filter.is_none() { BATCH } else { EXAMINED };
    let examined = sqlx::query_as(
        "select coalesce(max(position), $2), count(*) from (
             select position from notification
             where customer_id = $1 and position > $2 and deleted_at is null
             order by position limit $3
         ) as examined",
    );
    let examined = examined.bind(customer).bind(after).bind(most);
    let (last, count): (i64, i64) = examined.fetch_one(db).await?;
    let look = Look { found: Vec::new(), last, is_more: count == most };
    if count == 0 {
        return Ok(look);
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
            Ok(Look { last: *last, is_more: true, found })
        }
        _ => Ok(Look { found, ..look }),
    }
}

#[derive(sqlx::FromRow)]
struct Positioned {
    position: i64,
    #[sqlx(flatten)]
    notification: Notification,
}

/// Removes some of the notifications of all customers that are older than `age`; says how many.
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

/// Adds a notification and has it published.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    input: NotificationInput,
) -> Result<Notification, Fault> {
    let inserted = insert_all(tx, customer, vec![input]).await?.pop();
    inserted.ok_or_else(|| Fault::internal("a notification was not inserted"))
}

/// Adds notifications and has them published, in this order, and sent to webhooks.
pub(crate) async fn insert_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    inputs: Vec<NotificationInput>,
) -> Result<Vec<Notification>, Fault> {
    take_turn(tx, customer).await?;
    deletion::refuse_deleted(&mut **tx, customer).await?;
    let column = |of: fn(&NotificationInput) -> &str| inputs.iter().map(of).collect::<Vec<_>>();
    let target_ids: Vec<Option<&str>> =
        inputs.iter().map(|input| input.target_id.as_deref()).collect();
    let query: Query = sqlx::query_as(AssertSqlSafe(format!(
        "insert into notification
             (customer_id, id, source, source_id, target, target_id, action, state)
         select $1, id, source, source_id, target, target_id, action, state
         from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                     $8::text[]) as input (id, source, source_id, target, target_id, action, state)
         returning {COLUMNS}"
    )));
    let mut inserted = query
        .bind(customer)
        .bind(inputs.iter().map(|_| NotificationId::new()).collect::<Vec<_>>())
        .bind(column(|input| &input.source))
        .bind(column(|input| &input.source_id))
        .bind(column(|input| &input.target))
        .bind(target_ids)
        .bind(column(|input| &input.action))
        .bind(column(|input| input.state.as_deref().unwrap_or(NO_STATE)))
        .fetch_all(&mut **tx)
        .await?;
    inserted.sort_unstable_by(|one, other| one.id.cmp(&other.id));

    delivery::store::insert_for(tx, customer, &inserted).await?;
    let events: Result<Vec<Event>, Fault> =
        inserted.iter().map(|notification| event(customer, notification)).collect();
    publish_all(tx, &events?).await?;
    Ok(inserted)
}

/// Waits for its turn to add notifications of the customer, so that they are published in the order
/// in which they are listed.
pub(crate) async fn take_turn(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    sqlx::query("select pg_advisory_xact_lock(hashtextextended($1::text, 0))")
        .bind(customer)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The event that carries a notification, and has its id.
pub(crate) fn event(customer: CustomerId, notification: &Notification) -> Result<Event, Fault> {
    let Notification { id, source, action, .. } = notification;
    let event = Event::new(customer, id, source, action, notification)?;
    Ok(event.with_id(NotificationId::from_path(id)?.0))
}

/// Takes a notification out of the list.
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
