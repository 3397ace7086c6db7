//! The stored state and the state derived from results, in PostgreSQL, of all customers.

use std::fmt::{self, Display};

use assay_fingerprint::Fingerprint;
use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId};
use assay_runtime::begin;
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgPool, PgTransaction};

use super::derived::{CHANGES, COUNTERS, EXECUTIONS, REPORTS};
use crate::{execution::store::has_expired, failure::derive, insight::days};

/// Number of executions that one statement compares.
pub(super) const SLICE: usize = 100;

/// The customer and the id of an execution.
type Key = (CustomerId, ExecutionId);

/// The fields of a report that are compared.
const REPORT_FIELDS: [&str; 6] = [
    "finished_instances_count",
    "result",
    "start_date_time",
    "finish_date_time",
    "total_duration_in_sec",
    "average_duration_in_sec",
];

/// The fields of an execution that are compared.
const EXECUTION_FIELDS: [&str; 11] = [
    "result",
    "test_cases_total",
    "test_cases_pending",
    "test_cases_canceled",
    "test_cases_aborted",
    "test_cases_with_error",
    "test_cases_passed",
    "test_cases_failed",
    "start_date_time",
    "finish_date_time",
    "total_duration_in_sec",
];

/// Returns the condition that a field of `stored` differs from that of `derived`. Sums may differ
/// in their last digits.
fn differs(field: &str) -> String {
    if field.ends_with("_in_sec") {
        let (stored, derived) = (format!("stored.{field}"), format!("derived.{field}"));
        return format!("abs({stored} - {derived}) > 1e-6 * greatest(1, abs({derived}))");
    }
    format!("stored.{field} is distinct from derived.{field}")
}

/// Returns the condition that any of the fields differs.
fn any_differs(fields: &[&str]) -> String {
    fields.iter().map(|field| differs(field)).collect::<Vec<_>>().join(" or ")
}

/// A field whose stored value differs from the derived one.
#[derive(Debug, FromRow)]
pub(super) struct Difference {
    noun: String,
    id: String,
    field: String,
    stored: Option<String>,
    derived: Option<String>,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noun, id, field, .. } = self;
        let (stored, derived) = (self.stored.as_deref(), self.derived.as_deref());
        let (stored, derived) = (stored.unwrap_or("null"), derived.unwrap_or("null"));
        write!(f, "{noun} {id}: {field} is {stored}, but should be {derived}")
    }
}

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

/// Lists the differences of these executions and their reports.
pub(super) async fn differences(
    db: impl PgExecutor<'_>,
    executions: &[Key],
) -> Result<Vec<Difference>, Fault> {
    let of = |noun: &str, table: &str, derived: &str, fields: &[&str]| -> String {
        let of_field = |field: &&str| {
            format!(
                "select '{noun}' as noun, derived.id::text as id, '{field}' as field,
                        stored.{field}::text as stored, derived.{field}::text as derived
                 from {derived} as derived
                 join {table} stored
                     on stored.customer_id = derived.customer_id and stored.id = derived.id
                 where {}",
                differs(field)
            )
        };
        fields.iter().map(of_field).collect::<Vec<_>>().join(" union all ")
    };
    let statement = format!(
        "with reports as materialized ({REPORTS}), changes as materialized ({CHANGES}),
              executions as materialized ({EXECUTIONS})
         {} union all {} union all {} order by id, field",
        of("test report", "test_report", "reports", &REPORT_FIELDS),
        of("test report", "test_report", "changes", &["change"]),
        of("execution", "execution", "executions", &EXECUTION_FIELDS),
    );
    let (customers, ids): (Vec<_>, Vec<_>) = executions.iter().copied().unzip();
    let differences = sqlx::query_as(AssertSqlSafe(statement)).bind(customers).bind(ids);
    Ok(differences.fetch_all(db).await?)
}

/// Lists the failures that differ from the steps of their instances.
pub(super) async fn failure_differences(
    db: &PgPool,
    executions: &[Key],
) -> Result<Vec<Difference>, Fault> {
    let mut differences = Vec::new();
    let mut connection = db.acquire().await?;
    for (customer, id) in executions {
        if has_expired(&mut *connection, *customer, *id).await? {
            continue;
        }
        let failures = derive::differences(&mut connection, *customer, *id).await?;
        differences.extend(failures.into_iter().map(|failure| Difference {
            noun: format!("instance {} of test report", failure.instance_nr),
            id: failure.report.to_string(),
            field: "failure".to_owned(),
            stored: failure.stored.map(shown),
            derived: failure.derived.map(shown),
        }));
    }
    Ok(differences)
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
         from ({COUNTERS}) as counted
         where executions is distinct from coalesce(derived, 0)
         order by id
         limit 1000"
    );
    Ok(sqlx::query_as(AssertSqlSafe(statement)).fetch_all(db).await?)
}

/// Lists the days of test cases that differ from their reports.
pub(super) async fn day_differences(db: impl PgExecutor<'_>) -> Result<Vec<Difference>, Fault> {
    let statement = format!("{} limit 1000", days::differences());
    Ok(sqlx::query_as(AssertSqlSafe(statement)).fetch_all(db).await?)
}

/// Locks an execution and returns its project. `None` if it was deleted.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Option<ProjectId>, Fault> {
    let project = sqlx::query_scalar(
        "select project_id from live_execution
         where customer_id = $1 and id = $2
         for update",
    );
    Ok(project.bind(customer).bind(id).fetch_optional(&mut **tx).await?)
}

/// Repairs a locked execution and its reports. Returns the number of changed rows.
pub(super) async fn repair(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<u64, Fault> {
    let mut repaired = 0;
    for (table, derived, fields) in [
        ("test_report", REPORTS, &REPORT_FIELDS[..]),
        ("test_report", CHANGES, &["change"]),
        ("execution", EXECUTIONS, &EXECUTION_FIELDS[..]),
    ] {
        let set: Vec<_> = fields.iter().map(|field| format!("{field} = derived.{field}")).collect();
        let statement = format!(
            "update {table} stored set {}, revision = revision + 1
             from ({derived}) as derived
             where stored.customer_id = derived.customer_id and stored.id = derived.id and ({})",
            set.join(", "),
            any_differs(fields)
        );
        let done = sqlx::query(AssertSqlSafe(statement)).bind(vec![customer]).bind(vec![id]);
        repaired += done.execute(&mut **tx).await?.rows_affected();
    }
    if !has_expired(&mut **tx, customer, id).await? {
        repaired += derive::repair(tx, customer, id).await?;
    }
    Ok(repaired)
}

/// Sets the counters to the highest execution numbers, while nothing is counted. Returns the number
/// of changed rows.
pub(super) async fn repair_counters(db: &PgPool) -> Result<u64, Fault> {
    let statement = format!(
        "insert into test_case_counter (customer_id, test_case_id, executions)
         select customer_id, test_case_id, coalesce(derived, 0) from ({COUNTERS}) as counted
         where executions is distinct from coalesce(derived, 0)
         order by customer_id, test_case_id
         on conflict on constraint test_case_counter_pkey do update
         set executions = excluded.executions"
    );
    let mut tx = begin(db).await?;
    sqlx::query("lock table test_case_counter in share row exclusive mode")
        .execute(&mut *tx)
        .await?;
    let repaired = sqlx::query(AssertSqlSafe(statement)).execute(&mut *tx).await?.rows_affected();
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
