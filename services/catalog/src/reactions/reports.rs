//! Projections of test reports onto plans, test cases and projects. The catalog stores the latest state of
//! all reports, and derives from it what a test case shows.

use std::collections::HashMap;

use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestCaseId, TestPlanId, TestReportId,
    events::{ReportState, ReportsChanged},
    name_of,
};
use sqlx::PgTransaction;
use uuid::Uuid;

use super::lock_project;

/// Applies changes of the test reports of an execution.
pub async fn reports_changed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    changed: &ReportsChanged,
) -> Result<(), Fault> {
    let reports = newest(&changed.reports);
    if reports.is_empty() {
        return Ok(());
    }
    let id = ProjectId::from_field("ProjectId", &changed.project_id)?;
    if !lock_project(tx, customer, id).await? {
        return Ok(());
    }
    upsert(tx, customer, NEWER, changed, &reports).await?;
    update_test_cases(tx, customer, &cases(&reports)?).await?;
    update_project(tx, customer, changed, &reports).await
}

/// Replaces the reports of test cases, except those that are pending again: these keep their last
/// state. Writes only what differs, so that a comparison of all reports does not. The project is locked.
pub(crate) async fn replace(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
    ended: &[ReportsChanged],
    pending: &[Uuid],
) -> Result<(), Fault> {
    let mut known = pending.to_vec();
    for report in ended.iter().flat_map(|changed| &changed.reports) {
        known.push(TestReportId::from_field("Id", &report.id)?.0);
    }
    let remove = sqlx::query(
        "delete from test_report
         where customer_id = $1 and test_case_id = any($2) and not exists (
             select from unnest($3::uuid[]) as known (id) where known.id = test_report.id
         )",
    );
    remove.bind(customer).bind(cases).bind(known).execute(&mut **tx).await?;
    for changed in ended {
        upsert(tx, customer, DIFFERENT, changed, &newest(&changed.reports)).await?;
    }
    update_test_cases(tx, customer, cases).await
}

/// Updates the status that a locked project shows.
pub(crate) async fn show_status(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    changed: &ReportsChanged,
) -> Result<(), Fault> {
    update_project(tx, customer, changed, &newest(&changed.reports)).await
}

/// Returns the highest revision of each report, in the order of ids.
fn newest(reports: &[ReportState]) -> Vec<&ReportState> {
    let mut newest: HashMap<&str, &ReportState> = HashMap::with_capacity(reports.len());
    for report in reports {
        let known = newest.entry(&report.id).or_insert(report);
        if known.revision < report.revision {
            *known = report;
        }
    }
    let mut newest: Vec<_> = newest.into_values().collect();
    newest.sort_by_key(|report| &report.id);
    newest
}

/// Returns a statement that stores reports. It writes those that are stored only if a condition holds. It leaves out
/// those of test cases that the catalog lacks since it was restored from a backup: nothing shows them, and no purge
/// finds them.
macro_rules! statement {
    ($condition:literal) => {
        concat!(
            "insert into test_report (customer_id, software_name, software_identifier, id,
                 test_case_id, test_plan_id, execution_number, result, status, start_date_time,
                 finish_date_time, average_duration_in_sec, revision)
             select $1, $2, $3, id, test_case_id, test_plan_id, execution_number, result, status,
                    start_date_time, finish_date_time, average_duration_in_sec, revision
             from unnest($4::uuid[], $5::uuid[], $6::uuid[], $7::int[], $8::text[], $9::text[],
                         $10::timestamptz[], $11::timestamptz[], $12::float8[], $13::bigint[])
                 as report (id, test_case_id, test_plan_id, execution_number, result, status,
                            start_date_time, finish_date_time, average_duration_in_sec, revision)
             where exists (
                 select from test_case c where c.customer_id = $1 and c.id = report.test_case_id
             )
             on conflict on constraint test_report_pkey do update
             set software_name = excluded.software_name,
                 software_identifier = excluded.software_identifier,
                 test_case_id = excluded.test_case_id, test_plan_id = excluded.test_plan_id,
                 execution_number = excluded.execution_number, result = excluded.result,
                 status = excluded.status, start_date_time = excluded.start_date_time,
                 finish_date_time = excluded.finish_date_time,
                 average_duration_in_sec = excluded.average_duration_in_sec,
                 revision = excluded.revision
             where ",
            $condition
        )
    };
}

/// Stores reports, except those of which a newer revision is stored.
const NEWER: &str = statement!("test_report.revision <= excluded.revision");

/// Stores reports as they are, whatever is stored.
const DIFFERENT: &str = statement!("test_report.* is distinct from excluded.*");

/// Stores the reports with one of these statements.
async fn upsert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    statement: &'static str,
    changed: &ReportsChanged,
    reports: &[&ReportState],
) -> Result<(), Fault> {
    let plans: Vec<TestPlanId> =
        ids(reports, |report| TestPlanId::from_field("TestPlanId", &report.test_plan_id))?;
    sqlx::query(statement)
        .bind(customer)
        .bind(&changed.software_name)
        .bind(&changed.software_identifier)
        .bind(ids(reports, |report| TestReportId::from_field("Id", &report.id))?)
        .bind(cases(reports)?)
        .bind(plans)
        .bind(column(reports, |report| report.execution_number))
        .bind(column(reports, |report| name_of(report.result())))
        .bind(column(reports, |report| name_of(report.status())))
        .bind(column(reports, |report| report.start_date_time))
        .bind(column(reports, |report| report.finish_date_time))
        .bind(column(reports, |report| report.average_duration_in_sec))
        .bind(column(reports, |report| report.revision))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Updates test cases from all their reports. The ids of reports have the time of their execution, so the
/// order of ids is that of the executions, also of those that were imported later.
async fn update_test_cases(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
) -> Result<(), Fault> {
    // In the order of ids, as all transactions that lock several; in a statement of its own, so that
    // the next one sees the changes of transactions that held the locks.
    sqlx::query(
        "select from test_case where customer_id = $1 and id = any($2) order by id
         for no key update",
    )
    .bind(customer)
    .bind(cases)
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "update test_case
         set execution_statistics = coalesce(latest.statistics, '[]'), last_result = latest.result,
             last_report_status = latest.status, last_sw_name = latest.software_name,
             last_sw_identifier = latest.software_identifier
         from (select distinct id from unnest($2::uuid[]) as changed (id)) changed
         cross join lateral (
             select jsonb_agg(jsonb_build_object(
                        'ExecutionNumber', execution_number, 'Result', result,
                        'AverageDurationInSec', average_duration_in_sec
                    ) order by id desc) as statistics,
                    (array_agg(result order by id desc))[1] as result,
                    (array_agg(status order by id desc))[1] as status,
                    (array_agg(software_name order by id desc))[1] as software_name,
                    (array_agg(software_identifier order by id desc))[1] as software_identifier
             from (
                 select id, execution_number, result, status, average_duration_in_sec,
                        software_name, software_identifier
                 from test_report
                 where customer_id = $1 and test_case_id = changed.id
                 order by id desc
                 limit 10
             ) report
         ) latest
         where test_case.customer_id = $1 and test_case.id = changed.id",
    )
    .bind(customer)
    .bind(cases)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Updates the status that a project shows: that of the last report of the latest execution.
async fn update_project(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    changed: &ReportsChanged,
    reports: &[&ReportState],
) -> Result<(), Fault> {
    let latest = |report: &&&ReportState| (report.finish_date_time, report.id.clone());
    let Some(report) = reports.iter().max_by_key(latest) else { return Ok(()) };
    sqlx::query(
        "update project
         set overall_status = $7, status_execution_id = $3,
             status_finished_at = coalesce($4, '-infinity'), status_report_id = $5,
             status_revision = $6
         where customer_id = $1 and id = $2
           and (status_execution_id, status_finished_at, status_report_id, status_revision)
             <= ($3, coalesce($4, '-infinity'), $5, $6)",
    )
    .bind(customer)
    .bind(ProjectId::from_field("ProjectId", &changed.project_id)?)
    .bind(ExecutionId::from_field("ExecutionId", &changed.execution_id)?)
    .bind(report.finish_date_time)
    .bind(TestReportId::from_field("Id", &report.id)?)
    .bind(report.revision)
    .bind(name_of(report.status()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

fn column<T>(reports: &[&ReportState], of: impl Fn(&ReportState) -> T) -> Vec<T> {
    reports.iter().map(|report| of(report)).collect()
}

fn ids<T>(
    reports: &[&ReportState],
    of: impl Fn(&ReportState) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    reports.iter().map(|report| of(report)).collect()
}

fn cases(reports: &[&ReportState]) -> Result<Vec<TestCaseId>, Fault> {
    ids(reports, |report| TestCaseId::from_field("TestCaseId", &report.test_case_id))
}
