//! Projects in PostgreSQL.

use assay_proto::{
    CustomerId, Fault, InputColumns, ProjectId, Rendered, UserId,
    catalog::{ListFilter, Project, ProjectEntry, ProjectInput, RecordKind},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments, query::QueryAs,
};

use crate::filter;

/// Returns the query of a project; `condition` says which one.
fn select(condition: &'static str) -> QueryAs<'static, Postgres, Project, PgArguments> {
    let columns = Project::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!("select {columns} from project where {condition}")))
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<Project, Fault> {
    select("customer_id = $1 and id = $2 and deleted_at is null")
        .bind(customer)
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("project"))
}

/// Returns a project and locks it against changes.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<Project, Fault> {
    select("customer_id = $1 and id = $2 and deleted_at is null for no key update")
        .bind(customer)
        .bind(id)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("project"))
}

/// Returns the condition that a project is not deleted. `$1` is the customer, `id` is the id of the
/// project, as a parameter or a column. Lookups refuse the records of a deleted project by it, long
/// before they are removed.
pub(crate) fn is_live(id: &str) -> String {
    format!(
        "exists (
             select from project
             where project.customer_id = $1 and project.id = {id} and project.deleted_at is null
         )"
    )
}

/// Fails if the project does not exist.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<(), Fault> {
    sqlx::query("select from project where customer_id = $1 and id = $2 and deleted_at is null")
        .bind(customer)
        .bind(id)
        .fetch_optional(db)
        .await?
        .map(drop)
        .ok_or(Fault::NotFound("project"))
}

/// Returns the default branch of a project.
pub(crate) async fn default_branch(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<String, Fault> {
    let branch = sqlx::query_scalar(
        "select default_branch from project
         where customer_id = $1 and id = $2 and deleted_at is null",
    );
    branch.bind(customer).bind(id).fetch_optional(db).await?.ok_or(Fault::NotFound("project"))
}

async fn lock_row(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
    strength: &'static str,
) -> Result<(), Fault> {
    let lock = sqlx::query(AssertSqlSafe(format!(
        "select from project where customer_id = $1 and id = $2 and deleted_at is null
         for {strength}"
    )));
    let locked = lock.bind(customer).bind(id).fetch_optional(&mut **tx).await?;
    locked.map(drop).ok_or(Fault::NotFound("project"))
}

/// Locks a project against deletion. Every transaction that writes within a project does this first.
pub(crate) async fn lock_shared(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<(), Fault> {
    lock_row(tx, customer, id, "key share").await
}

/// Locks a project against others that change several of its records: uploads, imports and the events of executions.
/// Each of them does this before anything else, since they reach the same records in different orders. Nobody else
/// adds test cases to the project meanwhile, except single ones with an identifier of their own.
pub(crate) async fn lock_for_many(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<(), Fault> {
    lock_row(tx, customer, id, "no key update").await
}

/// Locks a project against deletion, like [`lock_shared`]. Returns whether the project exists.
pub(crate) async fn lock_if_exists(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<bool, Fault> {
    match lock_shared(tx, customer, id).await {
        Ok(()) => Ok(true),
        Err(Fault::NotFound(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Locks a project against all other writers. Deletions need this: they reach records that other
/// transactions lock in another order.
pub(crate) async fn lock_exclusive(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<(), Fault> {
    lock_row(tx, customer, id, "update").await
}

/// Lists a slice of the projects.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
    filter: ListFilter,
    slice: &Slice,
) -> Result<Rows<Rendered<ProjectEntry>>, Fault> {
    let columns = ProjectEntry::COLUMNS;
    let condition = filter::condition(filter, RecordKind::Project);
    let order = filter::order(filter, RecordKind::Project);
    let projects = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from project
         where customer_id = $1 and id < $3 and {condition}
           and ($4::text is null or name ilike $4)
         order by {order}
         limit $5"
    )));
    let projects = projects
        .bind(customer)
        .bind(user)
        .bind(filter::before(filter, slice)?)
        .bind(&slice.pattern)
        .bind(filter::limit(filter, slice));
    filter::read(filter, projects.fetch(db), slice).await
}

/// Adds a project. Fails if the customer was deleted.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
    project: &ProjectInput,
) -> Result<Project, Fault> {
    let (columns, values) = (ProjectInput::COLUMNS, ProjectInput::values(3));
    let returned = Project::COLUMNS;
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into project (customer_id, id, {columns})
         select $1, $2, {values}
         where not exists (select from deleted_customer where customer_id = $1)
         returning {returned}"
    )));
    let insert = project.bind(insert.bind(customer).bind(id));
    insert.fetch_optional(&mut **tx).await?.ok_or(Fault::NotFound("customer"))
}

/// Writes the fields of a locked project.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
    project: &ProjectInput,
) -> Result<Project, Fault> {
    let (assignments, returned) = (ProjectInput::assignments(3), Project::COLUMNS);
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update project set {assignments}, revision = revision + 1
         where customer_id = $1 and id = $2
         returning {returned}"
    )));
    let update = project.bind(update.bind(customer).bind(id));
    Ok(update.fetch_one(&mut **tx).await?)
}

/// Marks a project as deleted. Lookups refuse its records from now on; [`crate::purge`] removes them in the
/// background.
pub(super) async fn mark_deleted(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<(), Fault> {
    let delete =
        sqlx::query("update project set deleted_at = now() where customer_id = $1 and id = $2");
    delete.bind(customer).bind(id).execute(&mut **tx).await?;
    Ok(())
}
