//! The log of attempts: the last requests to each webhook, and the responses of its receiver.

use std::{collections::HashSet, time::Duration};

use assay_proto::{
    CustomerId, Fault, NotificationId, WebhookId,
    notification::{DeliveryAttempt, WebhookHeader},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, types::Json};
use uuid::Uuid;

use super::outcome::Outcome;

const COLUMNS: &str = DeliveryAttempt::COLUMNS;

/// Maximum number of attempts that are kept of a webhook: of those that succeeded, and of those that failed. A round
/// makes many more, and what is not kept is not written.
const SUCCEEDED: usize = 20;
const FAILED: usize = 100;

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

/// Returns ids for the entries of attempts, of which only the last ones that would be kept have one.
fn ids(attempts: &[Attempt]) -> Vec<Option<Uuid>> {
    let last = |is_success: bool, most: usize| {
        let is_one = move |place: &usize| attempts[*place].outcome.is_success() == is_success;
        (0..attempts.len()).rev().filter(is_one).take(most)
    };
    let kept: HashSet<usize> = last(true, SUCCEEDED).chain(last(false, FAILED)).collect();
    (0..attempts.len()).map(|place| kept.contains(&place).then(Uuid::now_v7)).collect()
}

/// Adds attempts to the log of a webhook, and removes those that are too many. Returns the ids of their entries in
/// this order; none for those that are too many themselves.
pub(crate) async fn log(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    webhook: WebhookId,
    attempts: &[Attempt],
) -> Result<Vec<Option<Uuid>>, Fault> {
    let ids = ids(attempts);
    let kept: Vec<(Uuid, &Attempt)> =
        ids.iter().zip(attempts).filter_map(|(id, attempt)| Some(((*id)?, attempt))).collect();
    let outcomes = || kept.iter().map(|(_, attempt)| &attempt.outcome);
    let headers = |of: fn(&Outcome) -> &Vec<WebhookHeader>| {
        outcomes().map(|outcome| Json(of(outcome))).collect::<Vec<_>>()
    };
    let added = sqlx::query(
        "insert into webhook_attempt
             (customer_id, webhook_id, id, notification_id, deliveries, duration_in_sec, request_headers,
              request_body, response_status, response_headers, response_body, error)
         select $1, $2, made.*
         from unnest($3::uuid[], $4::uuid[], $5::int[], $6::float8[], $7::jsonb[], $8::text[], $9::int[],
                     $10::jsonb[], $11::text[], $12::text[]) as made",
    );
    added
        .bind(customer)
        .bind(webhook)
        .bind(kept.iter().map(|(id, _)| *id).collect::<Vec<_>>())
        .bind(kept.iter().map(|(_, attempt)| attempt.delivery()).collect::<Vec<_>>())
        .bind(kept.iter().map(|(_, attempt)| attempt.count()).collect::<Vec<_>>())
        .bind(outcomes().map(|one| one.exchange.duration.as_secs_f64()).collect::<Vec<_>>())
        .bind(headers(|outcome| &outcome.exchange.request_headers))
        .bind(outcomes().map(|one| one.exchange.request_body.as_str()).collect::<Vec<_>>())
        .bind(outcomes().map(Outcome::response_status).collect::<Vec<_>>())
        .bind(headers(|outcome| &outcome.exchange.response_headers))
        .bind(outcomes().map(|one| one.exchange.response_body.as_deref()).collect::<Vec<_>>())
        .bind(outcomes().map(|one| one.error.as_deref()).collect::<Vec<_>>())
        .execute(&mut **tx)
        .await?;
    let excess = |which: &str, kept: usize| {
        format!(
            "array(select id from webhook_attempt
                   where webhook_id = $2 and error is {which} order by id desc offset {kept})"
        )
    };
    let (succeeded, failed) = (excess("null", SUCCEEDED), excess("not null", FAILED));
    let removed = sqlx::query(AssertSqlSafe(format!(
        "delete from webhook_attempt
         where customer_id = $1 and webhook_id = $2 and id = any({succeeded} || {failed})"
    )));
    removed.bind(customer).bind(webhook).execute(&mut **tx).await?;
    Ok(ids)
}

/// Reads an entry of the log of a webhook.
pub(crate) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    webhook: WebhookId,
    id: Uuid,
) -> Result<DeliveryAttempt, Fault> {
    let entry = sqlx::query_as(AssertSqlSafe(format!(
        "select {COLUMNS} from webhook_attempt where customer_id = $1 and webhook_id = $2 and id = $3"
    )));
    Ok(entry.bind(customer).bind(webhook).bind(id).fetch_one(db).await?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_attempts_of_each_kind_have_entries() {
        let attempt = |is_success: bool| {
            let outcome = Outcome::answered(if is_success { 200 } else { 500 });
            Attempt { deliveries: Vec::new(), outcome }
        };
        let attempts: Vec<_> = (0..128).map(|number| attempt(number % 32 != 0)).collect();
        let logged = ids(&attempts);
        let with_entries = |is_success: bool| {
            let places = logged.iter().zip(&attempts).enumerate();
            let places = places.filter(|(_, (id, attempt))| {
                id.is_some() && attempt.outcome.is_success() == is_success
            });
            places.map(|(place, _)| place).collect::<Vec<_>>()
        };
        assert_eq!(with_entries(false), [0, 32, 64, 96]);
        assert_eq!(with_entries(true), (108..128).collect::<Vec<_>>());
        assert!(logged.iter().flatten().is_sorted());
    }
}
