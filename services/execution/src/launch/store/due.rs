//! Launches in PostgreSQL that are due: their results are to be stored. The task that does so reads
//! those of all customers.

use assay_proto::{CustomerId, Fault, LaunchId};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool};

use super::{COLUMNS, Row, StoredLaunch, requests};

/// Seconds for which a program takes a launch. It extends them while it works.
pub(in super::super) const LEASE: f64 = 30.0;

/// Minutes from the end of a launch until its requests are removed. Until then, it can be merged.
const KEPT: i32 = 10;

/// Maximum number of launches whose requests are removed in a round.
const BATCH: i64 = 100;

/// Takes the next launch that is due, and counts that before anything is done with it: of a customer that has the fewest taken, and of none of those
/// that are `busy`, so that many launches of one customer do not delay those of others.
pub(in super::super) async fn take_due(
    db: impl PgExecutor<'_>,
    busy: &[CustomerId],
) -> Result<Option<StoredLaunch>, Fault> {
    let take = sqlx::query_as(AssertSqlSafe(format!(
        "with taken as (
             select customer_id, count(*) as launches from launch
             where leased_until > now()
             group by customer_id
         )
         update launch set leased_until = now() + make_interval(secs => $1), taken = taken + 1
         where (customer_id, id) = (
             select l.customer_id, l.id from launch l
             left join taken using (customer_id)
             where l.due_at <= now() and (l.leased_until is null or l.leased_until <= now())
               and (not l.needs_caller or l.due_at <= now() - interval '1 day')
               and l.customer_id <> all($2)
             order by coalesce(taken.launches, 0), l.due_at
             limit 1
             for update of l skip locked
         )
         returning {COLUMNS}"
    )));
    let taken: Option<Row> = take.bind(LEASE).bind(busy).fetch_optional(db).await?;
    Ok(taken.map(StoredLaunch::from))
}

/// Extends the lease of a launch.
pub(in super::super) async fn renew(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
) -> Result<(), Fault> {
    let renew = sqlx::query(
        "update launch set leased_until = now() + make_interval(secs => $3)
         where customer_id = $1 and id = $2 and leased_until is not null",
    );
    renew.bind(launch.customer).bind(launch.id).bind(LEASE).execute(db).await?;
    Ok(())
}

/// Ends the lease of a launch, so that it is taken again if it is still due.
pub(in super::super) async fn release(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
) -> Result<(), Fault> {
    let release = sqlx::query(
        "update launch set leased_until = null, taken = 0 where customer_id = $1 and id = $2",
    );
    release.bind(launch.customer).bind(launch.id).execute(db).await?;
    Ok(())
}

/// Lets a launch wait after a failure: a second, and twice as long after each further one, up to
/// five minutes.
pub(in super::super) async fn postpone(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
) -> Result<(), Fault> {
    let postpone = sqlx::query(
        "update launch
         set failures = failures + 1, taken = 0,
             leased_until = now() + make_interval(secs => least(2.0 ^ least(failures, 20), 300))
         where customer_id = $1 and id = $2",
    );
    postpone.bind(launch.customer).bind(launch.id).execute(db).await?;
    Ok(())
}

/// Lets a launch wait for the token of a caller.
pub(in super::super) async fn wait_for_caller(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
) -> Result<(), Fault> {
    let wait = sqlx::query(
        "update launch set needs_caller = true, leased_until = null, taken = 0
         where customer_id = $1 and id = $2",
    );
    wait.bind(launch.customer).bind(launch.id).execute(db).await?;
    Ok(())
}

/// Lists launches of customers that are due and need the token of a caller.
pub(in super::super) async fn waiting(
    db: impl PgExecutor<'_>,
    customers: &[CustomerId],
) -> Result<Vec<(CustomerId, LaunchId)>, Fault> {
    let waiting = sqlx::query_as(
        "select customer_id, id from launch
         where customer_id = any($1) and needs_caller and due_at <= now()
         order by due_at limit 1000",
    );
    Ok(waiting.bind(customers).fetch_all(db).await?)
}

/// Notes that the test cases of a launch are adopted.
pub(in super::super) async fn resume(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LaunchId,
) -> Result<(), Fault> {
    let resume = sqlx::query(
        "update launch set needs_caller = false
         where customer_id = $1 and id = $2 and needs_caller",
    );
    resume.bind(customer).bind(id).execute(db).await?;
    Ok(())
}

/// Ends a launch after its last request, unless another one has arrived meanwhile or another program
/// has ended it. Returns the seconds since it was finished, or nothing if it has not ended.
pub(in super::super) async fn end(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
    last_sequence: i64,
) -> Result<Option<f64>, Fault> {
    let end = sqlx::query_scalar(
        "update launch
         set ended_at = coalesce(ended_at, now()), last_sequence = $3, due_at = null,
             leased_until = null, needs_caller = false, failures = 0, taken = 0,
             kept_until = now() + make_interval(mins => $5)
         where customer_id = $1 and id = $2 and due_at <= now() and (ended_at is not null) = $4
         returning extract(epoch from now() - coalesce(finished_at, now()))::float8",
    );
    Ok(end
        .bind(launch.customer)
        .bind(launch.id)
        .bind(last_sequence)
        .bind(launch.ended)
        .bind(KEPT)
        .fetch_optional(db)
        .await?)
}

/// Counts the launches of all customers that are due and have not ended.
pub(in super::super) async fn count_waiting(db: impl PgExecutor<'_>) -> Result<i64, Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from launch where due_at <= now() and ended_at is null",
    );
    Ok(count.fetch_one(db).await?)
}

/// Removes the requests of launches of all customers that are not kept any longer, in short
/// statements, and launches that ended a week ago.
pub(in super::super) async fn remove_old(db: &PgPool) -> Result<(), Fault> {
    let expired = sqlx::query_as(
        "select customer_id, id, last_sequence from launch
         where kept_until <= now() and last_sequence is not null
         order by kept_until limit $1",
    );
    let expired: Vec<(CustomerId, LaunchId, i64)> = expired.bind(BATCH).fetch_all(db).await?;
    for (customer, id, last_sequence) in expired {
        requests::delete_requests(db, customer, id, last_sequence).await?;
        let cleared = sqlx::query(
            "update launch set kept_until = null
             where customer_id = $1 and id = $2 and kept_until <= now()",
        );
        cleared.bind(customer).bind(id).execute(db).await?;
    }
    sqlx::query(
        "delete from launch
         where due_at is null and ended_at < now() - interval '7 days' and kept_until is null",
    )
    .execute(db)
    .await?;
    Ok(())
}
