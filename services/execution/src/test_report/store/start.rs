//! The reports of a new execution.

use std::collections::HashMap;

use assay_proto::{CustomerId, ExecutionId, Fault, TestType, catalog::SnapshotTestCase, name_of};
use assay_runtime::parts::bounded;
use prost::Message;
use sqlx::{AssertSqlSafe, PgTransaction, types::Json};
use uuid::Uuid;

use crate::{column::column, progress::report::TestReportState};

/// The columns of a report that are bound as they are.
const COLUMNS: &str = "id, test_case_id, test_case_identifier, test_case_name, test_plan_id,
    test_plan_revision, test_type, minimum_duration_in_min, requested_instances_count,
    finished_instances_count, execution_number, result, status, start_date_time, finish_date_time,
    total_duration_in_sec, average_duration_in_sec, revision, is_flaky, variables, change, is_muted,
    ticket";

/// Counts one more execution of each case, and returns the numbers in the order of the cases.
///
/// The counters are locked in the order of their ids, so that concurrent executions never deadlock.
pub(crate) async fn count(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[SnapshotTestCase],
) -> Result<Vec<i32>, Fault> {
    let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    let counters: Vec<(Uuid, i32)> = sqlx::query_as(
        "insert into test_case_counter (customer_id, test_case_id, executions)
         select $1, id, 1 from unnest($2::text[]::uuid[]) as id order by id
         on conflict (customer_id, test_case_id)
             do update set executions = test_case_counter.executions + 1
         returning test_case_id, executions",
    )
    .bind(customer)
    .bind(&ids)
    .fetch_all(&mut **tx)
    .await?;
    let counters: HashMap<String, i32> =
        counters.into_iter().map(|(id, number)| (id.to_string(), number)).collect();
    let number = |id: &&str| counters.get(*id).copied();
    ids.iter()
        .map(|id| number(id).ok_or_else(|| Fault::internal("a test case was not counted")))
        .collect()
}

/// Inserts the reports of an execution, one for each case and in the same order.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    cases: &[SnapshotTestCase],
    reports: &[TestReportState],
) -> Result<(), Fault> {
    let mut rest = reports;
    for cases in bounded(cases, SnapshotTestCase::encoded_len) {
        let (reports, others) = rest.split_at(cases.len());
        insert_part(tx, customer, execution, cases, reports).await?;
        rest = others;
    }
    Ok(())
}

async fn insert_part(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    cases: &[SnapshotTestCase],
    reports: &[TestReportState],
) -> Result<(), Fault> {
    let test_type = |case: &SnapshotTestCase| match case.test_type() {
        TestType::Unspecified => name_of(TestType::Default),
        test_type => name_of(test_type),
    };
    sqlx::query(AssertSqlSafe(format!(
        "insert into test_report (customer_id, execution_id, {COLUMNS}, suites, labels, links)
         select $1, $2, {COLUMNS}, string_to_array(suites, e'\\n'), labels, links
         from unnest($3::text[]::uuid[], $4::text[]::uuid[], $5::text[], $6::text[],
             $7::text[]::uuid[], $8::int[], $9::text[], $10::float8[], $11::int[], $12::int[],
             $13::int[], $14::text[], $15::text[], $16::timestamptz[], $17::timestamptz[],
             $18::float8[], $19::float8[], $20::bigint[], $21::bool[], $22::jsonb[], $23::text[],
             $24::bool[], $25::text[], $26::text[], $27::jsonb[], $28::jsonb[])
             as report ({COLUMNS}, suites, labels, links)"
    )))
    .bind(customer)
    .bind(execution)
    .bind(column(reports, |report| report.published.id.as_str()))
    .bind(column(cases, |case| case.id.as_str()))
    .bind(column(cases, |case| case.identifier.as_str()))
    .bind(column(cases, |case| case.name.as_str()))
    .bind(column(cases, |case| case.test_plan_id.as_str()))
    .bind(column(cases, |case| case.test_plan_revision))
    .bind(column(cases, test_type))
    .bind(column(cases, |case| case.minimum_duration_in_min))
    .bind(column(reports, |report| report.requested_instances_count))
    .bind(column(reports, |report| report.finished_instances_count))
    .bind(column(reports, |report| report.published.execution_number))
    .bind(column(reports, |report| name_of(report.published.result())))
    .bind(column(reports, |report| name_of(report.published.status())))
    .bind(column(reports, |report| report.published.start_date_time))
    .bind(column(reports, |report| report.published.finish_date_time))
    .bind(column(reports, |report| report.total_duration_in_sec))
    .bind(column(reports, |report| report.published.average_duration_in_sec))
    .bind(column(reports, |report| report.published.revision))
    .bind(column(reports, |report| report.is_flaky))
    .bind(column(cases, |case| (!case.variables.is_empty()).then_some(Json(&case.variables))))
    .bind(column(reports, |report| name_of(report.published.change())))
    .bind(column(reports, |report| report.is_muted))
    .bind(column(reports, |report| report.ticket.as_str()))
    .bind(column(reports, TestReportState::suites))
    .bind(column(reports, TestReportState::labels))
    .bind(column(reports, TestReportState::links))
    .execute(&mut **tx)
    .await?;
    Ok(())
}
