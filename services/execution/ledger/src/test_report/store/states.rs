//! The states of the reports of a locked execution.

use std::collections::HashMap;

use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId, events::ReportState};
use sqlx::{AssertSqlSafe, FromRow, PgTransaction};
use uuid::Uuid;

use crate::progress::report::TestReportState;

/// The columns of a state in addition to those that events publish.
const STATE: &str = "requested_instances_count, finished_instances_count,
    total_duration_in_sec, is_flaky, change_reason, ticket, engine_failure, missing_result,
    judgement";

/// Returns the statement that reads the states of reports. `rest` selects and orders them.
fn select_states(rest: &'static str) -> String {
    let columns = ReportState::COLUMNS;
    format!("select {columns}, {STATE} from test_report {rest}")
}

/// A report as it is stored, with what else its state follows from.
#[derive(FromRow)]
pub struct RecordedReport {
    #[sqlx(flatten)]
    pub state: TestReportState,
    /// Whether an engine has leased it.
    pub is_leased: bool,
    /// The highest number of its instances, announced ones included.
    pub highest: i32,
}

/// Reads all reports of an execution, in the order of their ids.
pub async fn recorded(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<RecordedReport>, Fault> {
    let columns = ReportState::COLUMNS;
    let statement = format!(
        "select {columns}, {STATE},
                exists (
                    select from schedule s
                    where s.customer_id = $1 and s.test_report_id = test_report.id
                      and s.status = 'Running'
                ) as is_leased,
                coalesce((
                    select max(instance_nr) from instance i
                    where i.customer_id = $1 and i.test_report_id = test_report.id
                ), 0) as highest
         from test_report
         where customer_id = $1 and execution_id = $2
         order by id"
    );
    let reports = sqlx::query_as(AssertSqlSafe(statement)).bind(customer).bind(execution);
    Ok(reports.fetch_all(&mut **tx).await?)
}

/// Whether a statement that finds reports by these values may keep its plan.
///
/// A plan for any values compares each with all reports of an execution that PostgreSQL has not
/// analyzed yet. A plan for many values hashes them.
pub(super) fn are_few<T>(values: &[T]) -> bool {
    values.len() < 10
}

/// Reads the reports of a locked execution for test cases that are given by id or by identifier.
pub async fn of_cases(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    ids: &[Uuid],
    identifiers: &[&str],
) -> Result<Vec<TestReportState>, Fault> {
    // With a union, each half uses an index of its own.
    let statement = [
        select_states("where customer_id = $1 and execution_id = $2 and test_case_id = any($3)"),
        select_states(
            "where customer_id = $1 and execution_id = $2 and test_case_identifier = any($4)",
        ),
    ]
    .join(" union ");
    let reports = sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(execution)
        .bind(ids)
        .bind(identifiers)
        .persistent(are_few(ids) && are_few(identifiers))
        .fetch_all(&mut **tx)
        .await?;
    Ok(reports)
}

/// Returns the identifiers of those test cases that a locked execution has, by their ids.
pub async fn identifiers(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    ids: &[&str],
) -> Result<HashMap<String, String>, Fault> {
    let known = sqlx::query_as(
        "select test_case_id::text, test_case_identifier from test_report
         where customer_id = $1 and execution_id = $2 and test_case_id = any($3::text[]::uuid[])",
    );
    let known = known.bind(customer).bind(execution).bind(ids);
    let known: Vec<_> = known.persistent(are_few(ids)).fetch_all(&mut **tx).await?;
    Ok(known.into_iter().collect())
}

/// Reads the pending reports of a locked execution.
pub async fn pending(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<TestReportState>, Fault> {
    let statement = select_states(
        "where customer_id = $1 and execution_id = $2 and status in ('NotExecuted', 'Running')",
    );
    let reports = sqlx::query_as(AssertSqlSafe(statement)).bind(customer).bind(execution);
    Ok(reports.fetch_all(&mut **tx).await?)
}

/// Reads reports of a locked execution.
pub async fn of_ids(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    ids: &[TestReportId],
) -> Result<Vec<TestReportState>, Fault> {
    let statement = select_states("where customer_id = $1 and id = any($2)");
    let reports = sqlx::query_as(AssertSqlSafe(statement)).bind(customer).bind(ids);
    Ok(reports.fetch_all(&mut **tx).await?)
}

/// Reads the ended reports of a locked execution, as events publish them.
pub async fn ended(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<ReportState>, Fault> {
    let statement = select_states(
        "where customer_id = $1 and execution_id = $2 and status not in ('NotExecuted', 'Running')
         order by id",
    );
    let reports: Vec<TestReportState> = sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(execution)
        .fetch_all(&mut **tx)
        .await?;
    Ok(reports.into_iter().map(|report| report.published).collect())
}
