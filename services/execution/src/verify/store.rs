//! The stored state and the state derived from results, in PostgreSQL, of all customers.

use assay_database::begin;
use assay_fingerprint::Fingerprint;
use assay_ledger::failure::derive;
use assay_proto::{CustomerId, ExecutionId, Fault, TestCaseId};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};

use super::compare::Difference;
use crate::{execution_time, insight::days};

/// Returns a statement that derives the counters of test cases from the reports `r` that `which` selects, and
/// lists those that differ.
fn differing_counters(which: &str) -> String {
    format!(
        "select r.customer_id, r.test_case_id, c.executions, r.derived
         from test_case_counter c
         right join (
             select r.customer_id, r.test_case_id, max(r.execution_number) as derived
             from test_report r
             join live_execution e on e.customer_id = r.customer_id and e.id = r.execution_id
             where {which}
             group by r.customer_id, r.test_case_id
         ) as r on r.customer_id = c.customer_id and r.test_case_id = c.test_case_id
         where c.executions is distinct from coalesce(r.derived, 0)"
    )
}

/// Number of executions that one statement compares.
pub(super) const SLICE: usize = 100;

/// The customer and the id of an execution.
type Key = (CustomerId, ExecutionId);

/// Lists executions after another one, in the order of their keys.
pub(super) async fn executions(
    db: impl PgExecutor<'_>,
    after: Option<Key>,
) -> Result<Vec<Key>, Fault> {
    let (customer, id) = after.unzip();
    let executions = sqlx::query_as(
        "select customer_id, id from live_execution
         where (customer_id, id) > (
             coalesce($1, '00000000-0000-0000-0000-000000000000'),
             coalesce($2, '00000000-0000-0000-0000-000000000000')
         )
         order by customer_id, id
         limit $3",
    )
    .bind(customer)
    .bind(id)
    .bind(i64::try_from(SLICE).unwrap_or(i64::MAX))
    .fetch_all(db)
    .await?;
    Ok(executions)
}

/// Lists the failures of an execution that differ from the steps of their instances.
pub(super) async fn failure_differences(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Vec<Difference>, Fault> {
    let failures = derive::differences(tx, customer, id).await?;
    let difference = |failure: derive::Difference| Difference {
        noun: format!("instance {} of test report", failure.instance_nr),
        id: failure.report.to_string(),
        field: "failure".to_owned(),
        stored: failure.stored.map(shown),
        derived: failure.derived.map(shown),
    };
    Ok(failures.into_iter().map(difference).collect())
}

fn shown((fingerprint, headline): (Vec<u8>, String)) -> String {
    let fingerprint = Fingerprint::try_from(&fingerprint[..]);
    let digits = fingerprint.map_or_else(|_| "?".to_owned(), |digits| digits.to_string());
    format!("{digits} {headline:?}")
}

/// Lists the counters that differ from the highest execution number of their test case.
pub(super) async fn counter_differences(db: impl PgExecutor<'_>) -> Result<Vec<Difference>, Fault> {
    let statement = format!(
        "select 'test case' as noun, test_case_id::text as id, 'ExecutionNumber' as field,
                executions::text as stored, derived::text as derived
         from ({}) as differing
         order by id
         limit 1000",
        differing_counters("true")
    );
    Ok(sqlx::query_as(AssertSqlSafe(statement)).fetch_all(db).await?)
}

/// Lists the first differences that a statement selects.
pub(super) async fn differences(
    db: impl PgExecutor<'_>,
    statement: &str,
) -> Result<Vec<Difference>, Fault> {
    let first = format!("{statement} limit 1000");
    Ok(sqlx::query_as(AssertSqlSafe(first)).fetch_all(db).await?)
}

/// Sets the counters to the highest execution numbers, while nothing is counted. Returns the number
/// of changed rows.
///
/// The reports of all test cases are read before: while the counters are locked, nobody can start an execution
/// or upload results.
pub(super) async fn repair_counters(db: &PgPool) -> Result<u64, Fault> {
    let differing = format!(
        "select customer_id, test_case_id from ({}) as differing",
        differing_counters("true")
    );
    let differing: Vec<(CustomerId, TestCaseId)> =
        sqlx::query_as(AssertSqlSafe(differing)).fetch_all(db).await?;
    if differing.is_empty() {
        return Ok(0);
    }
    let (customers, cases): (Vec<CustomerId>, Vec<TestCaseId>) = differing.into_iter().unzip();
    let statement = format!(
        "insert into test_case_counter (customer_id, test_case_id, executions)
         select customer_id, test_case_id, coalesce(derived, 0) from ({}) as differing
         order by customer_id, test_case_id
         on conflict on constraint test_case_counter_pkey do update
         set executions = excluded.executions",
        differing_counters(
            "(r.customer_id, r.test_case_id) in (select * from unnest($1::uuid[], $2::uuid[]))"
        )
    );
    let mut tx = begin(db).await?;
    sqlx::query("lock table test_case_counter in share row exclusive mode")
        .execute(&mut *tx)
        .await?;
    let repair = sqlx::query(AssertSqlSafe(statement)).bind(customers).bind(cases);
    let repaired = repair.execute(&mut *tx).await?.rows_affected();
    tx.commit().await?;
    Ok(repaired)
}

/// Derives the days of test cases from their reports. Returns the number of changed rows.
pub(super) async fn repair_days(db: &PgPool) -> Result<u64, Fault> {
    let mut tx = begin(db).await?;
    let repaired = days::repair(&mut tx).await?;
    tx.commit().await?;
    Ok(repaired)
}

/// Derives execution times from the reports of their executions. Returns the number of changed rows.
pub(super) async fn repair_execution_times(db: &PgPool) -> Result<u64, Fault> {
    let mut tx = begin(db).await?;
    let repaired = execution_time::store::repair(&mut tx).await?;
    tx.commit().await?;
    Ok(repaired)
}
