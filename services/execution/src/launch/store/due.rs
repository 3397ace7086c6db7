//! Launches in PostgreSQL that are due: their results are to be stored. The task that does so reads
//! those of all customers.

use assay_proto::{CustomerId, Fault, LaunchId};
use sqlx::{PgExecutor, PgPool};

use super::{GRACE, Row, StoredLaunch, requests};

/// Takes the next launch that is due, for two minutes: of a customer that has the fewest taken, so that
/// many launches of one do not delay those of others.
pub(in super::super) async fn take_due(
    db: impl PgExecutor<'_>,
) -> Result<Option<StoredLaunch>, Fault> {
    let taken: Option<Row> = sqlx::query_as(
        "with busy as (
             select customer_id, count(*) as taken from launch
             where leased_until > now()
             group by customer_id
         )
         update launch set leased_until = now() + interval '2 minutes'
         where (customer_id, id) = (
             select l.customer_id, l.id from launch l
             left join busy using (customer_id)
             where l.due_at <= now() and (l.leased_until is null or l.leased_until <= now())
             order by coalesce(busy.taken, 0), l.due_at
             limit 1
             for update of l skip locked
         )
         returning customer_id, id, project_id, execution_id, agent,
             finished_at is not null as finished, ended_at is not null as ended,
             coalesce(last_sequence, 0) as last_sequence",
    )
    .fetch_optional(db)
    .await?;
    Ok(taken.map(StoredLaunch::from))
}

/// Lets a launch wait for ten seconds after a failure, or for the token of a caller.
pub(in super::super) async fn postpone(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
    needs_caller: bool,
) -> Result<(), Fault> {
    sqlx::query(
        "update launch
         set needs_caller = $3, leased_until = null,
             due_at = case when $3 then null else now() + interval '10 seconds' end
         where customer_id = $1 and id = $2 and due_at <= now()",
    )
    .bind(launch.customer)
    .bind(launch.id)
    .bind(needs_caller)
    .execute(db)
    .await?;
    Ok(())
}

/// Lists the launches of a customer that need the token of a caller.
pub(in super::super) async fn waiting(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<Vec<LaunchId>, Fault> {
    let waiting = sqlx::query_scalar(
        "select id from launch where customer_id = $1 and needs_caller order by id limit 10",
    );
    Ok(waiting.bind(customer).fetch_all(db).await?)
}

/// Stores the results of a launch that needed the token of a caller soon.
pub(in super::super) async fn resume(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LaunchId,
) -> Result<(), Fault> {
    let resume = sqlx::query(
        "update launch set needs_caller = false, due_at = now() + make_interval(secs => $3)
         where customer_id = $1 and id = $2 and needs_caller",
    );
    resume.bind(customer).bind(id).bind(GRACE).execute(db).await?;
    Ok(())
}

/// Ends a launch after its last request, unless another one has arrived meanwhile. Returns whether it
/// has ended.
pub(in super::super) async fn end(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
    last_sequence: i64,
) -> Result<bool, Fault> {
    let end = sqlx::query(
        "update launch set ended_at = coalesce(ended_at, now()), last_sequence = $3
         where customer_id = $1 and id = $2 and due_at <= now()",
    );
    let done = end.bind(launch.customer).bind(launch.id).bind(last_sequence).execute(db).await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes the requests of a launch up to one of them, in short statements. Nothing is due after
/// that, unless another request arrives.
pub(in super::super) async fn clear(
    db: &PgPool,
    launch: &StoredLaunch,
    last_sequence: i64,
) -> Result<(), Fault> {
    requests::delete_requests(db, launch.customer, launch.id, last_sequence).await?;
    sqlx::query(
        "update launch set due_at = null, leased_until = null
         where customer_id = $1 and id = $2 and due_at <= now()",
    )
    .bind(launch.customer)
    .bind(launch.id)
    .execute(db)
    .await?;
    Ok(())
}

/// Deletes launches of all customers that ended a week ago.
pub(in super::super) async fn remove_old(db: &PgPool) -> Result<(), Fault> {
    sqlx::query(
        "delete from launch
         where due_at is null and ended_at < now() - interval '7 days' and not needs_caller",
    )
    .execute(db)
    .await?;
    Ok(())
}
