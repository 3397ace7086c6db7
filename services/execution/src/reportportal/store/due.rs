//! Launches in PostgreSQL that are due: their results are to be stored. The task that does so reads
//! those of all customers.

use std::time::Duration;

use assay_proto::{CustomerId, Fault, LaunchId};
use assay_work::{Patience, Queue, Work};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};

use super::{COLUMNS, Row, StoredLaunch, requests};

/// Storing the results of a launch. If it is dropped, they are not stored, and its requests are removed
/// as those of a launch that has ended.
pub(crate) const LAUNCH: Work = Work {
    kind: "launch",
    queue: Queue::Unfinished {
        patience: Patience {
            first: Duration::from_secs(1),
            longest: Duration::from_mins(5),
            failures: i32::MAX,
        },
        pending: "exists (
            select from launch l
            where l.customer_id = w.customer_id and l.id = w.id and l.due_at is not null
        )",
        drop: "update launch l
               set ended_at = coalesce(ended_at, now()), due_at = null, leased_until = null,
                   needs_caller = false, kept_until = now(), last_sequence = greatest(last_sequence, (
                       select coalesce(max(sequence), 0) from launch_request r
                       where r.customer_id = l.customer_id and r.launch_id = l.id
                   ))
               where (customer_id, id) in (select * from unnest($1::uuid[], $2::uuid[]))",
    },
};

/// Seconds for which a program takes a launch. It extends them while it works.
pub(in crate::reportportal) const LEASE: f64 = 30.0;

/// Minutes from the end of a launch until its requests are removed. Until then, it can be merged.
const KEPT: i32 = 10;

/// Maximum number of launches whose requests are removed in a round.
const BATCH: i64 = 100;

/// Takes the next launch that is due: of a customer that has the fewest taken, and of none of those that
/// are `busy`, so that many launches of one customer do not delay those of others. One that was given up
/// is taken after a day, unless an operator has it stored before.
pub(in crate::reportportal) async fn take_due(
    db: impl PgExecutor<'_>,
    busy: &[CustomerId],
) -> Result<Option<StoredLaunch>, Fault> {
    let is_due = LAUNCH.is_due("l.customer_id", "l.id");
    let take = sqlx::query_as(AssertSqlSafe(format!(
        "with taken as (
             select customer_id, count(*) as launches from launch
             where leased_until > now()
             group by customer_id
         )
         update launch set leased_until = now() + make_interval(secs => $1)
         where (customer_id, id) = (
             select l.customer_id, l.id from launch l
             left join taken using (customer_id)
             where l.due_at <= now() and (l.leased_until is null or l.leased_until <= now())
               and (not l.needs_caller or l.due_at <= now() - interval '1 day')
               and l.customer_id <> all($2)
               and (l.due_at <= now() - interval '1 day' or {is_due})
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
pub(in crate::reportportal) async fn renew(
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
pub(in crate::reportportal) async fn release(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
) -> Result<(), Fault> {
    let release =
        sqlx::query("update launch set leased_until = null where customer_id = $1 and id = $2");
    release.bind(launch.customer).bind(launch.id).execute(db).await?;
    Ok(())
}

/// Lets a launch wait for the token of a caller.
pub(in crate::reportportal) async fn wait_for_caller(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
) -> Result<(), Fault> {
    let wait = sqlx::query(
        "update launch set needs_caller = true, leased_until = null
         where customer_id = $1 and id = $2",
    );
    wait.bind(launch.customer).bind(launch.id).execute(db).await?;
    Ok(())
}

/// Lists launches of customers that are due and need the token of a caller.
pub(in crate::reportportal) async fn waiting(
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
pub(in crate::reportportal) async fn resume(
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
///
/// Storing results can take longer than a launch waits for further requests, so one that is due may have
/// some. The row is locked by a statement of its own: requests are stored under this lock, and the next
/// statement sees those of all transactions that had it before.
pub(in crate::reportportal) async fn end(
    tx: &mut PgTransaction<'_>,
    launch: &StoredLaunch,
    last_sequence: i64,
) -> Result<Option<f64>, Fault> {
    let lock = sqlx::query("select from launch where customer_id = $1 and id = $2 for update");
    lock.bind(launch.customer).bind(launch.id).execute(&mut **tx).await?;
    // A launch whose requests have been removed cannot be merged again.
    let end = sqlx::query_scalar(
        "update launch
         set ended_at = coalesce(ended_at, now()), last_sequence = $3, due_at = null,
             leased_until = null, needs_caller = false,
             kept_until = case when ended_at is null or kept_until > now()
                 then now() + make_interval(mins => $5) else now() end
         where customer_id = $1 and id = $2 and due_at <= now() and (ended_at is not null) = $4
           and not exists (
               select from launch_request r
               where r.customer_id = $1 and r.launch_id = $2 and r.sequence > $3
           )
         returning extract(epoch from now() - coalesce(finished_at, now()))::float8",
    );
    Ok(end
        .bind(launch.customer)
        .bind(launch.id)
        .bind(last_sequence)
        .bind(launch.ended)
        .bind(KEPT)
        .fetch_optional(&mut **tx)
        .await?)
}

/// Counts the launches of all customers that are due and have not ended.
pub(in crate::reportportal) async fn count_waiting(db: impl PgExecutor<'_>) -> Result<i64, Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from launch where due_at <= now() and ended_at is null",
    );
    Ok(count.fetch_one(db).await?)
}

/// Removes the requests of launches of all customers that are not kept any longer, in short
/// statements, and launches that ended a week ago.
pub(in crate::reportportal) async fn remove_old(db: &PgPool) -> Result<(), Fault> {
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
             where customer_id = $1 and id = $2 and kept_until <= now() and last_sequence = $3",
        );
        cleared.bind(customer).bind(id).bind(last_sequence).execute(db).await?;
    }
    sqlx::query(
        "delete from launch
         where due_at is null and ended_at < now() - interval '7 days' and kept_until is null",
    )
    .execute(db)
    .await?;
    Ok(())
}
