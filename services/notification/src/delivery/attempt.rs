//! The log of attempts: the last requests to each webhook, and the responses of its receiver.

use std::time::Duration;

use assay_proto::{
    CustomerId, Fault, NotificationId, WebhookId,
    notification::{DeliveryAttempt, WebhookHeader},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, types::Json};
use uuid::Uuid;

use super::outcome::Outcome;

const COLUMNS: &str = DeliveryAttempt::COLUMNS;

/// Maximum number of attempts that are kept of a webhook: of those that succeeded, and of those that failed.
const KEPT: i64 = 100;

/// A finished attempt to send deliveries in one request. A test has none.
pub(crate) struct Attempt {
    pub(crate) deliveries: Vec<Tried>,
    pub(crate) outcome: Outcome,
}

/// A delivery that was sent in an attempt.
pub(crate) struct Tried {
    pub(crate) notification: NotificationId,
    /// Delay before the next attempt, if this one failed and was not the last.
    pub(crate) delay: Option<Duration>,
}

impl Attempt {
    /// Returns the id of the delivery, if it is the only one.
    fn delivery(&self) -> Option<NotificationId> {
        let [Tried { notification, .. }] = &self.deliveries[..] else { return None };
        Some(*notification)
    }

    fn count(&self) -> i32 {
        i32::try_from(self.deliveries.len()).unwrap_or(i32::MAX)
    }
}

/// Adds attempts to the log of a webhook, removes those that are too many, and returns the new entries in
/// this order.
pub(crate) async fn log(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    webhook: WebhookId,
    attempts: &[Attempt],
) -> Result<Vec<DeliveryAttempt>, Fault> {
    let outcomes = || attempts.iter().map(|attempt| &attempt.outcome);
    let headers = |of: fn(&Outcome) -> &Vec<WebhookHeader>| {
        outcomes().map(|outcome| Json(of(outcome))).collect::<Vec<_>>()
    };
    let added = sqlx::query_as(AssertSqlSafe(format!(
        "insert into webhook_attempt
             (customer_id, webhook_id, id, notification_id, deliveries, duration_in_sec, request_headers,
              request_body, response_status, response_headers, response_body, error)
         select $1, $2, made.*
         from unnest($3::uuid[], $4::uuid[], $5::int[], $6::float8[], $7::jsonb[], $8::text[], $9::int[],
                     $10::jsonb[], $11::text[], $12::text[]) as made
         returning {COLUMNS}"
    )));
    let mut added: Vec<DeliveryAttempt> = added
        .bind(customer)
        .bind(webhook)
        .bind(attempts.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>())
        .bind(attempts.iter().map(Attempt::delivery).collect::<Vec<_>>())
        .bind(attempts.iter().map(Attempt::count).collect::<Vec<_>>())
        .bind(outcomes().map(|one| one.exchange.duration.as_secs_f64()).collect::<Vec<_>>())
        .bind(headers(|outcome| &outcome.exchange.request_headers))
        .bind(outcomes().map(|one| one.exchange.request_body.as_str()).collect::<Vec<_>>())
        .bind(outcomes().map(Outcome::response_status).collect::<Vec<_>>())
        .bind(headers(|outcome| &outcome.exchange.response_headers))
        .bind(outcomes().map(|one| one.exchange.response_body.as_deref()).collect::<Vec<_>>())
        .bind(outcomes().map(|one| one.error.as_deref()).collect::<Vec<_>>())
        .fetch_all(&mut **tx)
        .await?;
    sqlx::query(
        "delete from webhook_attempt where customer_id = $1 and id in (
             select id from (
                 select id, row_number() over (partition by error is null order by id desc) as place
                 from webhook_attempt where webhook_id = $2
             ) as logged
             where place > $3
         )",
    )
    .bind(customer)
    .bind(webhook)
    .bind(KEPT)
    .execute(&mut **tx)
    .await?;
    added.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    Ok(added)
}

/// Lists a slice of the attempts of a webhook, newest first.
pub(crate) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    webhook: WebhookId,
    delivery: Option<NotificationId>,
    slice: &Slice,
) -> Result<Rows<DeliveryAttempt>, Fault> {
    let found = sqlx::query_as(AssertSqlSafe(format!(
        "select {COLUMNS} from webhook_attempt
         where customer_id = $1 and webhook_id = $2 and id < $3
           and ($4::uuid is null or notification_id = $4 or id = (
                    select attempt_id from webhook_delivery d
                    where d.webhook_id = $2 and d.notification_id = $4
                ))
           and ($5::text is null or error ilike $5 or response_body ilike $5)
         order by id desc
         limit $6"
    )));
    let found = found.bind(customer).bind(webhook).bind(slice.before()?).bind(delivery);
    slice.read(found.bind(&slice.pattern).bind(slice.limit).fetch(db)).await
}

/// Removes up to `limit` attempts that are older than seven days, of all customers, and returns their
/// number.
pub(crate) async fn prune(db: impl PgExecutor<'_>, limit: i64) -> Result<u64, Fault> {
    let removed = sqlx::query(
        "delete from webhook_attempt where id = any(array(
             select id from webhook_attempt
             where attempted_at < now() - interval '7 days'
             order by attempted_at
             limit $1
             for update skip locked
         ))",
    );
    Ok(removed.bind(limit).execute(db).await?.rows_affected())
}
