//! The reports of a new execution.

use std::collections::HashMap;

use assay_proto::{CustomerId, ExecutionId, Fault, TestType, catalog::SnapshotTestCase, name_of};
use assay_rpc::parts::bounded;
use prost::Message;
use sqlx::{PgTransaction, types::Json};
use uuid::Uuid;

use crate::{column::column, insertion::Insertion, progress::report::TestReportState};

/// Counts one more execution of each case, and returns the numbers in the order of the cases.
///
/// The counters are locked in the order of their ids, so that concurrent executions never deadlock.
pub async fn count(
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
pub async fn insert(
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
    let mut rows = Insertion::into("test_report");
    rows.set("customer_id", customer);
    rows.set("execution_id", execution);
    rows.set_each("test_case_id", "text[]::uuid[]", column(cases, |case| case.id.as_str()));
    rows.set_each("test_case_identifier", "text[]", column(cases, |case| case.identifier.as_str()));
    let own = column(cases, |case| case.own_identifier.as_deref());
    rows.set_each("own_identifier", "text[]", own);
    rows.set_each("test_case_name", "text[]", column(cases, |case| case.name.as_str()));
    rows.set_each(
        "test_plan_id",
        "text[]::uuid[]",
        column(cases, |case| case.test_plan_id.as_str()),
    );
    rows.set_each("test_plan_revision", "int[]", column(cases, |case| case.test_plan_revision));
    rows.set_each("test_type", "text[]", column(cases, test_type));
    let minutes = column(cases, |case| case.minimum_duration_in_min);
    rows.set_each("minimum_duration_in_min", "float8[]", minutes);
    let variables =
        column(cases, |case| (!case.variables.is_empty()).then_some(Json(&case.variables)));
    rows.set_each("variables", "jsonb[]", variables);
    set_states(&mut rows, reports);
    rows.query("").execute(&mut **tx).await?;
    Ok(())
}

/// Sets the columns with the states of the reports, and with what describes their tests.
fn set_states(rows: &mut Insertion, reports: &[TestReportState]) {
    rows.set_each("id", "text[]::uuid[]", column(reports, |report| report.published.id.as_str()));
    let requested = column(reports, |report| report.requested_instances_count);
    rows.set_each("requested_instances_count", "int[]", requested);
    let finished = column(reports, |report| report.finished_instances_count);
    rows.set_each("finished_instances_count", "int[]", finished);
    let numbers = column(reports, |report| report.published.execution_number);
    rows.set_each("execution_number", "int[]", numbers);
    let results = column(reports, |report| name_of(report.published.result()));
    rows.set_each("result", "text[]", results);
    let statuses = column(reports, |report| name_of(report.published.status()));
    rows.set_each("status", "text[]", statuses);
    let changes = column(reports, |report| name_of(report.published.change()));
    rows.set_each("change", "text[]", changes);
    let reasons = column(reports, |report| report.change_reason.as_str());
    rows.set_each("change_reason", "text[]", reasons);
    let starts = column(reports, |report| report.published.start_date_time);
    rows.set_each("start_date_time", "timestamptz[]", starts);
    let ends = column(reports, |report| report.published.finish_date_time);
    rows.set_each("finish_date_time", "timestamptz[]", ends);
    let totals = column(reports, |report| report.total_duration_in_sec);
    rows.set_each("total_duration_in_sec", "float8[]", totals);
    let averages = column(reports, |report| report.published.average_duration_in_sec);
    rows.set_each("average_duration_in_sec", "float8[]", averages);
    rows.set_each("revision", "bigint[]", column(reports, |report| report.published.revision));
    rows.set_each("is_flaky", "bool[]", column(reports, |report| report.is_flaky));
    rows.set_each("is_muted", "bool[]", column(reports, TestReportState::is_muted));
    rows.set_each("ticket", "text[]", column(reports, |report| report.ticket.as_str()));
    let suites = column(reports, TestReportState::suites);
    let lines = "string_to_array(suites, e'\\n')".to_owned();
    rows.set_each_to("suites", "text[]", suites, lines);
    rows.set_each("labels", "jsonb[]", column(reports, TestReportState::labels));
    rows.set_each("links", "jsonb[]", column(reports, TestReportState::links));
    let lines = "string_to_array(owners, e'\\n')".to_owned();
    rows.set_each_to("owners", "text[]", column(reports, TestReportState::owners), lines);
}
