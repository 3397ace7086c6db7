//! Rounds in PostgreSQL: webhooks of all customers are claimed with their due deliveries.

use std::time::Duration;

use assay_proto::{CustomerId, Fault, WebhookId, notification::WebhookFormat, value_of};
use assay_work::{Age, Turns};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use super::{
    due::{self, Due, Grouping},
    schedule,
};
use crate::secret::Sealed;

/// Maximum number of deliveries while the webhook fails or no round comes to an end: then the first
/// delivery may be the cause.
const PROBE: usize = 1;

/// Maximum number of notifications in a digest.
const LONGEST_DIGEST: i64 = 500;

/// A claimed webhook, with some of its due deliveries.
pub(crate) struct Round {
    pub(crate) webhook: WebhookId,
    pub(super) claim: Uuid,
    pub(super) revision: i64,
    pub(crate) customer: CustomerId,
    pub(crate) url: String,
    pub(crate) sealed: Sealed,
    pub(crate) format: WebhookFormat,
    /// How deliveries are sent together, if they are.
    pub(crate) grouping: Option<Grouping>,
    /// Time of the claim, in seconds since 1970.
    pub(crate) timestamp: i64,
    /// How often a round has begun since one came to an end, this one included.
    pub(crate) taken: i32,
    pub(crate) due: Vec<Due>,
}

/// The webhooks with deliveries that are not finished. A recursive query finds them with one index lookup
/// each, however many deliveries are waiting.
const WAITING: &str = "waiting (webhook_id) as (
     (select webhook_id from webhook_delivery where next_attempt_at is not null
      order by webhook_id limit 1)
     union all
     select (select webhook_id from webhook_delivery d
             where next_attempt_at is not null and d.webhook_id > waiting.webhook_id
             order by webhook_id limit 1)
     from waiting where waiting.webhook_id is not null
 )";

#[derive(sqlx::FromRow)]
struct Claimed {
    id: WebhookId,
    claim: Uuid,
    revision: i64,
    customer_id: CustomerId,
    url: String,
    secret: String,
    previous_secret: Option<String>,
    sealed_headers: Option<String>,
    format: String,
    batch_size: i32,
    batch_window_in_sec: i32,
    digest: String,
    is_failing: bool,
    taken: i32,
    timestamp: i64,
}

impl Claimed {
    fn grouping(&self) -> Option<Grouping> {
        // One delivery at a time shows which one no program survives.
        let most = |most| if self.taken > 1 { 1 } else { most };
        if self.digest != "None" {
            return Some(Grouping { most: most(LONGEST_DIGEST), ahead: Duration::ZERO });
        }
        let window = u64::try_from(self.batch_window_in_sec).unwrap_or_default();
        let grouping =
            Grouping { most: most(i64::from(self.batch_size)), ahead: Duration::from_secs(window) };
        (self.batch_size > 1).then_some(grouping)
    }
}

/// Claims up to `limit` webhooks that have due deliveries, those first that have waited longest. A
/// claim expires after `validity`, which is longer than a round may take. Another replica may then claim
/// the webhook, and the round that was late records nothing.
///
/// A customer has at most `limit_of_customer` rounds, including those that are `running`. Customers
/// with few rounds come first. In quiet hours, only retries are due.
pub(crate) async fn claim(
    db: &PgPool,
    limit: i64,
    limit_of_customer: i64,
    running: &Turns<CustomerId>,
    validity: Duration,
) -> Result<Vec<Round>, Fault> {
    let (customers, counts): (Vec<CustomerId>, Vec<i64>) =
        running.iter().map(|(customer, count)| (*customer, *count)).unzip();
    let quiet_end = schedule::quiet_end("webhook", "now()");
    let claimed: Vec<Claimed> = sqlx::query_as(AssertSqlSafe(format!(
        "with recursive {WAITING}, ready as (
             select id, rests_until, coalesce(count, 0)
                    + row_number() over (partition by customer_id order by rests_until) as turn
             from webhook left join unnest($2::uuid[], $3::bigint[])
                 as running (customer_id, count) using (customer_id)
             where id = any(array(select webhook_id from waiting))
               and deleted_at is null and not archived and rests_until <= now()
               and exists (
                   select 1 from webhook_delivery d
                   where d.webhook_id = webhook.id and d.next_attempt_at <= now() and {quiet_end} is null
                   union all
                   select 1 from webhook_delivery d
                   where d.webhook_id = webhook.id and d.next_attempt_at <= now()
                     and d.last_attempt_at is not null
               )
         )
         update webhook set rests_until = now() + make_interval(secs => $5), taken = taken + 1,
                            claim = gen_random_uuid()
         where id = any(array(
             select id from webhook
             where id = any(array(
                 select id from ready where turn <= $4 order by turn, rests_until limit $1
             )) and rests_until <= now() and deleted_at is null and not archived
             for no key update skip locked
         ))
         returning id, claim, revision, customer_id, url, secret, sealed_headers, format, batch_size,
                   batch_window_in_sec, digest,
                   failing_since is not null as is_failing, taken,
                   case when previous_secret_until > now() then previous_secret end
                       as previous_secret,
                   extract(epoch from now())::bigint as timestamp"
    )))
    .bind(limit)
    .bind(customers)
    .bind(counts)
    .bind(limit_of_customer)
    .bind(validity.as_secs_f64())
    .fetch_all(db)
    .await?;
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = claimed.iter().map(|claimed| claimed.id).collect();
    let mut due = due::due(db, &ids).await?;
    let rounds = claimed.into_iter().map(|claimed| Round {
        webhook: claimed.id,
        claim: claimed.claim,
        revision: claimed.revision,
        customer: claimed.customer_id,
        format: value_of(&claimed.format).unwrap_or_default(),
        grouping: claimed.grouping(),
        url: claimed.url,
        sealed: Sealed {
            secrets: [Some(claimed.secret), claimed.previous_secret]
                .into_iter()
                .flatten()
                .collect(),
            headers: claimed.sealed_headers,
        },
        timestamp: claimed.timestamp,
        taken: claimed.taken,
        due: due
            .extract_if(.., |due| due.webhook_id == claimed.id)
            .take(if claimed.is_failing || claimed.taken > 1 { PROBE } else { usize::MAX })
            .collect(),
    });
    // An empty round would not show whether the receiver is healthy.
    Ok(rounds.filter(|round| !round.due.is_empty()).collect())
}

/// Returns the age of the oldest delivery that is due although its webhook does not rest, and that no
/// replica is sending. In quiet hours, only retries are due.
pub fn age() -> Age {
    let quiet_end = schedule::quiet_end("webhook", "now()");
    let oldest = |which: &str| {
        format!(
            "(select min(d.next_attempt_at) from webhook_delivery d
              where d.webhook_id = webhook.id and d.next_attempt_at is not null and {which})"
        )
    };
    let (of_all, of_retries) = (oldest("true"), oldest("d.last_attempt_at is not null"));
    Age {
        metric: "assay_webhook_age_seconds",
        help: "Time since the oldest delivery to a webhook that waits to be sent was due.",
        label: None,
        due_since: format!(
            "with recursive {WAITING}
             select min(greatest(rests_until, next.attempt_at))
             from webhook, lateral (
                 select case when {quiet_end} is null then {of_all} else {of_retries} end as attempt_at
                 offset 0
             ) as next
             where id = any(array(select webhook_id from waiting))
               and deleted_at is null and not archived
               and rests_until <= now() and next.attempt_at <= now()"
        ),
    }
}

/// Replaces the deliveries of a round by more that are due; by none if the webhook has changed, or is
/// claimed by another round.
pub(crate) async fn read_more(db: &PgPool, round: &mut Round) -> Result<(), Fault> {
    let unchanged = sqlx::query_scalar(
        "select exists (
             select from webhook
             where customer_id = $1 and id = $2 and revision = $3 and claim = $4
               and deleted_at is null
         )",
    );
    let unchanged = unchanged.bind(round.customer).bind(round.webhook).bind(round.revision);
    let unchanged = unchanged.bind(round.claim);
    let is_unchanged: bool = unchanged.fetch_one(db).await?;
    round.due = if is_unchanged { due::due(db, &[round.webhook]).await? } else { Vec::new() };
    Ok(())
}

/// Replaces the deliveries of a round by those that are sent together next; by none if the webhook has changed, or
/// is claimed by another round. Returns whether there may be more.
pub(crate) async fn read_group(
    db: &PgPool,
    round: &mut Round,
    grouping: Grouping,
) -> Result<bool, Fault> {
    let unchanged = (round.claim, round.revision);
    let (due, is_more) = due::group(db, round.webhook, unchanged, grouping).await?;
    round.due = due;
    Ok(is_more)
}
