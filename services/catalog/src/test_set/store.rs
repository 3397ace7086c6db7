//! Test sets in PostgreSQL, without their members. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, Fault, ProjectId, TestCaseId, TestSetId,
    catalog::{TestSet, TestSetEntry, TestSetInput},
};
use assay_runtime::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

use super::rules::Selected;
use crate::{project, shelf::Shelf};

/// The columns of a test set as lists show it.
const ENTRY: &str = "id, name, description, last_executed, last_subject_id, last_sw_identifier,
     last_sw_name, last_execution_statistic";

/// What the whole of it has besides, but for its test cases.
const MORE: &str =
    "selected_subject_id, selected_environment_id, priority, last_run_duration, tags,
     stop_on_failure, time_out, revision::text as data_version, archived, project_id";

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: Option<ProjectId>,
    id: TestSetId,
) -> Result<TestSet, Fault> {
    let live = project::store::is_live("project_id");
    let set = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY}, {MORE} from test_set
         where customer_id = $1 and id = $2 and ($3::uuid is null or project_id = $3)
           and deleted_at is null and {live}"
    )));
    set.bind(customer)
        .bind(id)
        .bind(project)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("test set"))
}

/// Reads a test set and keeps others from changing it, and its members, meanwhile.
pub(crate) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestSetId,
) -> Result<TestSet, Fault> {
    project::store::hold(tx, customer, project).await?;
    let set = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY}, {MORE} from test_set
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null
         for no key update"
    )));
    set.bind(customer)
        .bind(id)
        .bind(project)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("test set"))
}

/// Makes sure that there is such a test set.
pub(super) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestSetId,
) -> Result<(), Fault> {
    let live = project::store::is_live("$3");
    sqlx::query(AssertSqlSafe(format!(
        "select from test_set
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null and {live}"
    )))
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(db)
    .await?
    .map(drop)
    .ok_or(Fault::NotFound("test set"))
}

/// Lists a slice of a shelf's test sets in a project.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    shelf: Shelf,
    project: ProjectId,
    slice: &Slice,
) -> Result<Rows<TestSetEntry>, Fault> {
    let (condition, order) = (shelf.condition(), shelf.order());
    let live = project::store::is_live("$3");
    let sets = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY} from test_set
         where customer_id = $1 and project_id = $3 and id < $4 and {condition} and {live}
           and ($5::text is null or name ilike $5)
         order by {order}
         limit $6"
    )));
    let sets = sets
        .bind(shelf.customer)
        .bind(shelf.user)
        .bind(project)
        .bind(shelf.before(slice)?)
        .bind(&slice.pattern)
        .bind(shelf.limit(slice));
    shelf.read(sets.fetch(db), slice).await
}

/// Lists a slice of the active test sets that include a test case, newest first: one that is in the
/// archive, or one that is not.
pub(super) async fn list_of_case(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    case: TestCaseId,
    archived: bool,
    slice: &Slice,
) -> Result<Rows<TestSetEntry>, Fault> {
    let sets = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY} from test_set
         where customer_id = $1 and live and id < $3
           and id in (
               select test_set_id from test_set_case
               where customer_id = $1 and test_case_id = $2
           )
           and exists (
               select from test_case where customer_id = $1 and id = $2 and archived = $4
           )
           and ($5::text is null or name ilike $5)
         order by id desc
         limit $6"
    )));
    let sets = sets
        .bind(customer)
        .bind(case)
        .bind(slice.before()?)
        .bind(archived)
        .bind(&slice.pattern)
        .bind(slice.limit);
    slice.read(sets.fetch(db)).await
}

pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestSetId,
    set: &TestSetInput,
    selected: Selected,
) -> Result<TestSetEntry, Fault> {
    let inserted = sqlx::query_as(AssertSqlSafe(format!(
        "insert into test_set (customer_id, id, project_id, name, description, priority, tags,
             stop_on_failure, time_out, selected_subject_id, selected_environment_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         returning {ENTRY}"
    )));
    let inserted = inserted
        .bind(customer)
        .bind(id)
        .bind(project)
        .bind(&set.name)
        .bind(&set.description)
        .bind(&set.priority)
        .bind(&set.tags)
        .bind(set.stop_on_failure)
        .bind(set.time_out)
        .bind(selected.subject)
        .bind(selected.environment);
    Ok(inserted.fetch_one(&mut **tx).await?)
}

/// Replaces what a client may write of a locked test set, but for its members.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: TestSetId,
    set: &TestSetInput,
    selected: Selected,
) -> Result<TestSet, Fault> {
    let updated = sqlx::query_as(AssertSqlSafe(format!(
        "update test_set
         set name = $3, description = $4, priority = $5, tags = $6, stop_on_failure = $7,
             time_out = $8, selected_subject_id = $9, selected_environment_id = $10, archived = $11,
             revision = revision + 1
         where customer_id = $1 and id = $2
         returning {ENTRY}, {MORE}"
    )));
    let updated = updated
        .bind(customer)
        .bind(id)
        .bind(&set.name)
        .bind(&set.description)
        .bind(&set.priority)
        .bind(&set.tags)
        .bind(set.stop_on_failure)
        .bind(set.time_out)
        .bind(selected.subject)
        .bind(selected.environment)
        .bind(set.archived);
    Ok(updated.fetch_one(&mut **tx).await?)
}

/// Counts a change of a locked test set's members; returns the new data version.
pub(super) async fn touch(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: TestSetId,
) -> Result<String, Fault> {
    let revision = sqlx::query_scalar(
        "update test_set set revision = revision + 1
         where customer_id = $1 and id = $2
         returning revision::text",
    );
    Ok(revision.bind(customer).bind(id).fetch_one(&mut **tx).await?)
}
