//! Webhooks in PostgreSQL. Every statement but [`prune`] is bound to one customer. Secrets pass
//! through here encrypted.

use assay_proto::{
    CustomerId, Fault, InputColumns, Timestamp, WebhookId,
    notification::{Webhook, WebhookFormat, WebhookInput},
    value_of,
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

use super::rules::MAX_WEBHOOKS;
use crate::secret::{MASK, Sealed};

/// Columns of a webhook, with its secret masked.
fn columns() -> String {
    format!("{}, '{MASK}' as secret", Webhook::COLUMNS)
}

/// Lists a slice of the webhooks, newest first.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    slice: &Slice,
) -> Result<Rows<Webhook>, Fault> {
    let webhooks = sqlx::query_as(AssertSqlSafe(format!(
        "select {} from webhook
         where customer_id = $1 and id < $2 and deleted_at is null
           and ($3::text is null or url ilike $3)
         order by id desc
         limit $4",
        columns()
    )));
    let webhooks = webhooks.bind(customer).bind(slice.before()?).bind(&slice.pattern);
    slice.read(webhooks.bind(slice.limit).fetch(db)).await
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: WebhookId,
) -> Result<Webhook, Fault> {
    let webhook = sqlx::query_as(AssertSqlSafe(format!(
        "select {} from webhook where customer_id = $1 and id = $2 and deleted_at is null",
        columns()
    )));
    let webhook = webhook.bind(customer).bind(id).fetch_optional(db).await?;
    webhook.ok_or(Fault::NotFound("webhook"))
}

/// Reads a webhook and locks it until the end of the transaction.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: WebhookId,
) -> Result<Webhook, Fault> {
    let webhook = sqlx::query_as(AssertSqlSafe(format!(
        "select {} from webhook where customer_id = $1 and id = $2 and deleted_at is null
         for no key update",
        columns()
    )));
    let webhook = webhook.bind(customer).bind(id).fetch_optional(&mut **tx).await?;
    webhook.ok_or(Fault::NotFound("webhook"))
}

/// How messages are sent to a webhook.
pub(super) struct Route {
    pub(super) url: String,
    pub(super) format: WebhookFormat,
    pub(super) sealed: Sealed,
    /// The current time.
    pub(super) now: Timestamp,
}

/// Returns how messages are sent to a webhook, also to an archived one.
pub(super) async fn route(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: WebhookId,
) -> Result<Route, Fault> {
    let route = sqlx::query_as(
        "select url, format, secret, case when previous_secret_until > now() then previous_secret end,
                sealed_headers, now()
         from webhook where customer_id = $1 and id = $2 and deleted_at is null",
    );
    let route = route.bind(customer).bind(id).fetch_optional(db).await?;
    let (url, format, secret, previous, headers, now): (_, String, String, Option<String>, _, _) =
        route.ok_or(Fault::NotFound("webhook"))?;
    let secrets = [Some(secret), previous].into_iter().flatten().collect();
    let format = value_of(&format).unwrap_or_default();
    Ok(Route { url, format, sealed: Sealed { secrets, headers }, now })
}

/// Adds a webhook, unless the customer has too many. The transaction holds the customer's lock, so
/// the limit also holds for concurrent requests.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: WebhookId,
    webhook: &WebhookInput,
    secret: &str,
    headers: Option<&str>,
) -> Result<Webhook, Fault> {
    let returned = columns();
    let (columns, values) = (WebhookInput::COLUMNS, WebhookInput::values(6));
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into webhook (customer_id, id, secret, sealed_headers, {columns})
         select $1, $2, $3, $5, {values}
         where (select count(*) from webhook where customer_id = $1 and deleted_at is null) < $4
         returning {returned}"
    )));
    let insert = insert.bind(customer).bind(id).bind(secret).bind(MAX_WEBHOOKS).bind(headers);
    let inserted = webhook.bind(insert).fetch_optional(&mut **tx).await?;
    inserted.ok_or_else(|| Fault::Conflict {
        code: "too_many_webhooks",
        reason: format!("a customer has at most {MAX_WEBHOOKS} webhooks; delete one first"),
    })
}

/// Updates a locked webhook with its encrypted headers, and its secret if there is a new one.
/// `resets_failures` resets the record of failures.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: WebhookId,
    webhook: &WebhookInput,
    (secret, headers): (Option<&str>, Option<&str>),
    resets_failures: bool,
) -> Result<Webhook, Fault> {
    let (assignments, returned) = (WebhookInput::assignments(6), columns());
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update webhook
         set {assignments},
             previous_secret = case when $3::text is null then previous_secret else secret end,
             previous_secret_until = case when $3 is null then previous_secret_until
                                          else now() + interval '1 day' end,
             secret = coalesce($3, secret), sealed_headers = $5,
             failing_since = case when $4 then null else failing_since end,
             rests_until = case when $4 then now() else rests_until end,
             revision = revision + 1
         where customer_id = $1 and id = $2
         returning {returned}"
    )));
    let update = update.bind(customer).bind(id).bind(secret).bind(resets_failures).bind(headers);
    Ok(webhook.bind(update).fetch_one(&mut **tx).await?)
}

/// Marks a webhook as deleted, and erases its secrets and its log of attempts. [`prune`] removes its
/// deliveries, and [`prune_deleted`] the rest.
pub(super) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: WebhookId,
) -> Result<(), Fault> {
    let deleted = sqlx::query(
        "update webhook
         set deleted_at = now(), revision = revision + 1, secret = '', previous_secret = null,
             sealed_headers = null
         where customer_id = $1 and id = $2 and deleted_at is null",
    );
    let deleted = deleted.bind(customer).bind(id).execute(&mut **tx).await?;
    if deleted.rows_affected() == 0 {
        return Err(Fault::NotFound("webhook"));
    }
    let log = sqlx::query("delete from webhook_attempt where customer_id = $1 and webhook_id = $2");
    log.bind(customer).bind(id).execute(&mut **tx).await?;
    Ok(())
}

/// Removes up to `limit` deliveries of deleted webhooks, of all customers, and returns their number.
pub(crate) async fn prune(db: impl PgExecutor<'_>, limit: i64) -> Result<u64, Fault> {
    let removed = sqlx::query(
        "delete from webhook_delivery where (webhook_id, notification_id) in (
             select webhook_id, notification_id
             from webhook join webhook_delivery on webhook_id = id
             where deleted_at is not null
             limit $1
             for update of webhook_delivery skip locked
         )",
    );
    Ok(removed.bind(limit).execute(db).await?.rows_affected())
}

/// Removes up to `limit` deleted webhooks without deliveries, of all customers, and returns their number. A
/// transaction that has begun before the deletion may still add a delivery.
pub(crate) async fn prune_deleted(db: impl PgExecutor<'_>, limit: i64) -> Result<u64, Fault> {
    let removed = sqlx::query(
        "delete from webhook where id = any(array(
             select id from webhook
             where deleted_at < now() - interval '1 minute'
               and not exists (select from webhook_delivery where webhook_id = id)
             limit $1
             for update skip locked
         ))",
    );
    Ok(removed.bind(limit).execute(db).await?.rows_affected())
}

/// Returns whether PostgreSQL knows a time zone.
pub(super) async fn is_time_zone(db: impl PgExecutor<'_>, name: &str) -> Result<bool, Fault> {
    let known = "select exists (select from pg_timezone_names where name = $1)";
    Ok(sqlx::query_scalar(known).bind(name).fetch_one(db).await?)
}
