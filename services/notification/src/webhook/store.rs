//! Webhooks in PostgreSQL. Every statement but [`prune`] is bound to one customer. Secrets pass
//! through here encrypted.

use assay_proto::{
    CustomerId, Fault, InputColumns, WebhookId,
    notification::{Webhook, WebhookInput},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

use super::rules::{MASK, MAX_WEBHOOKS};

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

/// Adds a webhook, unless the customer has too many. The transaction holds the customer's lock, so
/// the limit also holds for concurrent requests.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: WebhookId,
    webhook: &WebhookInput,
    sealed: &str,
) -> Result<Webhook, Fault> {
    let returned = columns();
    let (columns, values) = (WebhookInput::COLUMNS, WebhookInput::values(5));
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into webhook (customer_id, id, secret, {columns})
         select $1, $2, $3, {values}
         where (select count(*) from webhook where customer_id = $1 and deleted_at is null) < $4
         returning {returned}"
    )));
    let insert = insert.bind(customer).bind(id).bind(sealed).bind(MAX_WEBHOOKS);
    let inserted = webhook.bind(insert).fetch_optional(&mut **tx).await?;
    inserted.ok_or_else(|| Fault::Conflict {
        code: "too_many_webhooks",
        reason: format!("a customer has at most {MAX_WEBHOOKS} webhooks; delete one first"),
    })
}

/// Updates a locked webhook, and its secret if there is a new one. `resets_failures` resets the
/// record of failures.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: WebhookId,
    webhook: &WebhookInput,
    sealed: Option<&str>,
    resets_failures: bool,
) -> Result<Webhook, Fault> {
    let (assignments, returned) = (WebhookInput::assignments(5), columns());
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update webhook
         set {assignments},
             previous_secret = case when $3::text is null then previous_secret else secret end,
             previous_secret_until = case when $3 is null then previous_secret_until
                                          else now() + interval '1 day' end,
             secret = coalesce($3, secret),
             failing_since = case when $4 then null else failing_since end,
             rests_until = case when $4 then now() else rests_until end,
             revision = revision + 1
         where customer_id = $1 and id = $2
         returning {returned}"
    )));
    let update = update.bind(customer).bind(id).bind(sealed).bind(resets_failures);
    Ok(webhook.bind(update).fetch_one(&mut **tx).await?)
}

/// Marks a webhook as deleted and erases its secrets. [`prune`] removes its deliveries.
pub(super) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: WebhookId,
) -> Result<(), Fault> {
    let deleted = sqlx::query(
        "update webhook
         set deleted_at = now(), revision = revision + 1, secret = '', previous_secret = null
         where customer_id = $1 and id = $2 and deleted_at is null",
    );
    let deleted = deleted.bind(customer).bind(id).execute(&mut **tx).await?;
    if deleted.rows_affected() == 0 { Err(Fault::NotFound("webhook")) } else { Ok(()) }
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
