//! Parked events in PostgreSQL. Every statement is bound to one consumer of one stream. Those that were
//! given up are dead letters, and none of these statements returns them.

use std::time::Duration;

use assay_proto::CustomerId;
use assay_work::{announce, shortened};
use sqlx::{Error, PgExecutor};
use uuid::Uuid;

use super::{definition::Consumer, delivery::Delivery, received::Received};
use crate::dead_letters::EVENT;

/// Maximum number of customers whose events are retried in a round.
const CUSTOMERS: i64 = 100;

/// Maximum count of parked events. Counting a million takes seconds.
const COUNTED: i64 = 10_000;

/// A parked event that is due.
#[derive(sqlx::FromRow)]
pub(super) struct Parked {
    pub(super) event_id: Uuid,
    pub(super) customer_id: CustomerId,
    pub(super) record: String,
    pub(super) payload: Vec<u8>,
    pub(super) failures: i32,
    /// Seconds since the event was parked.
    age: f64,
}

impl Parked {
    pub(super) fn age(&self) -> Duration {
        Duration::try_from_secs_f64(self.age).unwrap_or_default()
    }
}

/// Parks an event that has failed for the first time. If `diverts`, later events of its customer
/// wait behind it.
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

/// Parks events that wait behind a blocked one: those of the same record until it is retried,
/// others until their turn.
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
             with ordinality as waiting (event_id, record, subject, sequence, payload, position)
         order by position
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

/// Whether new events of a customer must wait behind parked ones. Reads the index from its end,
/// because it may start with many entries of removed rows.
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

/// Returns customers with events that are due, by one lookup in the index for each.
pub(super) async fn due(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
) -> Result<Vec<CustomerId>, Error> {
    let due = sqlx::query_scalar(
        "with recursive customer (id) as (
             (select customer_id from inbox_parked
              where consumer = $1 and stream = $2 and given_up_at is null
              order by customer_id limit 1)
             union all
             select (select customer_id from inbox_parked
                     where consumer = $1 and stream = $2 and given_up_at is null
                       and customer_id > customer.id
                     order by customer_id limit 1)
             from customer where customer.id is not null
         )
         select customer.id from customer, lateral (
             select next_attempt_at from inbox_parked
             where consumer = $1 and stream = $2 and given_up_at is null
               and customer_id = customer.id
             order by next_attempt_at limit 1
         ) as first
         where first.next_attempt_at <= now()
         order by first.next_attempt_at
         limit $3",
    );
    due.bind(consumer.name).bind(consumer.stream.name()).bind(CUSTOMERS).fetch_all(db).await
}

/// Returns events of a customer that are due, oldest first: at most `limit` events and about
/// `bytes` bytes, but at least one.
pub(super) async fn read(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    customer: CustomerId,
    limit: i64,
    bytes: i64,
) -> Result<Vec<Parked>, Error> {
    let due = sqlx::query_as(
        "select event_id, customer_id, record, payload, failures,
                extract(epoch from now() - parked_at)::float8 as age
         from (
             select *, sum(octet_length(payload)) over (order by next_attempt_at, id)
                           - octet_length(payload) as before
             from (
                 select * from inbox_parked
                 where consumer = $1 and stream = $2 and given_up_at is null
                   and customer_id = $3 and next_attempt_at <= now()
                 order by next_attempt_at, id limit $4
             ) as due
         ) as measured
         where before < $5
         order by next_attempt_at, id",
    );
    let due = due.bind(consumer.name).bind(consumer.stream.name()).bind(customer);
    due.bind(limit).bind(bytes).fetch_all(db).await
}

/// Postpones an event that has failed again, with the reason. If it diverts, later events of the same
/// record wait with it.
pub(super) async fn postpone(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    (parked, reason): (&Parked, &str),
    diverts: bool,
    delay: Duration,
) -> Result<(), Error> {
    let postpone = sqlx::query(
        "update inbox_parked
         set next_attempt_at = now() + make_interval(secs => $6),
             failures = failures + (event_id = $5)::int,
             taken = case when event_id = $5 then 0 else taken end,
             reason = case when event_id = $5 then $8 else reason end,
             diverts = case when event_id = $5 then $7 else diverts end
         where consumer = $1 and stream = $2 and customer_id = $3 and record = $4
           and (event_id = $5 or ($7 and failures = 0))",
    );
    let postpone = postpone.bind(consumer.name).bind(consumer.stream.name());
    let postpone = postpone.bind(parked.customer_id).bind(&parked.record).bind(parked.event_id);
    let postpone = postpone.bind(delay.as_secs_f64()).bind(diverts).bind(shortened(reason));
    postpone.execute(db).await?;
    Ok(())
}

/// Counts an attempt to apply the first due event of a customer. Returns the number of attempts of
/// which none came to an end, this one included.
pub(super) async fn take(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    customer: CustomerId,
) -> Result<i32, Error> {
    let take = sqlx::query_scalar(
        "update inbox_parked set taken = taken + 1
         where consumer = $1 and event_id = (
             select event_id from inbox_parked
             where consumer = $1 and stream = $2 and given_up_at is null
               and customer_id = $3 and next_attempt_at <= now()
             order by next_attempt_at, id limit 1
         )
         returning taken",
    );
    let take = take.bind(consumer.name).bind(consumer.stream.name()).bind(customer);
    Ok(take.fetch_optional(db).await?.unwrap_or_default())
}

/// Takes back attempts that came to an end with their connection, and not with their program.
pub(super) async fn take_back(db: impl PgExecutor<'_>, consumer: &Consumer) -> Result<(), Error> {
    let take_back = "update inbox_parked set taken = 0
                     where consumer = $1 and stream = $2 and taken > 0 and given_up_at is null";
    sqlx::query(take_back).bind(consumer.name).bind(consumer.stream.name()).execute(db).await?;
    Ok(())
}

/// Gives an event up. It becomes a dead letter.
pub(super) async fn give_up(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    event: Uuid,
    (failures, reason): (i32, &str),
) -> Result<(), Error> {
    let give_up = sqlx::query(
        "update inbox_parked
         set given_up_at = now(), taken = 0, failures = $3, reason = $4, diverts = false
         where consumer = $1 and event_id = $2",
    );
    let give_up = give_up.bind(consumer.name).bind(event).bind(failures);
    give_up.bind(shortened(reason)).execute(db).await?;
    announce(EVENT.kind, &event.to_string(), reason);
    Ok(())
}

/// Stores a message that is not a valid event as a dead letter.
pub(super) async fn keep_invalid(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
    delivery: &Delivery,
    reason: &str,
) -> Result<(), Error> {
    let keep = sqlx::query(
        "insert into inbox_parked (consumer, stream, event_id, customer_id, record, subject,
             sequence, payload, failures, diverts, next_attempt_at, given_up_at, reason)
         values ($1, $2, $3, $4, '', $5, $6, $7, 1, false, now(), now(), $8)",
    );
    let keep = keep.bind(consumer.name).bind(consumer.stream.name());
    let keep = keep.bind(Uuid::now_v7()).bind(Uuid::nil());
    let keep = keep.bind(delivery.message.subject.as_str()).bind(delivery.sequence.cast_signed());
    keep.bind(&delivery.message.payload[..]).bind(shortened(reason)).execute(db).await?;
    announce(EVENT.kind, &delivery.message.subject, reason);
    Ok(())
}

/// Removes parked events.
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
    let exist = "select exists (
                     select from inbox_parked
                     where consumer = $1 and stream = $2 and given_up_at is null
                 )";
    sqlx::query_scalar(exist).bind(consumer.name).bind(consumer.stream.name()).fetch_one(db).await
}

/// Returns the number of parked events, up to [`COUNTED`], and the age of the oldest of them in
/// seconds.
pub(super) async fn measure(
    db: impl PgExecutor<'_>,
    consumer: &Consumer,
) -> Result<(f64, f64), Error> {
    let measure = "select count(*)::float8,
                          coalesce(extract(epoch from now() - min(parked_at)), 0)::float8
                   from (
                       select parked_at from inbox_parked
                       where consumer = $1 and stream = $2 and given_up_at is null limit $3
                   ) as counted";
    let measure = sqlx::query_as(measure).bind(consumer.name).bind(consumer.stream.name());
    measure.bind(COUNTED).fetch_one(db).await
}
