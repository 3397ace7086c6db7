//! Deliveries in PostgreSQL, as clients see them. Every statement is bound to one customer.

use std::collections::HashMap;

use assay_proto::{
    CustomerId, Fault, NotificationId, WebhookId, name_of,
    notification::{Delivery, DeliveryStatus, Notification},
};
use assay_records::branch;
use assay_rpc::{
    history::{self, SCANNED},
    list::{Rows, Slice},
};
use sqlx::{AssertSqlSafe, PgPool, PgTransaction, types::Json};
use uuid::Uuid;

use super::schedule;
use crate::filter::PATTERNS;

const COLUMNS: &str = Delivery::COLUMNS;

/// Maximum number of deliveries that are queued again in one transaction, which locks the webhook.
const REQUEUED: i64 = 1000;

/// Returns the status of a delivery and the time of its next attempt, as columns. Nothing is sent to an archived
/// webhook, nothing before a failing one has rested, and nothing for the first time in quiet hours.
fn derived() -> String {
    let quiet_end = schedule::quiet_end("w", "greatest(d.next_attempt_at, now())");
    format!(
        "case when d.delivered_at is not null then 'Delivered'
             when d.next_attempt_at is not null then 'Pending'
             else 'Failed' end as status,
         case when d.next_attempt_at is not null and not w.archived
             then greatest(d.next_attempt_at, case when w.failing_since is not null then w.rests_until end,
                           case when d.last_attempt_at is null then {quiet_end} end)
         end as next_attempt_date_time"
    )
}

/// Adds a delivery of each notification, in its trace, to each webhook that subscribes to it.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    notifications: &[Notification],
    traces: &[HashMap<String, String>],
) -> Result<(), Fault> {
    let ids: Result<Vec<_>, _> = notifications
        .iter()
        .map(|notification| NotificationId::from_path(&notification.id))
        .collect();
    let column = |of: fn(&Notification) -> &str| notifications.iter().map(of).collect::<Vec<_>>();
    let optional =
        |of: fn(&Notification) -> Option<&str>| notifications.iter().map(of).collect::<Vec<_>>();
    let results =
        notifications.iter().map(|one| one.result.is_some().then(|| name_of(one.result())));
    let owners = notifications.iter().map(|one| {
        Json(one.owners.iter().map(|owner| owner.to_ascii_lowercase()).collect::<Vec<_>>())
    });
    let of_branch = branch::condition("added.branch", "pattern");
    let trends = notifications.iter().map(|one| one.trend.is_some().then(|| name_of(one.trend())));
    let due_at = schedule::due_at("webhook", "now()");
    // With `offset 0`, the time is computed once for each webhook, and not for each notification.
    sqlx::query(AssertSqlSafe(format!(
        "insert into webhook_delivery (webhook_id, notification_id, trace, next_attempt_at)
         select webhook.id, added.id, added.trace, due_at
         from (
             select *, array(select lower(event collate \"C\") from unnest(events) as event) as patterns,
                    array(select lower(owner collate \"C\") from unnest(owners) as owner) as of_owners,
                    {due_at} as due_at
             from webhook
             where customer_id = $1 and deleted_at is null and not archived
             offset 0
         ) as webhook,
         unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                $9::jsonb[], $10::text[], $11::text[], $12::text[], $13::jsonb[], $14::jsonb[])
             as added (id, source, action, origin, project_id, branch, result, trace, target,
                       test_set_id, trend, owners, owner_trends)
         where patterns && {PATTERNS}
           and (project_ids = '{{}}' or added.project_id = any(project_ids))
           and (branches = '{{}}' or exists (select from unnest(branches) as pattern where {of_branch}))
           and (results = '{{}}' or added.result = any(results))
           and (test_set_ids = '{{}}' or added.test_set_id = any(test_set_ids))
           and (trends = '{{}}' or case when of_owners = '{{}}' then added.trend = any(trends)
                else exists (
                    select from jsonb_to_recordset(added.owner_trends) as one (\"Owner\" text, \"Trend\" text)
                    where lower(\"Owner\" collate \"C\") = any(of_owners) and \"Trend\" = any(trends)
                ) end)
           and (of_owners = '{{}}' or added.owners ?| of_owners)
           and (format <> 'CdEvents' or added.origin = 'Assay' and (added.target, added.action) in (
                    ('Execution', 'Completed'), ('Execution', 'Canceled'), ('TestReport', 'Finished')))"
    )))
    .bind(customer)
    .bind(ids?)
    .bind(column(|notification| &notification.source))
    .bind(column(|notification| &notification.action))
    .bind(notifications.iter().map(|one| name_of(one.origin())).collect::<Vec<_>>())
    .bind(optional(|notification| notification.project_id.as_deref()))
    .bind(optional(|notification| notification.branch.as_deref()))
    .bind(results.collect::<Vec<_>>())
    .bind(traces.iter().map(Json).collect::<Vec<_>>())
    .bind(column(|notification| &notification.target))
    .bind(optional(|notification| notification.test_set_id.as_deref()))
    .bind(trends.collect::<Vec<_>>())
    .bind(owners.collect::<Vec<_>>())
    .bind(notifications.iter().map(|one| Json(&one.owner_trends)).collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Lists a slice of the deliveries of a webhook, newest first. A search through a long history takes several short
/// queries.
pub(crate) async fn list(
    db: &PgPool,
    customer: CustomerId,
    webhook: WebhookId,
    status: Option<DeliveryStatus>,
    slice: &Slice,
) -> Result<Rows<Delivery>, Fault> {
    let state = match status {
        Some(DeliveryStatus::Pending) => "d.next_attempt_at is not null",
        Some(DeliveryStatus::Delivered) => "d.delivered_at is not null",
        Some(DeliveryStatus::Failed) => "d.next_attempt_at is null and d.delivered_at is null",
        Some(DeliveryStatus::Unspecified) | None => "true",
    };
    // Indexes find those that are pending or have failed. The others are as many as the notifications.
    let is_long = match status {
        Some(DeliveryStatus::Pending | DeliveryStatus::Failed) => false,
        Some(DeliveryStatus::Delivered) => true,
        Some(DeliveryStatus::Unspecified) | None => slice.pattern.is_some(),
    };
    let bound = move |before: Uuid| async move {
        if !is_long {
            return Ok(None);
        }
        let bound = sqlx::query_scalar(
            "select notification_id from webhook_delivery
             where webhook_id = $2 and notification_id < $3
               and exists (select from webhook w where w.customer_id = $1 and w.id = $2)
             order by notification_id desc offset $4 limit 1",
        );
        let bound = bound.bind(customer).bind(webhook).bind(before).bind(SCANNED - 1);
        Ok(bound.fetch_optional(db).await?)
    };
    let derived = &derived();
    let find = move |from: Uuid, before: Uuid, limit: i64| async move {
        let found = sqlx::query_as(AssertSqlSafe(format!(
            "select {COLUMNS}, {derived}
             from webhook_delivery d
                  join notification n on n.id = d.notification_id join webhook w on w.id = d.webhook_id
             where n.customer_id = $1 and d.webhook_id = $2
               and d.notification_id >= $3 and d.notification_id < $4 and {state}
               and ($5::text is null or n.source ilike $5 or n.action ilike $5)
             order by d.notification_id desc
             limit $6"
        )));
        let found = found.bind(customer).bind(webhook).bind(from).bind(before);
        slice.read(found.bind(slice.pattern.clone()).bind(limit).fetch(db)).await
    };
    history::search(slice, bound, find).await
}

/// Queues a delivery of a webhook again, with all its attempts.
pub(crate) async fn requeue(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    webhook: WebhookId,
    id: NotificationId,
) -> Result<Delivery, Fault> {
    let derived = derived();
    let requeued = sqlx::query_as(AssertSqlSafe(format!(
        "update webhook_delivery d
         set attempts = 0, next_attempt_at = now(), delivered_at = null
         from notification n, webhook w
         where n.customer_id = $1 and n.id = d.notification_id and w.id = d.webhook_id
           and d.webhook_id = $2 and d.notification_id = $3
         returning {COLUMNS}, {derived}"
    )));
    let requeued = requeued.bind(customer).bind(webhook).bind(id).fetch_optional(&mut **tx).await?;
    requeued.ok_or(Fault::NotFound("delivery"))
}

/// Queues failed deliveries of a webhook again, in the order of their ids after one of them, up to a maximum number.
/// Returns their number and the last id, if there are any.
pub(crate) async fn requeue_failed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    webhook: WebhookId,
    after: Uuid,
) -> Result<Option<(i64, Uuid)>, Fault> {
    let requeued = sqlx::query_as(
        "with requeued as (
             update webhook_delivery set attempts = 0, next_attempt_at = now()
             where webhook_id = $2 and notification_id = any(array(
                 select notification_id from webhook_delivery d
                 where d.webhook_id = $2 and d.notification_id > $3
                   and d.next_attempt_at is null and d.delivered_at is null
                   and exists (select from webhook w where w.customer_id = $1 and w.id = $2)
                 order by d.notification_id
                 limit $4
             ))
             returning notification_id
         )
         select count(*) over (), notification_id from requeued order by notification_id desc limit 1",
    );
    let requeued = requeued.bind(customer).bind(webhook).bind(after).bind(REQUEUED);
    Ok(requeued.fetch_optional(&mut **tx).await?)
}
