//! Due deliveries in PostgreSQL, with their notifications: some of them, or those that are sent together.

use std::{collections::HashMap, time::Duration};

use assay_proto::{Fault, Timestamp, WebhookId, notification::Notification};
use futures::TryStreamExt;
use prost::Message as _;
use sqlx::{AssertSqlSafe, FromRow as _, PgExecutor, PgPool, Row as _, types::Json};
use uuid::Uuid;

use super::schedule;

/// Maximum number of deliveries that are read at once.
pub(crate) const BATCH: usize = 128;

/// Maximum size of the due notifications of one webhook that are read at once to be sent alone, in bytes.
const LARGEST_BATCH: usize = 1 << 20;

/// Maximum size of the notifications that are read for one request, in bytes.
const LARGEST_GROUP: usize = 4 << 20;

/// How deliveries of a webhook are sent together in one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grouping {
    /// Maximum number in a request.
    pub(crate) most: i64,
    /// First attempts that are due within this time are made, too, so that an upload is not torn apart, unless they are
    /// due later than the window of the batch only because of quiet hours. Retries wait until they are due: the
    /// receiver may have asked for the delay.
    pub(super) ahead: Duration,
}

/// A due delivery.
#[derive(sqlx::FromRow)]
pub(crate) struct Due {
    pub(super) webhook_id: WebhookId,
    #[sqlx(flatten)]
    pub(crate) notification: Notification,
    pub(crate) created_at: Timestamp,
    /// Number of previous attempts.
    pub(crate) attempts: i32,
    /// Trace context of the notification.
    pub(crate) trace: Json<HashMap<String, String>>,
}

/// Adds to a size. Returns whether it is within a limit, or the first addition.
fn fits(size: &mut usize, added: usize, most: usize) -> bool {
    let is_first = *size == 0;
    *size += added;
    is_first || *size <= most
}

/// Reads the due deliveries of webhooks, those first that have waited longest: up to [`BATCH`] of each, and fewer
/// if they are large. In quiet hours, only retries are due.
pub(super) async fn due(
    db: impl PgExecutor<'_>,
    webhooks: &[WebhookId],
) -> Result<Vec<Due>, Fault> {
    let limit = i64::try_from(BATCH).map_err(Fault::internal)?;
    let (columns, quiet_end) = (Notification::COLUMNS, schedule::quiet_end("w", "now()"));
    let due = sqlx::query(AssertSqlSafe(format!(
        "select webhook_id, attempts, created_at, trace, {columns}
         from (
             select w.id as webhook_id, {quiet_end} is not null as is_quiet from webhook w
             where w.id = any($1) offset 0
         ) as webhook, lateral (
             select notification_id, attempts, trace from webhook_delivery d
             where d.webhook_id = webhook.webhook_id and d.next_attempt_at <= now()
               and (d.last_attempt_at is not null or not is_quiet)
             order by d.next_attempt_at
             limit $2
         ) as due join notification on id = notification_id"
    )));
    let mut due = due.bind(webhooks).bind(limit).fetch(db);
    let (mut read, mut sizes) = (Vec::<Due>::new(), HashMap::<WebhookId, usize>::new());
    while let Some(row) = due.try_next().await? {
        let size = sizes.entry(row.try_get("webhook_id")?).or_default();
        if *size > LARGEST_BATCH {
            continue;
        }
        let one = Due::from_row(&row)?;
        if fits(size, one.notification.encoded_len(), LARGEST_BATCH) {
            read.push(one);
        }
    }
    Ok(read)
}

/// Reads the due deliveries of a webhook that are sent together, up to their maximum number and size, if the webhook
/// still has this claim and this revision. Returns them, and whether there may be more.
pub(super) async fn group(
    db: &PgPool,
    webhook: WebhookId,
    (claim, revision): (Uuid, i64),
    grouping: Grouping,
) -> Result<(Vec<Due>, bool), Fault> {
    let (columns, quiet_end) = (Notification::COLUMNS, schedule::quiet_end("w", "now()"));
    let due = sqlx::query_as::<_, Due>(AssertSqlSafe(format!(
        "select webhook_id, attempts, created_at, trace, {columns}
         from (
             select webhook_id, notification_id, attempts, trace from webhook_delivery
             where webhook_id = $1 and next_attempt_at <= now() + make_interval(secs => $2)
               and (next_attempt_at <= now() or attempts = 0 and next_attempt_at <= make_interval(secs => $2)
                        + (select created_at from notification where id = notification_id))
               and (last_attempt_at is not null
                    or (select {quiet_end} is null from webhook w where w.id = $1))
               and exists (select from webhook w where w.id = $1 and w.claim = $4 and w.revision = $5)
             order by next_attempt_at, notification_id
             limit $3
         ) as due join notification on id = notification_id
         order by id"
    )));
    let due = due.bind(webhook).bind(grouping.ahead.as_secs_f64()).bind(grouping.most);
    let mut due = due.bind(claim).bind(revision).fetch(db);
    let (mut read, mut size) = (Vec::<Due>::new(), 0);
    while let Some(one) = due.try_next().await? {
        if !fits(&mut size, one.notification.encoded_len(), LARGEST_GROUP) {
            return Ok((read, true));
        }
        read.push(one);
    }
    let count = i64::try_from(read.len()).map_err(Fault::internal)?;
    Ok((read, count == grouping.most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_notification_always_fits_and_others_as_far_as_there_is_room() {
        let fitting = |sizes: &[usize]| {
            let mut size = 0;
            sizes.iter().map(|added| fits(&mut size, *added, 10)).collect::<Vec<_>>()
        };
        assert_eq!(fitting(&[4, 6, 1]), [true, true, false]);
        assert_eq!(fitting(&[11, 1]), [true, false]);
        // None overtakes one that does not fit.
        assert_eq!(fitting(&[4, 7, 1]), [true, false, false]);
    }
}
