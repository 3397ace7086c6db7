//! Execution times in PostgreSQL: how they are derived, stored, compared and repaired.

mod sums;

use std::time::Instant;

use assay_fair::Throttle;
use assay_proto::{CustomerId, ExecutionId, Fault};
use assay_work::{Patience, Queue, Work};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

pub(super) use self::sums::{current_month, list, of_month};

/// Storing the time of an ended execution. If it is dropped, the month does not count the execution.
pub(crate) const EXECUTION_TIME: Work = Work {
    kind: "execution-time",
    queue: Queue::Unfinished {
        patience: Patience::of_derivations(),
        pending: "exists (
            select from execution e
            where e.customer_id = w.customer_id and e.id = w.id and e.timed_at is null
        )",
        drop: "update execution e set timed_at = 'infinity'
               from (
                   select customer_id, id from execution
                   where (customer_id, id) in (select * from unnest($1::uuid[], $2::uuid[]))
                   order by id
                   for no key update
               ) as locked
               where e.customer_id = locked.customer_id and e.id = locked.id",
    },
};

/// The columns of a row.
const COLUMNS: &str =
    "customer_id, execution_id, project_id, test_set_id, target_group, month, instances,
    duration_in_sec";

/// Returns a statement that derives the rows of the executions `e` that `which` selects. The queue of an
/// execution begins with its target group. An execution that was deleted before its end counts in the month
/// of its removal. Results that were imported after the fact were executed elsewhere.
fn derived(which: &str) -> String {
    format!(
        "select e.customer_id, e.id as execution_id, e.project_id, e.test_set_id,
                coalesce((
                    select substring(s.target_group from E'^[^\\x1d-\\x1f]*')
                    from schedule s
                    where s.customer_id = e.customer_id and s.execution_id = e.id
                    order by s.id
                    limit 1
                ), '') as target_group,
                date_trunc('month', coalesce(e.completion_date_time, now()) at time zone 'utc')::date
                    as month,
                total.instances, total.duration_in_sec
         from execution e
         cross join lateral (
             select coalesce(sum(r.finished_instances_count), 0)::bigint as instances,
                    coalesce(sum(r.total_duration_in_sec), 0) as duration_in_sec
             from test_report r
             where r.customer_id = e.customer_id and r.execution_id = e.id
         ) as total
         where e.past_end is null and total.instances > 0 and {which}"
    )
}

/// Maximum number of executions that are read at once.
const AT_ONCE: i64 = 100;

/// Returns executions that have ended, whose time is not stored yet, and is to be stored now: the latest first, so that
/// many old ones, such as those of an import or from before an upgrade, do not delay new ones.
pub(super) async fn due(db: impl PgExecutor<'_>) -> Result<Vec<(CustomerId, Uuid)>, Fault> {
    let due = sqlx::query_as(AssertSqlSafe(format!(
        "select customer_id, id from live_execution e
         where status in ('Completed', 'Canceled') and timed_at is null and {}
         order by id desc
         limit $1",
        EXECUTION_TIME.is_due("e.customer_id", "e.id")
    )));
    Ok(due.bind(AT_ONCE).fetch_all(db).await?)
}

/// Stores the time of an ended execution, unless that was done, or it was left out or deleted.
pub(super) async fn count(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let lock = sqlx::query_scalar(
        "select true from live_execution
         where customer_id = $1 and id = $2 and timed_at is null
         for no key update",
    );
    let locked: Option<bool> =
        lock.bind(customer).bind(execution).fetch_optional(&mut **tx).await?;
    if locked.is_some() { insert(tx, customer, execution).await } else { Ok(()) }
}

/// Stores the time of an execution that is about to be removed, unless that was done, or it was left out.
/// One that has not ended counts as far as it has come.
pub(crate) async fn keep(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let lock = sqlx::query_scalar(
        "select timed_at is null from execution
         where customer_id = $1 and id = $2
         for no key update",
    );
    let is_missing: Option<bool> =
        lock.bind(customer).bind(execution).fetch_optional(&mut **tx).await?;
    if is_missing == Some(true) { insert(tx, customer, execution).await } else { Ok(()) }
}

async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let derived = derived("e.customer_id = $1 and e.id = $2");
    for statement in [
        format!(
            "insert into execution_time ({COLUMNS}) {derived}
             on conflict on constraint execution_time_pkey do nothing"
        ),
        "update execution set timed_at = now() where customer_id = $1 and id = $2".to_owned(),
    ] {
        let statement = sqlx::query(AssertSqlSafe(statement)).bind(customer).bind(execution);
        statement.execute(&mut **tx).await?;
    }
    Ok(())
}

/// Leaves out executions, because their results are those of another one: takes out their times, and marks
/// them with the time `infinity`.
pub(crate) async fn leave_out(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    executions: &[ExecutionId],
) -> Result<(), Fault> {
    for statement in [
        "update execution e set timed_at = 'infinity'
         from (
             select id from execution where customer_id = $1 and id = any($2)
             order by id
             for no key update
         ) as locked
         where e.customer_id = $1 and e.id = locked.id",
        "delete from execution_time where customer_id = $1 and execution_id = any($2)",
    ] {
        sqlx::query(statement).bind(customer).bind(executions).execute(&mut **tx).await?;
    }
    Ok(())
}

/// Removes the times of a deleted customer, in short statements.
pub(crate) async fn remove_all(
    db: &PgPool,
    throttle: &mut Throttle,
    customer: CustomerId,
) -> Result<(), Fault> {
    let remove = "delete from execution_time where customer_id = $1 and execution_id in (
                      select execution_id from execution_time where customer_id = $1 limit $2
                  )";
    loop {
        let (begun, limit) = (Instant::now(), throttle.batch_size());
        let removed = sqlx::query(remove).bind(customer).bind(limit).execute(db).await?;
        if removed.rows_affected() < limit.unsigned_abs() {
            return Ok(());
        }
        throttle.pause(begun.elapsed()).await;
    }
}

/// Returns a statement that lists the differences between the stored rows and the derived ones, as
/// the columns `noun`, `id`, `field`, `stored` and `derived`.
pub(crate) fn differences() -> String {
    let shown = |row: &str| {
        format!(
            "case when {row}.month is not null then format(
                '%s s of %s instances in %s on %s', {row}.duration_in_sec, {row}.instances,
                {row}.month, {row}.target_group
            ) end"
        )
    };
    let (stored, derived, pairs) = (shown("stored"), shown("derived"), pairs());
    format!(
        "select 'execution' as noun, execution_id::text as id, 'execution time' as field,
                {stored} as stored, {derived} as derived
         {pairs}
         order by execution_id"
    )
}

/// The stored rows and the derived ones that differ. Rows of executions that are gone, or are being removed,
/// have nothing to compare them with.
fn pairs() -> String {
    let derived = derived(
        "e.timed_at < 'infinity' and not exists (
             select from deletion d
             where d.customer_id = e.customer_id
               and d.project_id in (e.project_id, '00000000-0000-0000-0000-000000000000')
         )",
    );
    format!(
        "from (
             select stored.* from execution_time stored
             join live_execution e
                 on e.customer_id = stored.customer_id and e.id = stored.execution_id
         ) as stored
         full join ({derived}) as derived using (customer_id, execution_id)
         where (stored.project_id, stored.test_set_id, stored.target_group, stored.month, stored.instances)
             is distinct from
               (derived.project_id, derived.test_set_id, derived.target_group, derived.month,
                derived.instances)
            or abs(stored.duration_in_sec - derived.duration_in_sec)
               > 1e-6 * greatest(1, derived.duration_in_sec)"
    )
}

/// Replaces the rows that differ from the derived ones, while none is stored. Returns their number.
pub(crate) async fn repair(tx: &mut PgTransaction<'_>) -> Result<u64, Fault> {
    sqlx::query("lock table execution_time in share row exclusive mode").execute(&mut **tx).await?;
    let pairs = pairs();
    let repair = format!(
        "with differing as materialized (
             select customer_id, execution_id, derived.project_id, derived.test_set_id,
                    derived.target_group, derived.month, derived.instances, derived.duration_in_sec
             {pairs}
         ),
         gone as (
             delete from execution_time
             using differing
             where differing.month is null and execution_time.customer_id = differing.customer_id
               and execution_time.execution_id = differing.execution_id
         ),
         written as (
             insert into execution_time ({COLUMNS})
             select {COLUMNS} from differing where month is not null
             on conflict on constraint execution_time_pkey do update
             set project_id = excluded.project_id, test_set_id = excluded.test_set_id,
                 target_group = excluded.target_group, month = excluded.month,
                 instances = excluded.instances, duration_in_sec = excluded.duration_in_sec
         )
         select count(*) from differing"
    );
    let repaired: i64 = sqlx::query_scalar(AssertSqlSafe(repair)).fetch_one(&mut **tx).await?;
    Ok(repaired.unsigned_abs())
}
