//! The results of each test case, day and branch, in PostgreSQL: they are added up when an execution
//! has ended, and derived again to verify and to rebuild them.

mod drift;

use std::time::Instant;

use assay_fair::Throttle;
use assay_judge::{OUTAGE_OF, OUTAGE_PERCENT};
use assay_proto::{CustomerId, ExecutionId, Fault};
use assay_work::{Patience, Queue, Work};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

pub(crate) use self::drift::{differences, repair};

/// Adding the results of an ended execution. If it is dropped, insights do not count the execution.
pub(crate) const INSIGHT: Work = Work {
    kind: "insight",
    queue: Queue::Unfinished {
        patience: Patience::of_derivations(),
        pending: "exists (
            select from execution e
            where e.customer_id = w.customer_id and e.id = w.id and e.rolled_up_at is null
        )",
        drop: "update execution e set rolled_up_at = 'infinity'
               from (
                   select customer_id, id from execution
                   where (customer_id, id) in (select * from unnest($1::uuid[], $2::uuid[]))
                   order by id
                   for no key update
               ) as locked
               where e.customer_id = locked.customer_id and e.id = locked.id",
    },
};

/// Number of days that are kept, today included.
pub(crate) const MOST: i32 = 90;

/// The columns that identify a row.
const KEY: &str = "customer_id, project_id, test_case_id, day, branch";

/// The other columns.
const SUMS: &str = "runs, failures, new_failures, flaky_runs, recoveries, duration_in_sec, is_slow,
    last_execution_id, last_failed";

/// Returns a statement that derives rows from the reports of the executions `e` that `which` selects.
/// The 200 slowest test cases of an execution are slow. A last failure of a flaky test is none, and new failures in an
/// outage are none either.
fn derived(which: &str) -> String {
    format!(
        "select {KEY}, count(*)::int as runs, (count(*) filter (where failed))::int as failures,
                (count(*) filter (where change = 'New' and not is_outage))::int as new_failures,
                (count(*) filter (where change = 'Flaky'))::int as flaky_runs,
                (count(*) filter (where change = 'Fixed'))::int as recoveries,
                sum(total_duration_in_sec) as duration_in_sec,
                bool_or(rank <= 200 and total_duration_in_sec > 0) as is_slow,
                (array_agg(execution_id order by execution_id desc))[1] as last_execution_id,
                (array_agg(
                    failed and change <> 'Flaky' and not (change = 'New' and is_outage)
                    order by execution_id desc
                ))[1] as last_failed
         from (
             select e.customer_id, e.project_id, r.test_case_id,
                    (e.request_time at time zone 'utc')::date as day,
                    coalesce(e.branch, '') as branch, e.id as execution_id,
                    r.result <> 'Passed' as failed, r.change, e.is_outage, r.total_duration_in_sec,
                    row_number() over (
                        partition by e.customer_id, e.id
                        order by r.total_duration_in_sec desc, r.id
                    ) as rank
             from live_execution e
             join test_report r on r.customer_id = e.customer_id and r.execution_id = e.id
             where r.result in ('Passed', 'Failed', 'Error') and {which}
         ) as result
         group by {KEY}"
    )
}

/// Maximum number of executions that are read at once.
const AT_ONCE: i64 = 100;

/// Returns the first executions that have ended, were not added yet, and are to be added now.
pub(super) async fn due(db: impl PgExecutor<'_>) -> Result<Vec<(CustomerId, Uuid)>, Fault> {
    let due = sqlx::query_as(AssertSqlSafe(format!(
        "select customer_id, id from live_execution e
         where status in ('Completed', 'Canceled') and rolled_up_at is null and {}
         order by id
         limit $1",
        INSIGHT.is_due("e.customer_id", "e.id")
    )));
    Ok(due.bind(AT_ONCE).fetch_all(db).await?)
}

/// Locks an execution. Returns false if it need not be added any more.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<bool, Fault> {
    let lock = sqlx::query_scalar(
        "select true from live_execution
         where customer_id = $1 and id = $2 and rolled_up_at is null
         for no key update",
    );
    let locked: Option<bool> =
        lock.bind(customer).bind(execution).fetch_optional(&mut **tx).await?;
    Ok(locked.is_some())
}

/// A lock of the sums of a customer, `$1`: shared to add to them, and exclusive to derive them again.
const LOCK_SHARED: &str =
    "select pg_advisory_xact_lock_shared(hashtextextended('days ' || $1::text, 0))";
const LOCK: &str = "select pg_advisory_xact_lock(hashtextextended('days ' || $1::text, 0))";

/// A statement that records that an execution was added, and whether it is evidence about the environment.
fn mark() -> String {
    format!(
        "update execution
         set rolled_up_at = now(),
             is_outage = executed >= {OUTAGE_OF}
                 and 100 * (failed - muted) > {OUTAGE_PERCENT} * executed
         from (
             select test_cases_failed + test_cases_with_error as failed,
                    test_cases_passed + test_cases_failed + test_cases_with_error as executed,
                    (select count(*) from test_report r
                     where r.customer_id = $1 and r.execution_id = $2 and r.change <> 'None'
                       and r.is_muted) as muted
             from execution
             where customer_id = $1 and id = $2
         ) as counted
         where customer_id = $1 and id = $2"
    )
}

/// Adds the results of an execution.
pub(super) async fn add(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    sqlx::query(LOCK_SHARED).bind(customer).execute(&mut **tx).await?;
    let derived = derived("e.customer_id = $1 and e.id = $2");
    let insert = format!(
        "insert into case_day ({KEY}, {SUMS})
         {derived}
         order by test_case_id
         on conflict on constraint case_day_pkey do update
         set runs = case_day.runs + excluded.runs,
             failures = case_day.failures + excluded.failures,
             new_failures = case_day.new_failures + excluded.new_failures,
             flaky_runs = case_day.flaky_runs + excluded.flaky_runs,
             recoveries = case_day.recoveries + excluded.recoveries,
             duration_in_sec = case_day.duration_in_sec + excluded.duration_in_sec,
             is_slow = case_day.is_slow or excluded.is_slow,
             last_failed = case when excluded.last_execution_id > case_day.last_execution_id
                 then excluded.last_failed else case_day.last_failed end,
             last_execution_id = greatest(case_day.last_execution_id, excluded.last_execution_id)"
    );
    for statement in [mark(), insert] {
        let statement = sqlx::query(AssertSqlSafe(statement)).bind(customer).bind(execution);
        statement.execute(&mut **tx).await?;
    }
    Ok(())
}

/// Leaves out executions, because their results are those of another one: takes out what they have
/// added, and marks them with the time `infinity`. Their sums are derived again, while no execution of
/// the customer is added.
pub(crate) async fn leave_out(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    executions: &[ExecutionId],
) -> Result<(), Fault> {
    let added: Vec<ExecutionId> = sqlx::query_scalar(
        "with before as (
             select id, rolled_up_at < 'infinity' as added from execution
             where customer_id = $1 and id = any($2)
             order by id
             for no key update
         ), marked as (
             update execution e set rolled_up_at = 'infinity' from before
             where e.customer_id = $1 and e.id = before.id
         )
         select id from before where added",
    )
    .bind(customer)
    .bind(executions)
    .fetch_all(&mut **tx)
    .await?;
    if added.is_empty() {
        return Ok(());
    }
    sqlx::query(LOCK).bind(customer).execute(&mut **tx).await?;
    let keys = "select distinct e.customer_id, e.project_id, r.test_case_id,
                    (e.request_time at time zone 'utc')::date as day,
                    coalesce(e.branch, '') as branch
                from execution e
                join test_report r on r.customer_id = e.customer_id and r.execution_id = e.id
                where e.customer_id = $1 and e.id = any($2)";
    let days = "(e.project_id, (e.request_time at time zone 'utc')::date, coalesce(e.branch, ''))
                in (select project_id, day, branch from removed)";
    let derived =
        derived(&format!("e.customer_id = $1 and e.rolled_up_at < 'infinity' and {days}"));
    for statement in [
        format!("delete from case_day where ({KEY}) in ({keys})"),
        format!(
            "with removed as materialized ({keys})
             insert into case_day ({KEY}, {SUMS})
             select * from ({derived}) as derived where ({KEY}) in (select {KEY} from removed)"
        ),
    ] {
        let statement = sqlx::query(AssertSqlSafe(statement)).bind(customer).bind(&added);
        statement.execute(&mut **tx).await?;
    }
    Ok(())
}

/// Removes the days that are not kept any more, of all customers.
pub(crate) async fn remove_old(db: &PgPool, throttle: &mut Throttle) -> Result<(), Fault> {
    let remove = "
        delete from case_day
        where ctid = any(array(
            select ctid from case_day
            where day <= (now() at time zone 'utc')::date - $1
            limit $2
        ))";
    loop {
        let begun = Instant::now();
        let batch = throttle.batch_size();
        let removed = sqlx::query(remove).bind(MOST).bind(batch).execute(db).await?.rows_affected();
        if removed == 0 {
            return Ok(());
        }
        throttle.pause(begun.elapsed()).await;
    }
}
