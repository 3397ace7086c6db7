//! Deliveries in PostgreSQL. Those that serve a client are bound to one customer; the others find
//! what is due of all.

use std::{collections::HashMap, time::Duration};

use assay_proto::{
    CustomerId, Fault, NotificationId, Timestamp, WebhookId,
    notification::{Delivery, DeliveryStatus, Notification},
};
use assay_runtime::{
    list::{Rows, Slice},
    trace,
};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction, types::Json};

use super::{post::Outcome, rules::Health};
use crate::notification;

/// How much of what a webhook is due a round has at most, and while it fails.
const ROUND: i64 = 64;
const PROBE: usize = 1;

const COLUMNS: &str = "d.notification_id as id, n.source, n.action,
    case when d.delivered_at is not null then 'Delivered'
         when d.next_attempt_at is not null then 'Pending'
         else 'Failed' end as status,
    d.attempts, d.last_attempt_at as last_attempt_date_time,
    d.next_attempt_at as next_attempt_date_time, d.response_status, d.error";

/// Some of what a webhook is due, to be sent now.
pub(super) struct Round {
    pub(super) webhook: WebhookId,
    pub(super) customer: CustomerId,
    pub(super) url: String,
    /// What to sign with, as it is stored.
    pub(super) secrets: Vec<String>,
    /// In seconds since 1970.
    pub(super) timestamp: i64,
    pub(super) due: Vec<Due>,
}

/// A notification that a webhook is to be sent.
#[derive(sqlx::FromRow)]
pub(super) struct Due {
    webhook_id: WebhookId,
    #[sqlx(flatten)]
    pub(super) notification: Notification,
    pub(super) created_at: Timestamp,
    /// How often it was tried before.
    pub(super) attempts: i32,
    /// The trace that it is part of.
    pub(super) trace: Json<HashMap<String, String>>,
}

/// What came of sending a notification.
pub(super) struct Attempt {
    pub(super) notification: String,
    pub(super) outcome: Outcome,
    /// How long to wait before the next attempt, if it has failed; none: it was the last.
    pub(super) pause: Option<Duration>,
}

/// Has notifications sent to the webhooks that want them.
pub(crate) async fn insert_for(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    notifications: &[Notification],
) -> Result<(), Fault> {
    let ids: Result<Vec<_>, _> = notifications
        .iter()
        .map(|notification| NotificationId::from_path(&notification.id))
        .collect();
    let column = |of: fn(&Notification) -> &str| notifications.iter().map(of).collect::<Vec<_>>();
    sqlx::query(
        "insert into webhook_delivery (webhook_id, notification_id, trace)
         select webhook.id, added.id, $5
         from webhook, unnest($2::uuid[], $3::text[], $4::text[]) as added (id, source, action)
         where webhook.customer_id = $1 and webhook.deleted_at is null and not webhook.archived
           and webhook.events && array['*', added.source || '.*', '*.' || added.action,
                                       added.source || '.' || added.action]",
    )
    .bind(customer)
    .bind(ids?)
    .bind(column(|notification| &notification.source))
    .bind(column(|notification| &notification.action))
    .bind(Json(trace::to_map()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct Claimed {
    id: WebhookId,
    customer_id: CustomerId,
    url: String,
    secret: String,
    previous_secret: Option<String>,
    is_failing: bool,
    timestamp: i64,
}

/// Begins rounds of webhooks that are due something, those first that have rested longest. What is
/// not noted of a round within two minutes, longer than a round can take, is taken for lost.
///
/// The webhooks that are due something are found by one look into the index for each, however much
/// that is.
///
/// One customer has at most `most_of_customer` rounds, those that are `running` among them; customers
/// with few rounds come first.
pub(super) async fn begin(
    db: &PgPool,
    most: usize,
    most_of_customer: usize,
    running: &HashMap<CustomerId, i64>,
) -> Result<Vec<Round>, Fault> {
    let (customers, counts): (Vec<CustomerId>, Vec<i64>) =
        running.iter().map(|(customer, count)| (*customer, *count)).unzip();
    let claimed: Vec<Claimed> = sqlx::query_as(
        "with recursive waiting (webhook_id) as (
             (select webhook_id from webhook_delivery where next_attempt_at is not null
              order by webhook_id limit 1)
             union all
             select (select webhook_id from webhook_delivery d
                     where next_attempt_at is not null and d.webhook_id > waiting.webhook_id
                     order by webhook_id limit 1)
             from waiting where waiting.webhook_id is not null
         ), ready as (
             select id, rests_until, coalesce(count, 0)
                    + row_number() over (partition by customer_id order by rests_until) as turn
             from webhook left join unnest($2::uuid[], $3::bigint[])
                 as running (customer_id, count) using (customer_id)
             where id = any(array(select webhook_id from waiting))
               and deleted_at is null and not archived and rests_until <= now()
               and exists (select from webhook_delivery d
                           where d.webhook_id = webhook.id and d.next_attempt_at <= now())
         )
         update webhook set rests_until = now() + interval '2 minutes'
         where id = any(array(
             select id from webhook
             where id = any(array(
                 select id from ready where turn <= $4 order by turn, rests_until limit $1
             )) and rests_until <= now() and deleted_at is null and not archived
             for no key update skip locked
         ))
         returning id, customer_id, url, secret, failing_since is not null as is_failing,
                   case when previous_secret_until > now() then previous_secret end
                       as previous_secret,
                   extract(epoch from now())::bigint as timestamp",
    )
    .bind(i64::try_from(most).map_err(Fault::internal)?)
    .bind(customers)
    .bind(counts)
    .bind(i64::try_from(most_of_customer).map_err(Fault::internal)?)
    .fetch_all(db)
    .await?;
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = claimed.iter().map(|claimed| claimed.id).collect();
    let mut due = due(db, &ids).await?;
    let rounds = claimed.into_iter().map(|claimed| Round {
        webhook: claimed.id,
        customer: claimed.customer_id,
        url: claimed.url,
        secrets: [Some(claimed.secret), claimed.previous_secret].into_iter().flatten().collect(),
        timestamp: claimed.timestamp,
        due: due
            .extract_if(.., |due| due.webhook_id == claimed.id)
            .take(if claimed.is_failing { PROBE } else { usize::MAX })
            .collect(),
    });
    // Nothing can be said of a webhook by an empty round.
    Ok(rounds.filter(|round| !round.due.is_empty()).collect())
}

/// What webhooks are due, those first that wait longest.
async fn due(db: impl PgExecutor<'_>, webhooks: &[WebhookId]) -> Result<Vec<Due>, Fault> {
    let columns = notification::store::COLUMNS;
    let due = sqlx::query_as(AssertSqlSafe(format!(
        "select webhook_id, attempts, created_at, trace, {columns}
         from unnest($1::uuid[]) as webhook (webhook_id), lateral (
             select notification_id, attempts, trace from webhook_delivery d
             where d.webhook_id = webhook.webhook_id and d.next_attempt_at <= now()
             order by d.next_attempt_at
             limit $2
         ) as due join notification on id = notification_id"
    )));
    Ok(due.bind(webhooks).bind(ROUND).fetch_all(db).await?)
}

/// Takes note of what came of a round's attempts.
pub(super) async fn note(
    tx: &mut PgTransaction<'_>,
    webhook: WebhookId,
    attempts: &[Attempt],
) -> Result<(), Fault> {
    let ids: Result<Vec<_>, _> =
        attempts.iter().map(|attempt| NotificationId::from_path(&attempt.notification)).collect();
    let outcomes = || attempts.iter().map(|attempt| &attempt.outcome);
    let statuses =
        outcomes().map(|outcome| outcome.status.map(|status| i32::from(status.as_u16())));
    let pauses = attempts.iter().map(|attempt| attempt.pause.map(|pause| pause.as_secs_f64()));
    sqlx::query(
        "update webhook_delivery
         set attempts = attempts + 1, last_attempt_at = now(), response_status = made.status,
             error = made.problem,
             delivered_at = case when made.problem is null then now() end,
             next_attempt_at = case when made.problem is not null
                                    then now() + make_interval(secs => made.pause) end
         from unnest($2::uuid[], $3::int[], $4::text[], $5::float8[])
             as made (notification_id, status, problem, pause)
         where webhook_delivery.webhook_id = $1
           and webhook_delivery.notification_id = made.notification_id",
    )
    .bind(webhook)
    .bind(ids?)
    .bind(statuses.collect::<Vec<_>>())
    .bind(outcomes().map(|outcome| outcome.problem.as_deref()).collect::<Vec<_>>())
    .bind(pauses.collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Ends a round of a webhook. One that fails rests, the longer the longer it has failed; one that
/// has failed for days, or is gone, is archived. Says whether that has happened now.
pub(super) async fn note_health(
    tx: &mut PgTransaction<'_>,
    webhook: WebhookId,
    health: Health,
) -> Result<bool, Fault> {
    let is_well = health == Health::Well;
    let ended: Option<bool> = sqlx::query_scalar(
        "update webhook
         set failing_since = case when $2 then null else coalesce(failing_since, now()) end,
             rests_until = case when $2 then now() else now() + least(
                 interval '5 minutes',
                 greatest(interval '1 second', (now() - failing_since) / 2)) end
         where id = $1 and not archived and deleted_at is null
         returning failing_since < now() - interval '5 days'",
    )
    .bind(webhook)
    .bind(is_well)
    .fetch_optional(&mut **tx)
    .await?
    .map(|has_failed_for_days: Option<bool>| has_failed_for_days.unwrap_or_default());
    let is_over = ended.is_some_and(|for_days| for_days || health == Health::Gone);
    if is_over {
        let archive = "update webhook set archived = true, revision = revision + 1 where id = $1";
        sqlx::query(archive).bind(webhook).execute(&mut **tx).await?;
    }
    Ok(is_over)
}

/// Lists a slice of what a webhook was to be sent, newest first.
pub(crate) async fn list(
    db: impl PgExecutor<'_>,
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
    let found = sqlx::query_as(AssertSqlSafe(format!(
        "select {COLUMNS} from webhook_delivery d join notification n on n.id = d.notification_id
         where n.customer_id = $1 and d.webhook_id = $2 and d.notification_id < $3 and {state}
           and ($4::text is null or n.source ilike $4 or n.action ilike $4)
         order by d.notification_id desc
         limit $5"
    )));
    let found = found.bind(customer).bind(webhook).bind(slice.before()?);
    slice.read(found.bind(&slice.pattern).bind(slice.limit).fetch(db)).await
}

/// Has a delivery of a webhook made again.
pub(crate) async fn reset(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    webhook: WebhookId,
    id: NotificationId,
) -> Result<Delivery, Fault> {
    let reset = sqlx::query_as(AssertSqlSafe(format!(
        "update webhook_delivery d
         set attempts = 0, next_attempt_at = now(), delivered_at = null
         from notification n
         where n.customer_id = $1 and n.id = d.notification_id
           and d.webhook_id = $2 and d.notification_id = $3
         returning {COLUMNS}"
    )));
    let reset = reset.bind(customer).bind(webhook).bind(id).fetch_optional(&mut **tx).await?;
    reset.ok_or(Fault::NotFound("delivery"))
}

/// Has all deliveries of a webhook made again that have failed; says how many those are.
pub(crate) async fn reset_failed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    webhook: WebhookId,
) -> Result<i64, Fault> {
    let reset = sqlx::query(
        "update webhook_delivery d set attempts = 0, next_attempt_at = now()
         where d.webhook_id = $2 and d.next_attempt_at is null and d.delivered_at is null
           and exists (select from webhook w where w.customer_id = $1 and w.id = $2)",
    );
    let reset = reset.bind(customer).bind(webhook).execute(&mut **tx).await?;
    i64::try_from(reset.rows_affected()).map_err(Fault::internal)
}
