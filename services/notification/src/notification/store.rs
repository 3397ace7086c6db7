//! Notifications in PostgreSQL. Every statement is bound to one customer.

use std::time::Duration;

use assay_events::{Event, publish_all};
use assay_proto::{
    CustomerId, Fault, NotificationId,
    notification::{Notification, NotificationInput},
};
use assay_runtime::list::Slice;
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments};

use super::rules::NO_STATE;
use crate::delivery;

type Query = sqlx::query::QueryAs<'static, Postgres, Notification, PgArguments>;

pub(crate) const COLUMNS: &str = "id, source, source_id, target, target_id, action, state,
                       revision::text as data_version, archived";

/// Which notifications somebody wants to see; what is absent does not matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) source: Option<String>,
    pub(crate) action: Option<String>,
}

/// Lists a slice of the notifications, newest first.
pub(crate) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    filter: &Filter,
    slice: &Slice,
) -> Result<Vec<Notification>, Fault> {
    let after = NotificationId::parse_if_any("cursor", slice.after.as_deref())?;
    let query: Query = sqlx::query_as(AssertSqlSafe(format!(
        "select {COLUMNS} from notification
         where customer_id = $1 and deleted_at is null and ($2::uuid is null or id < $2)
           and ($3::text is null
                or source ilike $3 or target ilike $3 or action ilike $3 or state ilike $3)
           and ($5::text is null or source = $5) and ($6::text is null or action = $6)
         order by id desc
         limit $4"
    )));
    let found = query.bind(customer).bind(after).bind(&slice.pattern).bind(slice.limit);
    Ok(found.bind(&filter.source).bind(&filter.action).fetch_all(db).await?)
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

/// Notifications after a position, oldest first.
pub(crate) async fn list_after(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    filter: &Filter,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, Notification)>, Fault> {
    let found = sqlx::query_as::<_, Positioned>(AssertSqlSafe(format!(
        "select position, {COLUMNS} from notification
         where customer_id = $1 and position > $2 and deleted_at is null
           and ($3::text is null or source = $3) and ($4::text is null or action = $4)
         order by position
         limit $5"
    )));
    let found = found.bind(customer).bind(after).bind(&filter.source).bind(&filter.action);
    let found = found.bind(limit).fetch_all(db).await?.into_iter();
    Ok(found.map(|Positioned { position, notification }| (position, notification)).collect())
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
    Ok(event.with_id(NotificationId::named(id)?.0))
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
