//! Deletions of records with the records that they contain and the references to them.
//!
//! A deleted record stays as it was, since history refers to it; only `deleted_at` is set. The caller
//! has locked the project exclusively, so rows can be locked in any order.

use std::iter;

use assay_events::publish_all;
use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestSetId,
    catalog::{Environment, Subject, TestCase},
};
use assay_records::{Action, appliances};
use sqlx::{AssertSqlSafe, PgTransaction};
use uuid::Uuid;

use crate::{event::EventSource, file::reference, records::Records};

/// The next customers of which this service has a project, with the nil UUID as project, for the search for
/// lost deletions.
pub const LIVE_CUSTOMERS: &str = "
    select distinct customer_id, '00000000-0000-0000-0000-000000000000'::uuid as project_id
    from project
    where customer_id > $1 and $2::uuid is not null and not exists (
        select from deleted_customer d where d.customer_id = project.customer_id
    )
    order by customer_id
    limit $3";

/// Deletes all projects of a deleted customer and what belongs to none, and prevents new ones.
pub async fn delete_customer(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    for statement in [
        "insert into deleted_customer (customer_id) values ($1)
         on conflict on constraint deleted_customer_pkey do nothing",
        "update project set deleted_at = now() where customer_id = $1 and deleted_at is null",
        "delete from opening where customer_id = $1 and owner_id = $1",
    ] {
        sqlx::query(statement).bind(customer).execute(&mut **tx).await?;
    }
    appliances::delete(tx, customer).await
}

/// Returns whether a customer was deleted.
pub(crate) async fn is_deleted(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<bool, Fault> {
    let deleted = "select exists (select from deleted_customer where customer_id = $1)";
    Ok(sqlx::query_scalar(deleted).bind(customer).fetch_one(&mut **tx).await?)
}

/// Deletes a test case with its plans, and removes it from its test sets.
pub(crate) async fn delete_test_case(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
) -> Result<(), Fault> {
    Records::<TestCase>::of(customer, project).mark_deleted(tx, id).await?;
    sqlx::query(
        "with plan as (
             update test_plan set deleted_at = now()
             where customer_id = $1 and test_case_id = $2 and deleted_at is null
             returning id
         )
         delete from file_reference where customer_id = $1 and record_id in (select id from plan)",
    )
    .bind(customer)
    .bind(id)
    .execute(&mut **tx)
    .await?;
    let changed = sqlx::query_scalar::<_, TestSetId>(
        "with changed_set as (
             delete from test_set_case where customer_id = $1 and test_case_id = $2
             returning test_set_id
         )
         update test_set set revision = revision + 1
         where customer_id = $1 and id in (select test_set_id from changed_set)
           and deleted_at is null
         returning id",
    );
    let changed = changed.bind(customer).bind(id).fetch_all(&mut **tx).await?;
    let changed = changed.into_iter().map(|set| EventSource::TestSet(project, set));
    publish_deleted(tx, customer, EventSource::TestCase(project, id), changed).await
}

/// Deletes a subject, and clears the references of test sets, environments and subjects to it.
pub(crate) async fn delete_subject(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
) -> Result<(), Fault> {
    Records::<Subject>::of(customer, project).mark_deleted(tx, id).await?;
    reference::delete(tx, customer, id.0).await?;
    let sets = clear(tx, "test_set", "selected_subject_id", customer, project, id.0).await?;
    let environments =
        clear(tx, "environment", "contained_subject", customer, project, id.0).await?;
    let subjects = clear(tx, "subject", "base_subject_id", customer, project, id.0).await?;
    let sets = sets.into_iter().map(|id| EventSource::TestSet(project, TestSetId(id)));
    let environments =
        environments.into_iter().map(|id| EventSource::Environment(project, EnvironmentId(id)));
    let subjects = subjects.into_iter().map(|id| EventSource::Subject(project, SubjectId(id)));
    let changed = sets.chain(environments).chain(subjects);
    publish_deleted(tx, customer, EventSource::Subject(project, id), changed).await
}

/// Deletes an environment, and clears the references of test sets to it.
pub(crate) async fn delete_environment(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
) -> Result<(), Fault> {
    Records::<Environment>::of(customer, project).mark_deleted(tx, id).await?;
    reference::delete(tx, customer, id.0).await?;
    let sets = clear(tx, "test_set", "selected_environment_id", customer, project, id.0).await?;
    let changed = sets.into_iter().map(|id| EventSource::TestSet(project, TestSetId(id)));
    publish_deleted(tx, customer, EventSource::Environment(project, id), changed).await
}

/// Clears the references to a deleted record. Returns the ids of the records that referred to it.
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

/// Publishes that a record was deleted and that others have changed with it.
async fn publish_deleted(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    deleted: EventSource,
    changed: impl IntoIterator<Item = EventSource, IntoIter: Send>,
) -> Result<(), Fault> {
    let changed = changed.into_iter().map(|record| record.event(Action::Changed, customer, None));
    publish_all(tx, iter::once(deleted.event(Action::Deleted, customer, None)).chain(changed)).await
}
