//! Parked events in PostgreSQL. Every statement is bound to one consumer of one stream.

use std::time::Duration;

use assay_proto::CustomerId;
use sqlx::{Error, PgExecutor};
use uuid::Uuid;

use super::{Consumer, delivery::Delivery, received::Received};

/// Maximum number of customers whose events are tried in a round.
const CUSTOMERS: i64 = 100;

/// Maximum number of events that are counted: a count of a million takes seconds.
const COUNTED: i64 = 10_000;

/// A parked event that is due.
#[derive(sqlx::FromRow)]
pub(super) struct Parked {
    pub(super) event_id: Uuid,
    pub(super) customer_id: CustomerId,
    pub(super) record: String,
    pub(super) subject: String,
    sequence: i64,
    pub(super) payload: Vec<u8>,
    pub(super) failures: i32,
    /// Seconds since it was parked.
    age: f64,
}

impl Parked {
    pub(super) fn sequence(&self) -> u64 {
        self.sequence.unsigned_abs()
    }

    pub(super) fn age(&self) -> Duration {
        Duration::try_from_secs_f64(self.age).unwrap_or_default()
    }
}

/// Parks an event that has failed for the first time. `diverts`: later events of its customer wait
/// behind it.
pub(super) async fn park(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    (delivery, event): (&Delivery, &Received),
    diverts: bool,
    delay: Duration,
) -> Result<(), Error> {
    let park = sqlx::query(
        "insert into inbox_parked (consumer, stream, event_id, customer_id, record, subject,
             sequence, payload, failures, diverts, next_attempt_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9, now() + make_interval(secs => $10))
         on conflict (consumer, event_id) do nothing",
    );
    let park = park.bind(consumer.name).bind(consumer.stream.name()).bind(event.id());
    let park = park.bind(event.customer()).bind(event.record());
    let park = park.bind(delivery.message.subject.as_str()).bind(delivery.sequence.cast_signed());
    let park = park.bind(&delivery.message.payload[..]).bind(diverts).bind(delay.as_secs_f64());
    park.execute(db).await?;
    Ok(())
}

/// Parks events that wait behind a blocked one: those of the same record until it is tried again,
/// others until it is their turn.
pub(super) async fn divert(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    customer: CustomerId,
    waiting: &[(&Delivery, &Received)],
) -> Result<(), Error> {
    let events = || waiting.iter().map(|(_, event)| event);
    let deliveries = || waiting.iter().map(|(delivery, _)| delivery);
    sqlx::query(
        "insert into inbox_parked (consumer, stream, event_id, customer_id, record, subject,
             sequence, payload, failures, diverts, next_attempt_at)
         select $1, $2, event_id, $3, record, subject, sequence, payload, 0, true,
                coalesce((select max(earlier.next_attempt_at) from inbox_parked earlier
                          where earlier.consumer = $1 and earlier.stream = $2
                            and earlier.customer_id = $3 and earlier.record = waiting.record
                            and earlier.diverts), now())
         from unnest($4::uuid[], $5::text[], $6::text[], $7::bigint[], $8::bytea[])
             with ordinality as waiting (event_id, record, subject, sequence, payload, place)
         order by place
         on conflict (consumer, event_id) do nothing",
    )
    .bind(consumer.name)
    .bind(consumer.stream.name())
    .bind(customer)
    .bind(events().map(|event| event.id()).collect::<Vec<_>>())
    .bind(events().map(|event| event.record()).collect::<Vec<_>>())
    .bind(deliveries().map(|one| one.message.subject.as_str()).collect::<Vec<_>>())
    .bind(deliveries().map(|one| one.sequence.cast_signed()).collect::<Vec<_>>())
    .bind(deliveries().map(|one| &one.message.payload[..]).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

/// Whether new events of a customer have to wait behind parked ones. The latest one is looked for: the
/// index may still have many entries of earlier ones, which were removed.
pub(super) async fn are_diverted(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    customer: CustomerId,
) -> Result<bool, Error> {
    let latest = "select id from inbox_parked
                  where consumer = $1 and stream = $2 and customer_id = $3 and diverts
                  order by id desc limit 1";
    let latest = sqlx::query_scalar::<_, i64>(latest).bind(consumer.name);
    let latest = latest.bind(consumer.stream.name()).bind(customer).fetch_optional(db).await?;
    Ok(latest.is_some())
}

/// The customers with events that are due, found by one look into the index for each.
pub(super) async fn due(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
) -> Result<Vec<CustomerId>, Error> {
    let due = sqlx::query_scalar(
        "with recursive customer (id) as (
             (select customer_id from inbox_parked where consumer = $1 and stream = $2
              order by customer_id limit 1)
             union all
             select (select customer_id from inbox_parked
                     where consumer = $1 and stream = $2 and customer_id > customer.id
                     order by customer_id limit 1)
             from customer where customer.id is not null
         )
         select customer.id from customer, lateral (
             select next_attempt_at from inbox_parked
             where consumer = $1 and stream = $2 and customer_id = customer.id
             order by next_attempt_at limit 1
         ) as first
         where first.next_attempt_at <= now()
         order by first.next_attempt_at
         limit $3",
    );
    due.bind(consumer.name).bind(consumer.stream.name()).bind(CUSTOMERS).fetch_all(db).await
}

/// What is due of a customer, the oldest first: as much as has room in `bytes`, at least one.
pub(super) async fn read(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    customer: CustomerId,
    limit: i64,
    bytes: i64,
) -> Result<Vec<Parked>, Error> {
    let due = sqlx::query_as(
        "select event_id, customer_id, record, subject, sequence, payload, failures,
                extract(epoch from now() - parked_at)::float8 as age
         from (
             select *, sum(octet_length(payload)) over (order by next_attempt_at, id)
                           - octet_length(payload) as before
             from (
                 select * from inbox_parked
                 where consumer = $1 and stream = $2 and customer_id = $3
                   and next_attempt_at <= now()
                 order by next_attempt_at, id limit $4
             ) as due
         ) as measured
         where before < $5
         order by next_attempt_at, id",
    );
    let due = due.bind(consumer.name).bind(consumer.stream.name()).bind(customer);
    due.bind(limit).bind(bytes).fetch_all(db).await
}

/// Notes that an event has failed again. If it diverts, those of the same record wait with it.
pub(super) async fn postpone(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    parked: &Parked,
    diverts: bool,
    delay: Duration,
) -> Result<(), Error> {
    let postpone = sqlx::query(
        "update inbox_parked
         set next_attempt_at = now() + make_interval(secs => $6),
             failures = failures + (event_id = $5)::int,
             diverts = case when event_id = $5 then $7 else diverts end
         where consumer = $1 and stream = $2 and customer_id = $3 and record = $4
           and (event_id = $5 or ($7 and failures = 0))",
    );
    let postpone = postpone.bind(consumer.name).bind(consumer.stream.name());
    let postpone = postpone.bind(parked.customer_id).bind(&parked.record).bind(parked.event_id);
    postpone.bind(delay.as_secs_f64()).bind(diverts).execute(db).await?;
    Ok(())
}

/// Removes events that are parked no longer.
pub(super) async fn remove(
    db: impl PgExecutor<'_>,
    consumer: &str,
    events: &[Uuid],
) -> Result<(), Error> {
    let remove = "delete from inbox_parked where consumer = $1 and event_id = any($2)";
    sqlx::query(remove).bind(consumer).bind(events).execute(db).await?;
    Ok(())
}

/// Whether any event is parked.
pub(super) async fn exist(db: impl PgExecutor<'_>, consumer: &Consumer) -> Result<bool, Error> {
    let exist = "select exists (select from inbox_parked where consumer = $1 and stream = $2)";
    sqlx::query_scalar(exist).bind(consumer.name).bind(consumer.stream.name()).fetch_one(db).await
}

/// How many events are parked, up to [`COUNTED`], and for how many seconds the oldest of them is.
pub(super) async fn measure(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
) -> Result<(f64, f64), Error> {
    let measure = "select count(*)::float8,
                          coalesce(extract(epoch from now() - min(parked_at)), 0)::float8
                   from (
                       select parked_at from inbox_parked
                       where consumer = $1 and stream = $2 limit $3
                   ) as counted";
    let measure = sqlx::query_as(measure).bind(consumer.name).bind(consumer.stream.name());
    measure.bind(COUNTED).fetch_one(db).await
}
