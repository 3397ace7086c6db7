//! The executions and reports that other services know once they have received all events.

use std::collections::BTreeMap;

use assay_database::begin;
use assay_events::{KnownExecutions, KnownReports, ReportsAction};
use assay_ledger::{
    execution::store::{OF_REPORTS, find},
    progress::rules::is_pending,
    test_report,
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestCaseId, TestPlanId,
    events::{ReportState, ReportsChanged},
};
use sqlx::{AssertSqlSafe, FromRow, PgPool};
use uuid::Uuid;

use super::REBUILT;

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    report: ReportState,
    execution_id: Uuid,
    project_id: Uuid,
    test_set_id: Uuid,
    software_name: Option<String>,
    software_version: Option<String>,
}

/// Lists up to 1,000 test cases that have reports, of all customers, after one of them, with the project of the
/// latest report. None if it was deleted.
pub async fn executed_cases(
    db: &PgPool,
    after: Option<(CustomerId, TestCaseId)>,
) -> Result<Vec<(CustomerId, TestCaseId, Option<ProjectId>)>, Fault> {
    let (customer, case) = after.unzip();
    let cases = sqlx::query_as(
        "select c.customer_id, c.test_case_id, latest.project_id
         from (
             select customer_id, test_case_id from test_case_counter
             where (customer_id, test_case_id) > (
                 coalesce($1, '00000000-0000-0000-0000-000000000000'),
                 coalesce($2, '00000000-0000-0000-0000-000000000000')
             )
             order by customer_id, test_case_id
             limit 1000
         ) as c
         left join lateral (
             select e.project_id from test_report r
             join live_execution e on e.customer_id = r.customer_id and e.id = r.execution_id
             where r.customer_id = c.customer_id and r.test_case_id = c.test_case_id
             order by r.execution_id desc
             limit 1
         ) as latest on true
         order by c.customer_id, c.test_case_id",
    );
    Ok(cases.bind(customer).bind(case).fetch_all(db).await?)
}

/// Returns all reports of test cases.
pub async fn reports_of(
    db: &PgPool,
    customer: CustomerId,
    cases: &[TestCaseId],
) -> Result<KnownReports, Fault> {
    let columns = ReportState::COLUMNS;
    let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, execution_id, project_id, test_set_id, software_name, software_version
         from test_report join {OF_REPORTS} using (customer_id, execution_id)
         where customer_id = $1 and test_case_id = any($2)"
    )))
    .bind(customer)
    .bind(cases)
    .fetch_all(db)
    .await?;
    let mut reports = KnownReports::default();
    let mut ended: BTreeMap<Uuid, ReportsChanged> = BTreeMap::new();
    for row in rows {
        reports.plans.insert(TestPlanId::from_record(&row.report.test_plan_id)?);
        if is_pending(row.report.status()) {
            reports.pending.push(row.report.id.parse().map_err(Fault::internal)?);
            continue;
        }
        let changed = ended.entry(row.execution_id).or_insert_with(|| ReportsChanged {
            execution_id: row.execution_id.to_string(),
            project_id: row.project_id.to_string(),
            test_set_id: row.test_set_id.to_string(),
            action: ReportsAction::Rebuilt.name().to_owned(),
            software_name: row.software_name,
            software_identifier: row.software_version,
            ..ReportsChanged::default()
        });
        changed.reports.push(row.report);
    }
    reports.ended = ended.into_values().collect();
    Ok(reports)
}

/// Returns the executions of a project that its records show.
pub async fn executions_of(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
) -> Result<KnownExecutions, Fault> {
    let shown: Vec<ExecutionId> = sqlx::query_scalar(
        "with of_project as materialized (
             select id, test_set_id, environment_id, software_version_id, status
             from live_execution
             where customer_id = $1 and project_id = $2
         )
         (select distinct on (test_set_id) id from of_project order by test_set_id, id desc)
         union
         (select distinct on (environment_id) id from of_project
          where environment_id is not null
          order by environment_id, id desc)
         union
         (select distinct on (software_version_id) id from of_project
          where status = 'Completed' and software_version_id is not null
          order by software_version_id, id desc)
         union
         (select id from of_project where status in ('Completed', 'Canceled')
          order by id desc limit 1)",
    )
    .bind(customer)
    .bind(project)
    .fetch_all(db)
    .await?;
    let mut published = KnownExecutions::default();
    for id in shown {
        published.executions.push(find(db, customer, project.into(), id).await?.event(REBUILT));
    }
    let latest: Option<ExecutionId> = sqlx::query_scalar(
        "select id from live_execution e
         where customer_id = $1 and project_id = $2 and exists (
             select from test_report r
             where r.customer_id = $1 and r.execution_id = e.id
               and r.status not in ('NotExecuted', 'Running')
         )
         order by id desc
         limit 1",
    )
    .bind(customer)
    .bind(project)
    .fetch_optional(db)
    .await?;
    let Some(latest) = latest else { return Ok(published) };
    let mut tx = begin(db).await?;
    let state = find(&mut *tx, customer, project.into(), latest).await?;
    let ended = test_report::store::ended(&mut tx, customer, latest).await?;
    let pending = test_report::store::pending(&mut tx, customer, latest).await?;
    let id = |id: &String| id.parse().map_err(Fault::internal);
    published.reports = KnownReports {
        ended: state.reports_changed(ReportsAction::Rebuilt, &ended).collect(),
        pending: pending.iter().map(|one| id(&one.published.id)).collect::<Result<_, _>>()?,
        ..KnownReports::default()
    };
    Ok(published)
}
