//! Results of rounds in PostgreSQL: attempts are recorded, and webhooks released with the health of their receivers.

use std::time::Duration;

use assay_proto::{Fault, WebhookId};
use sqlx::{PgExecutor, PgTransaction};

use super::{
    attempt::{self, Attempt},
    backoff,
    outcome::{Health, Outcome},
    rounds::Round,
};

/// Time without an attempt after which a failure does not continue an earlier one: a day. While deliveries are retried,
/// attempts follow each other within a third of it, so Assay itself may be away for hours.
const IDLE: Duration = backoff::LONGEST.saturating_mul(3);

/// Locks the webhook of a round. Returns whether it still has the revision of the round, or `None` if it is not claimed
/// by the round any more.
pub(crate) async fn lock(tx: &mut PgTransaction<'_>, round: &Round) -> Result<Option<bool>, Fault> {
    let lock = sqlx::query_scalar(
        "select revision = $3 from webhook where id = $1 and claim = $2 for no key update",
    );
    let lock = lock.bind(round.webhook).bind(round.claim).bind(round.revision);
    Ok(lock.fetch_optional(&mut **tx).await?)
}

/// Records attempts of a round, also in the log of its webhook. A receiver that is gone is not asked again, unless the
/// webhook has changed since: it may have another receiver now.
pub(crate) async fn record_attempts(
    tx: &mut PgTransaction<'_>,
    round: &Round,
    attempts: &[Attempt],
    is_unchanged: bool,
) -> Result<(), Fault> {
    let logged = attempt::log(tx, round.customer, round.webhook, attempts).await?;
    let (mut ids, mut delays, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (place, attempt) in (1_i32..).zip(attempts) {
        let is_final = is_unchanged && attempt.outcome.is_gone();
        for tried in &attempt.deliveries {
            let delay = tried.delay.filter(|_| !is_final);
            ids.push(tried.notification);
            delays.push(delay.map(|delay| delay.as_secs_f64()));
            places.push(place);
        }
    }
    let outcomes = || attempts.iter().map(|attempt| &attempt.outcome);
    sqlx::query(
        "update webhook_delivery
         set attempts = attempts + 1, last_attempt_at = now(),
             response_status = ($5::int[])[made.place], error = ($6::text[])[made.place],
             attempt_id = ($7::uuid[])[made.place],
             delivered_at = case when ($6::text[])[made.place] is null then now() end,
             next_attempt_at = case when ($6::text[])[made.place] is not null
                                    then now() + make_interval(secs => made.delay) end
         from unnest($2::uuid[], $3::float8[], $4::int[]) as made (notification_id, delay, place)
         where webhook_delivery.webhook_id = $1
           and webhook_delivery.notification_id = made.notification_id",
    )
    .bind(round.webhook)
    .bind(ids)
    .bind(delays)
    .bind(places)
    .bind(outcomes().map(Outcome::response_status).collect::<Vec<_>>())
    .bind(outcomes().map(|outcome| outcome.error.as_deref()).collect::<Vec<_>>())
    .bind(logged)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Notes that a round has come to an end, although nothing can be recorded about its deliveries.
pub(crate) async fn end(db: impl PgExecutor<'_>, round: &Round) -> Result<(), Fault> {
    let end = sqlx::query("update webhook set taken = 0 where id = $1 and claim = $2");
    end.bind(round.webhook).bind(round.claim).execute(db).await?;
    Ok(())
}

/// Gives back a webhook to which nothing was sent, or that has changed since, so that another round can begin at once.
pub(crate) async fn give_back(db: impl PgExecutor<'_>, round: &Round) -> Result<(), Fault> {
    let give_back = "update webhook set taken = 0, claim = null, rests_until = now()
                     where id = $1 and claim = $2";
    sqlx::query(give_back).bind(round.webhook).bind(round.claim).execute(db).await?;
    Ok(())
}

/// Releases a webhook at the end of a round. A failing webhook rests, and longer the longer it has been failing. It is
/// archived once it has been failing for days, or if its receiver is gone. After a time without attempts, it begins to
/// fail again: nothing shows that the receiver accepted nothing meanwhile. Returns whether this call archived it.
pub(crate) async fn release(
    tx: &mut PgTransaction<'_>,
    webhook: WebhookId,
    health: Health,
) -> Result<bool, Fault> {
    let released: Option<bool> = sqlx::query_scalar(
        "update webhook
         set taken = 0, claim = null, attempted_at = now(),
             failing_since = case when $2 then null else coalesce(since, now()) end,
             rests_until = case when $2 then now() else now() + least(
                 interval '5 minutes', greatest(interval '1 second', (now() - since) / 2)) end
         from (
             select case when attempted_at > now() - make_interval(secs => $3) then failing_since end as since
             from webhook where id = $1
         ) as previous
         where id = $1 and not archived and deleted_at is null
         returning failing_since < now() - interval '5 days'",
    )
    .bind(webhook)
    .bind(health == Health::Healthy)
    .bind(IDLE.as_secs_f64())
    .fetch_optional(&mut **tx)
    .await?
    .map(|has_failed_for_days: Option<bool>| has_failed_for_days.unwrap_or_default());
    let is_archived = released.is_some_and(|for_days| for_days || health == Health::Gone);
    if is_archived {
        let archive = "update webhook set archived = true, revision = revision + 1 where id = $1";
        sqlx::query(archive).bind(webhook).execute(&mut **tx).await?;
    }
    Ok(is_archived)
}
