//! The records that engines need, in PostgreSQL, without deleted ones. Secrets are returned as they are
//! stored.

use assay_proto::{
    CustomerId, EnvironmentId, Fault, SubjectId, TestPlanId,
    catalog::{AutomatedTestPlan, AutomationFile, Environment, Subject},
};
use sqlx::{AssertSqlSafe, PgExecutor};
use uuid::Uuid;

use crate::{project, records::ProjectRecord};

pub(super) async fn plans(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    ids: &[TestPlanId],
) -> Result<Vec<AutomatedTestPlan>, Fault> {
    let (columns, live) =
        (AutomatedTestPlan::COLUMNS, project::store::is_live("test_case.project_id"));
    let plans = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from test_plan
         where customer_id = $1 and id = any($2) and deleted_at is null
           and exists (
               select from test_case
               where test_case.customer_id = $1 and test_case.id = test_case_id and {live}
           )"
    )));
    Ok(plans.bind(customer).bind(ids).fetch_all(db).await?)
}

pub(super) async fn subjects(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    ids: &[SubjectId],
) -> Result<Vec<Subject>, Fault> {
    let (columns, live) =
        (Subject::COLUMNS_OF_RECORD.join(", "), project::store::is_live("project_id"));
    let subjects = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from subject
         where customer_id = $1 and id = any($2) and deleted_at is null and {live}"
    )));
    Ok(subjects.bind(customer).bind(ids).fetch_all(db).await?)
}

pub(super) async fn environments(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    ids: &[EnvironmentId],
) -> Result<Vec<Environment>, Fault> {
    let (columns, live) =
        (Environment::COLUMNS_OF_RECORD.join(", "), project::store::is_live("project_id"));
    let environments = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from environment
         where customer_id = $1 and id = any($2) and deleted_at is null and {live}"
    )));
    Ok(environments.bind(customer).bind(ids).fetch_all(db).await?)
}

/// Lists the files to which records refer. A record that refers to a file twice has it once.
pub(super) async fn files(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    records: &[Uuid],
) -> Result<Vec<AutomationFile>, Fault> {
    let live = project::store::is_live("file.project_id");
    let files = sqlx::query_as(AssertSqlSafe(format!(
        "select file.id, referring.record_id, file.name, content.size,
                encode(content.sha256, 'hex') as sha256
         from (
             select distinct record_id, file_id from file_reference
             where customer_id = $1 and record_id = any($2)
         ) as referring
         join file on file.customer_id = $1 and file.id = referring.file_id
         join content on content.customer_id = $1 and content.id = file.content_id
         where {live}
         order by referring.record_id, file.id"
    )));
    Ok(files.bind(customer).bind(records).fetch_all(db).await?)
}
