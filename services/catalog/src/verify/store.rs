//! The contents of records that executions determine, in PostgreSQL, of all customers.

use assay_events::KnownRetention;
use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId, TestSetId,
    events::ExecutionChanged,
};
use sqlx::{PgExecutor, PgTransaction};
use uuid::Uuid;

use super::{Executed, Shown};

/// Lists up to 100 projects after another one.
pub(super) async fn projects(
    db: impl PgExecutor<'_>,
    after: Option<(CustomerId, ProjectId)>,
) -> Result<Vec<(CustomerId, ProjectId)>, Fault> {
    let (customer, id) = after.unzip();
    let projects = sqlx::query_as(
        "select customer_id, id from project
         where deleted_at is null and (customer_id, id) > (
             coalesce($1, '00000000-0000-0000-0000-000000000000'),
             coalesce($2, '00000000-0000-0000-0000-000000000000')
         )
         order by customer_id, id
         limit 100",
    );
    Ok(projects.bind(customer).bind(id).fetch_all(db).await?)
}

/// Lists how long the results of up to 100 projects are kept, after another project.
pub(super) async fn retentions(
    db: impl PgExecutor<'_>,
    after: Option<(CustomerId, ProjectId)>,
) -> Result<Vec<KnownRetention>, Fault> {
    let (customer, id) = after.unzip();
    let retentions = sqlx::query_as(
        "select customer_id, id, retention_in_days, revision from project
         where deleted_at is null and (customer_id, id) > (
             coalesce($1, '00000000-0000-0000-0000-000000000000'),
             coalesce($2, '00000000-0000-0000-0000-000000000000')
         )
         order by customer_id, id
         limit 100",
    );
    let retentions: Vec<(CustomerId, ProjectId, Option<i32>, i64)> =
        retentions.bind(customer).bind(id).fetch_all(db).await?;
    let known =
        |(customer, project, days, revision)| KnownRetention { customer, project, days, revision };
    Ok(retentions.into_iter().map(known).collect())
}

/// Number of reports after which no further test case is compared at once.
const MOST_REPORTS: i64 = 10_000;

/// Lists up to 100 test cases of a project after another one, archived and deleted ones included. Fewer if
/// they have many reports, which are compared in memory, while the project is locked.
pub(super) async fn cases(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    after: Option<TestCaseId>,
) -> Result<Vec<TestCaseId>, Fault> {
    let cases = sqlx::query_scalar(
        "select id from (
             select c.id, sum(r.number) over (order by c.id) - r.number as before
             from (
                 select id from test_case
                 where customer_id = $1 and project_id = $2
                   and id > coalesce($3, '00000000-0000-0000-0000-000000000000')
                 order by id
                 limit 100
             ) as c
             cross join lateral (
                 select count(*) as number from (
                     select from test_report
                     where customer_id = $1 and test_case_id = c.id
                     limit $4::bigint
                 ) as report
             ) as r
         ) as measured
         where before < $4::bigint
         order by id",
    );
    let cases = cases.bind(customer).bind(project).bind(after).bind(MOST_REPORTS);
    Ok(cases.fetch_all(db).await?)
}

/// Returns those of executed test cases that are stored nowhere, with their projects. Those of deleted projects
/// may have been removed.
pub(super) async fn lacking_cases(
    db: impl PgExecutor<'_>,
    executed: &[Executed],
) -> Result<Vec<(TestCaseId, ProjectId)>, Fault> {
    let (mut customers, mut ids, mut projects) = (Vec::new(), Vec::new(), Vec::new());
    for (customer, id, project) in executed {
        if let Some(project) = project {
            customers.push(*customer);
            ids.push(*id);
            projects.push(*project);
        }
    }
    let lacking = sqlx::query_as(
        "select executed.id, executed.project_id
         from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as executed (customer_id, id, project_id)
         where not exists (
                 select from test_case c
                 where c.customer_id = executed.customer_id and c.id = executed.id
             )
           and not exists (
                 select from project p
                 where p.customer_id = executed.customer_id and p.id = executed.project_id
                   and p.deleted_at is not null
             )
         order by executed.project_id, executed.id",
    );
    Ok(lacking.bind(customers).bind(ids).bind(projects).fetch_all(db).await?)
}

/// Returns the test sets, subjects and environments of executions that are stored nowhere, with their nouns.
pub(super) async fn lacking_records(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    executions: &[ExecutionChanged],
) -> Result<Vec<(String, Uuid)>, Fault> {
    let (mut nouns, mut ids) = (Vec::new(), Vec::new());
    for execution in executions {
        for (noun, id) in referenced(execution)? {
            nouns.push(noun);
            ids.push(id);
        }
    }
    let lacking = sqlx::query_as(
        "select distinct noun, id from unnest($2::text[], $3::uuid[]) as executed (noun, id)
         where not exists (
                 select from test_set r where r.customer_id = $1 and r.id = executed.id
             )
           and not exists (
                 select from subject r where r.customer_id = $1 and r.id = executed.id
             )
           and not exists (
                 select from environment r where r.customer_id = $1 and r.id = executed.id
             )
         order by noun, id",
    );
    Ok(lacking.bind(customer).bind(nouns).bind(ids).fetch_all(&mut **tx).await?)
}

/// Returns the records of the catalog that an execution refers to, with their nouns.
fn referenced(
    execution: &ExecutionChanged,
) -> Result<impl Iterator<Item = (&'static str, Uuid)>, Fault> {
    let statistic = execution.statistic.as_ref();
    let subject = statistic.and_then(|one| one.software_version_id.as_deref());
    let subject = SubjectId::from_field_if_any("SoftwareVersionId", subject)?;
    let environment = statistic.and_then(|one| one.environment_id.as_deref());
    let environment = EnvironmentId::from_field_if_any("EnvironmentId", environment)?;
    let set = TestSetId::from_field("TestSetId", &execution.test_set_id)?;
    Ok([
        Some(("test set", set.0)),
        subject.map(|id| ("subject", id.0)),
        environment.map(|id| ("environment", id.0)),
    ]
    .into_iter()
    .flatten())
}

/// Returns those of some plans that are stored nowhere.
pub(super) async fn lacking_plans(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    plans: &[TestPlanId],
) -> Result<Vec<TestPlanId>, Fault> {
    let lacking = sqlx::query_scalar(
        "select id from unnest($2::uuid[]) as executed (id)
         where not exists (
             select from test_plan p where p.customer_id = $1 and p.id = executed.id
         )
         order by id",
    );
    Ok(lacking.bind(customer).bind(plans).fetch_all(&mut **tx).await?)
}

/// Freezes plans that were executed: they are a part of history.
pub(super) async fn freeze(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    plans: &[TestPlanId],
) -> Result<(), Fault> {
    let freeze = sqlx::query(
        "update test_plan set frozen_at = now()
         where customer_id = $1 and id = any($2) and frozen_at is null",
    );
    freeze.bind(customer).bind(plans).execute(&mut **tx).await?;
    Ok(())
}

/// Returns the reports of test cases, what these show of them, and which of their plans are frozen.
pub(super) async fn shown_by_cases(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
) -> Result<Shown, Fault> {
    let rows = sqlx::query_as(
        "select 'test case', id, jsonb_build_array(last_report_status, last_result, last_sw_name,
                last_sw_identifier, execution_statistics)
         from test_case where customer_id = $1 and id = any($2)
         union all
         select 'test report', id, to_jsonb(r) - 'customer_id'
         from test_report r where customer_id = $1 and test_case_id = any($2)
         union all
         select 'test plan', id, jsonb_build_object('frozen', frozen_at is not null)
         from test_plan where customer_id = $1 and test_case_id = any($2)",
    );
    Ok(by_record(rows.bind(customer).bind(cases).fetch_all(&mut **tx).await?))
}

/// Returns what a project, its test sets and its subjects show.
pub(super) async fn shown_by_project(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<Shown, Fault> {
    let rows = sqlx::query_as(
        "select 'test set', id, jsonb_build_array(last_execution_id, last_execution_revision,
                last_executed, last_subject_id, last_sw_identifier, last_sw_name,
                last_execution_statistic, last_run_duration)
         from test_set where customer_id = $1 and project_id = $2
         union all
         select 'subject', id,
                jsonb_build_array(pass_rate, pass_rate_execution_id, pass_rate_revision)
         from subject where customer_id = $1 and project_id = $2
         union all
         select 'project', id, jsonb_build_array(overall_result, result_execution_id,
                result_revision, overall_status, status_execution_id, status_finished_at,
                status_report_id, status_revision)
         from project where customer_id = $1 and id = $2",
    );
    Ok(by_record(rows.bind(customer).bind(project).fetch_all(&mut **tx).await?))
}

fn by_record(rows: Vec<(String, Uuid, serde_json::Value)>) -> Shown {
    rows.into_iter().map(|(noun, id, shown)| ((noun, id), shown)).collect()
}

/// Lets a locked project, its test sets and its subjects show no execution. A status stays that is of
/// one of these reports, which are pending again.
pub(super) async fn show_nothing(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    pending: &[Uuid],
) -> Result<(), Fault> {
    const NEVER: &str = "'00000000-0000-0000-0000-000000000000'";
    for statement in [
        format!(
            "update test_set
             set last_executed = null, last_subject_id = null, last_sw_identifier = null,
                 last_sw_name = null, last_execution_statistic = null,
                 last_run_duration = '00:00:00', last_execution_id = {NEVER},
                 last_execution_revision = 0
             where customer_id = $1 and project_id = $2 and last_execution_id <> {NEVER}"
        ),
        format!(
            "update subject
             set pass_rate = 0, pass_rate_execution_id = {NEVER}, pass_rate_revision = 0
             where customer_id = $1 and project_id = $2 and pass_rate_execution_id <> {NEVER}"
        ),
        format!(
            "update project
             set overall_result = null, result_execution_id = {NEVER}, result_revision = 0
             where customer_id = $1 and id = $2"
        ),
    ] {
        let update = sqlx::query(sqlx::AssertSqlSafe(statement));
        update.bind(customer).bind(project).execute(&mut **tx).await?;
    }
    sqlx::query(sqlx::AssertSqlSafe(format!(
        "update project
         set overall_status = null, status_execution_id = {NEVER},
             status_finished_at = '-infinity', status_report_id = {NEVER}, status_revision = 0
         where customer_id = $1 and id = $2 and status_report_id <> all($3)"
    )))
    .bind(customer)
    .bind(project)
    .bind(pending)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
