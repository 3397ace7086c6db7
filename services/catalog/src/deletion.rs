//! Deletions: what goes with a record, and what refers to it no more.
//!
//! A deleted record stays as it was, for what history says of it; only `deleted_at` is set, of what
//! it contains too. Who calls these has claimed the project, so that nobody else writes in it: the
//! order in which rows are locked does not matter.

use assay_events::{publish, publish_all};
use assay_proto::{CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestSetId};
use assay_records::Action;
use sqlx::{AssertSqlSafe, PgTransaction};
use uuid::Uuid;

use crate::record::Record;

/// Deletes a project: from now on, all that belongs to it is refused. It is removed in the
/// background, see [`crate::purge`].
pub(crate) async fn of_project(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<(), Fault> {
    sqlx::query("update project set deleted_at = now() where customer_id = $1 and id = $2")
        .bind(customer)
        .bind(id)
        .execute(&mut **tx)
        .await?;
    publish(tx, &Record::Project(customer, id).was(Action::Deleted, customer)?).await
}

/// Deletes all projects of a deleted customer, and keeps it from getting others.
pub async fn of_customer(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<(), Fault> {
    for statement in [
        "insert into deleted_customer (customer_id) values ($1)
         on conflict on constraint deleted_customer_pkey do nothing",
        "update project set deleted_at = now() where customer_id = $1 and deleted_at is null",
    ] {
        sqlx::query(statement).bind(customer).execute(&mut **tx).await?;
    }
    Ok(())
}

/// Deletes a test case with its plans; its sets have changed.
pub(crate) async fn of_test_case(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
) -> Result<(), Fault> {
    mark(tx, "test_case", "test case", customer, project, id.0).await?;
    sqlx::query(
        "update test_plan set deleted_at = now()
         where customer_id = $1 and test_case_id = $2 and deleted_at is null",
    )
    .bind(customer)
    .bind(id)
    .execute(&mut **tx)
    .await?;
    let left = sqlx::query_scalar::<_, TestSetId>(
        "with left_set as (
             delete from test_set_case where customer_id = $1 and test_case_id = $2
             returning test_set_id
         )
         update test_set set revision = revision + 1
         where customer_id = $1 and id in (select test_set_id from left_set)
           and deleted_at is null
         returning id",
    );
    let left = left.bind(customer).bind(id).fetch_all(&mut **tx).await?;
    let changed = left.into_iter().map(|set| Record::TestSet(project, set));
    tell(tx, customer, Record::TestCase(project, id), changed).await
}

/// Deletes a test set; its test cases stay.
pub(crate) async fn of_test_set(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestSetId,
) -> Result<(), Fault> {
    mark(tx, "test_set", "test set", customer, project, id.0).await?;
    tell(tx, customer, Record::TestSet(project, id), []).await
}

/// Deletes a subject; the sets, environments and subjects that referred to it have changed.
pub(crate) async fn of_subject(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
) -> Result<(), Fault> {
    mark(tx, "subject", "subject", customer, project, id.0).await?;
    let sets = clear(tx, "test_set", "selected_subject_id", customer, project, id.0).await?;
    let environments =
        clear(tx, "environment", "contained_subject", customer, project, id.0).await?;
    let subjects = clear(tx, "subject", "base_subject_id", customer, project, id.0).await?;
    let sets = sets.into_iter().map(|id| Record::TestSet(project, TestSetId(id)));
    let environments =
        environments.into_iter().map(|id| Record::Environment(project, EnvironmentId(id)));
    let subjects = subjects.into_iter().map(|id| Record::Subject(project, SubjectId(id)));
    let changed = sets.chain(environments).chain(subjects);
    tell(tx, customer, Record::Subject(project, id), changed).await
}

/// Deletes an environment; the sets that had selected it have changed.
pub(crate) async fn of_environment(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
) -> Result<(), Fault> {
    mark(tx, "environment", "environment", customer, project, id.0).await?;
    let sets = clear(tx, "test_set", "selected_environment_id", customer, project, id.0).await?;
    let changed = sets.into_iter().map(|id| Record::TestSet(project, TestSetId(id)));
    tell(tx, customer, Record::Environment(project, id), changed).await
}

/// Marks a record of a project as deleted, unless there is none.
async fn mark(
    tx: &mut PgTransaction<'_>,
    table: &'static str,
    noun: &'static str,
    customer: CustomerId,
    project: ProjectId,
    id: Uuid,
) -> Result<(), Fault> {
    let marked = sqlx::query(AssertSqlSafe(format!(
        "update {table} set deleted_at = now()
         where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null"
    )));
    let marked = marked.bind(customer).bind(project).bind(id).execute(&mut **tx).await?;
    if marked.rows_affected() == 0 {
        return Err(Fault::NotFound(noun));
    }
    Ok(())
}

/// Clears the references to a deleted record; returns the ids of what has referred to it.
async fn clear(
    tx: &mut PgTransaction<'_>,
    table: &'static str,
    column: &'static str,
    customer: CustomerId,
    project: ProjectId,
    id: Uuid,
) -> Result<Vec<Uuid>, Fault> {
    let cleared = sqlx::query_scalar(AssertSqlSafe(format!(
        "update {table} set {column} = null, revision = revision + 1
         where customer_id = $1 and project_id = $2 and {column} = $3 and deleted_at is null
         returning id"
    )));
    Ok(cleared.bind(customer).bind(project).bind(id).fetch_all(&mut **tx).await?)
}

/// Tells that a record was deleted, and that others have changed by that.
async fn tell(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    deleted: Record,
    changed: impl IntoIterator<Item = Record>,
) -> Result<(), Fault> {
    let mut events = vec![deleted.was(Action::Deleted, customer)?];
    for record in changed {
        events.push(record.was(Action::Changed, customer)?);
    }
    publish_all(tx, &events).await
}
