//! Test reports in PostgreSQL. Every statement is bound to one customer.

mod failed;
mod start;
mod states;

use std::collections::{HashMap, HashSet};

use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId, execution::TestReport, name_of};
use assay_rpc::parts::bounded;
use sqlx::{
    AssertSqlSafe, FromRow, PgExecutor, PgTransaction, Postgres,
    postgres::{PgArguments, PgRow},
    query::QueryAs,
};

use self::states::are_few;
pub use self::{
    failed::{failed, first_failed},
    start::{count, insert},
    states::{RecordedReport, ended, identifiers, of_cases, of_ids, pending, recorded},
};
use super::path::TestReportPath;
use crate::{
    column::column,
    execution::store::OF_REPORTS,
    progress::{
        report::TestReportState,
        totals::{Recount, ReportTotals},
    },
};

/// Reads reports, with the result of the instances that they lack. `rest` selects and orders them.
pub fn select<T: for<'r> FromRow<'r, PgRow>>(
    rest: &'static str,
) -> QueryAs<'static, Postgres, T, PgArguments> {
    let columns = TestReport::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, missing_result
         from test_report join {OF_REPORTS} using (customer_id, execution_id) {rest}"
    )))
}

/// Reads the report that a path leads to, or some of its columns.
pub async fn find<T: for<'r> FromRow<'r, PgRow> + Send + Unpin>(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    path: TestReportPath,
) -> Result<T, Fault> {
    select(
        "where customer_id = $1 and id = $2
           and ($3::uuid is null or project_id = $3)
           and ($4::uuid is null or test_case_id = $4)
           and ($5::uuid is null or test_plan_id = $5)",
    )
    .bind(customer)
    .bind(path.id)
    .bind(path.project)
    .bind(path.test_case)
    .bind(path.test_plan)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("test report"))
}

pub async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    path: TestReportPath,
) -> Result<TestReport, Fault> {
    find(db, customer, path).await
}

/// Fails unless the path leads to a report.
pub async fn check_exists(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    path: TestReportPath,
) -> Result<(), Fault> {
    get(db, customer, path).await.map(drop)
}

/// Returns those of the identifiers that are of test cases of an execution.
pub async fn known(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    identifiers: &[&str],
) -> Result<HashSet<String>, Fault> {
    let known = sqlx::query_scalar(
        "select test_case_identifier from test_report
         where customer_id = $1 and execution_id = $2 and test_case_identifier = any($3)",
    );
    let known = known.bind(customer).bind(execution).bind(identifiers);
    let known: Vec<String> = known.persistent(are_few(identifiers)).fetch_all(db).await?;
    Ok(known.into_iter().collect())
}

/// Stores the changed reports of a locked execution.
pub async fn save(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportState],
) -> Result<(), Fault> {
    let changed: Vec<_> = reports.iter().filter(|report| report.changed).collect();
    let texts = |report: &&TestReportState| {
        let engine_failure = report.engine_failure.as_ref().map_or(0, String::len);
        report.ticket.len() + engine_failure + report.size_of_classification()
    };
    for part in bounded(&changed, texts) {
        save_part(tx, customer, part).await?;
    }
    Ok(())
}

async fn save_part(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[&TestReportState],
) -> Result<(), Fault> {
    sqlx::query(
        "update test_report r
         set finished_instances_count = s.finished, result = s.result, status = s.status,
             start_date_time = s.start, finish_date_time = s.finish,
             total_duration_in_sec = s.total, average_duration_in_sec = s.average,
             revision = s.revision, requested_instances_count = s.requested, is_flaky = s.is_flaky,
             change = s.change, change_reason = s.change_reason, is_muted = s.is_muted, ticket = s.ticket,
             engine_failure = s.engine_failure, missing_result = s.missing_result,
             judgement = s.judgement,
             suites = coalesce(string_to_array(s.suites, e'\\n'), r.suites),
             labels = case when s.suites is null then r.labels else s.labels end,
             links = case when s.suites is null then r.links else s.links end,
             owners = string_to_array(s.owners, e'\\n')
         from unnest($2::text[]::uuid[], $3::int[], $4::text[], $5::text[], $6::timestamptz[],
             $7::timestamptz[], $8::float8[], $9::float8[], $10::bigint[], $11::int[],
             $12::bool[], $13::text[], $14::bool[], $15::text[], $16::text[], $17::text[],
             $18::jsonb[], $19::jsonb[], $20::text[], $21::text[], $22::text[], $23::text[])
             as s (id, finished, result, status, start, finish, total, average, revision,
                   requested, is_flaky, change, is_muted, ticket, engine_failure, suites, labels,
                   links, missing_result, judgement, change_reason, owners)
         where r.customer_id = $1 and r.id = s.id",
    )
    .bind(customer)
    .bind(column(reports, |report| report.published.id.as_str()))
    .bind(column(reports, |report| report.finished_instances_count))
    .bind(column(reports, |report| name_of(report.published.result())))
    .bind(column(reports, |report| name_of(report.published.status())))
    .bind(column(reports, |report| report.published.start_date_time))
    .bind(column(reports, |report| report.published.finish_date_time))
    .bind(column(reports, |report| report.total_duration_in_sec))
    .bind(column(reports, |report| report.published.average_duration_in_sec))
    .bind(column(reports, |report| report.published.revision))
    .bind(column(reports, |report| report.requested_instances_count))
    .bind(column(reports, |report| report.is_flaky))
    .bind(column(reports, |report| name_of(report.published.change())))
    .bind(column(reports, |report| report.is_muted()))
    .bind(column(reports, |report| report.ticket.as_str()))
    .bind(column(reports, |report| report.engine_failure.as_deref()))
    .bind(column(reports, |report| report.suites()))
    .bind(column(reports, |report| report.labels()))
    .bind(column(reports, |report| report.links()))
    .bind(column(reports, |report| name_of(report.missing_result())))
    .bind(column(reports, |report| report.judgement.as_deref()))
    .bind(column(reports, |report| report.change_reason.as_str()))
    .bind(column(reports, |report| report.owners()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Counts the finished instances of these reports, after the outcomes of some have changed.
pub async fn recount(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[&str],
) -> Result<HashMap<String, Recount>, Fault> {
    let counted: Vec<CountedReport> = sqlx::query_as(
        "select test_report_id::text as id, count(*)::int as finished_instances_count,
                array_agg(distinct result) as results, min(start_date_time) as start_date_time,
                max(finish_date_time) as finish_date_time,
                sum(duration_in_sec) as total_duration_in_sec,
                bool_or(attempt > 1 and result = 'Passed' and attempt - 1 > (
                    select count(*) from attempt as earlier
                    where earlier.customer_id = instance.customer_id
                      and earlier.test_report_id = instance.test_report_id
                      and earlier.instance_nr = instance.instance_nr
                      and earlier.attempt < instance.attempt and earlier.result = 'Passed'
                )) as is_flaky
         from instance
         where customer_id = $1 and test_report_id = any($2::text[]::uuid[])
           and result <> 'NotExecuted'
         group by test_report_id",
    )
    .bind(customer)
    .bind(reports)
    .fetch_all(&mut **tx)
    .await?;
    Ok(counted.into_iter().map(|report| (report.id, report.recount)).collect())
}

#[derive(FromRow)]
struct CountedReport {
    id: String,
    #[sqlx(flatten)]
    recount: Recount,
}

/// Returns what follows from all reports of a locked execution.
pub async fn totals(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<ReportTotals, Fault> {
    let totals = sqlx::query_as(
        "select coalesce(array_agg(distinct result), '{}') as results,
                min(start_date_time) as start_date_time, max(finish_date_time) as finish_date_time,
                coalesce(sum(total_duration_in_sec), 0) as total_duration_in_sec
         from test_report
         where customer_id = $1 and execution_id = $2",
    );
    Ok(totals.bind(customer).bind(execution).fetch_one(&mut **tx).await?)
}

/// Marks reports of locked executions as running whose schedules engines have leased.
pub async fn mark_running(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    ids: &[TestReportId],
) -> Result<(), Fault> {
    sqlx::query(
        "update test_report r set status = 'Running', revision = revision + 1
         where customer_id = $1 and id = any($2) and status = 'NotExecuted' and exists (
             select from schedule s
             where s.customer_id = r.customer_id and s.test_report_id = r.id
               and s.status = 'Running'
         )",
    )
    .bind(customer)
    .bind(ids)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Marks reports without instances as not executed after their schedules have returned to the
/// queue.
pub async fn mark_not_executed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    ids: &[TestReportId],
) -> Result<(), Fault> {
    sqlx::query(
        "update test_report set status = 'NotExecuted', revision = revision + 1
         where customer_id = $1 and id = any($2) and status = 'Running'
           and finished_instances_count = 0",
    )
    .bind(customer)
    .bind(ids)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Adds a comment to reports that have none.
pub async fn comment(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    ids: &[TestReportId],
    comment: &str,
) -> Result<(), Fault> {
    sqlx::query(
        "update test_report set comment = $3, revision = revision + 1
         where customer_id = $1 and id = any($2) and comment is null",
    )
    .bind(customer)
    .bind(ids)
    .bind(comment)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Adds comments to the reports of test cases, given by their identifiers, that have none.
pub async fn comment_cases(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    comments: &[(String, String)],
) -> Result<(), Fault> {
    if comments.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update test_report r set comment = c.comment, revision = revision + 1
         from unnest($3::text[], $4::text[]) as c (identifier, comment)
         where r.customer_id = $1 and r.execution_id = $2
           and r.test_case_identifier = c.identifier and r.comment is null",
    )
    .bind(customer)
    .bind(execution)
    .bind(column(comments, |(identifier, _)| identifier.as_str()))
    .bind(column(comments, |(_, comment)| comment.as_str()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}
