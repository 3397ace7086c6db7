//! Projects in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, Fault, ProjectId,
    catalog::{Project, ProjectEntry, ProjectInput},
};
use assay_runtime::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments, query::QueryAs,
};

use crate::shelf::Shelf;

const COLUMNS: &str = "id, name, description, revision::text as data_version, report_template_id,
     overall_result, overall_status, archived, customer_id, retention_in_days";

/// Reads a project; `rest` says which.
fn select(rest: &'static str) -> QueryAs<'static, Postgres, Project, PgArguments> {
    sqlx::query_as(AssertSqlSafe(format!("select {COLUMNS} from project {rest}")))
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<Project, Fault> {
    select("where customer_id = $1 and id = $2 and deleted_at is null")
        .bind(customer)
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("project"))
}

/// Reads a project and keeps others from changing it meanwhile.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<Project, Fault> {
    select("where customer_id = $1 and id = $2 and deleted_at is null for no key update")
        .bind(customer)
        .bind(id)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("project"))
}

/// The condition, as SQL, that a project was not deleted; `$1` is the customer, `id` the project's id
/// as a parameter or a column. What is in a deleted project is refused by it at once, long before it
/// is removed.
pub(crate) fn is_live(id: &str) -> String {
    format!(
        "exists (
             select from project
             where project.customer_id = $1 and project.id = {id} and project.deleted_at is null
         )"
    )
}

/// Makes sure that there is such a project.
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

/// Makes sure that there is such a project, and that neither it nor anything in it is deleted
/// meanwhile. Whoever writes in a project does this first.
pub(crate) async fn hold(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<(), Fault> {
    sqlx::query(
        "select from project where customer_id = $1 and id = $2 and deleted_at is null
         for key share",
    )
    .bind(customer)
    .bind(id)
    .fetch_optional(&mut **tx)
    .await?
    .map(drop)
    .ok_or(Fault::NotFound("project"))
}

/// Makes sure that there is such a project, and that nobody else writes in it meanwhile: for
/// deletions, which reach records that others would lock in another order.
pub(crate) async fn claim(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<(), Fault> {
    sqlx::query(
        "select from project where customer_id = $1 and id = $2 and deleted_at is null
         for update",
    )
    .bind(customer)
    .bind(id)
    .fetch_optional(&mut **tx)
    .await?
    .map(drop)
    .ok_or(Fault::NotFound("project"))
}

/// Lists a slice of a shelf's projects.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    shelf: Shelf,
    slice: &Slice,
) -> Result<Rows<ProjectEntry>, Fault> {
    let (condition, order) = (shelf.condition(), shelf.order());
    let projects = sqlx::query_as(AssertSqlSafe(format!(
        "select id, name, description from project
         where customer_id = $1 and id < $3 and {condition}
           and ($4::text is null or name ilike $4)
         order by {order}
         limit $5"
    )));
    let projects = projects
        .bind(shelf.customer)
        .bind(shelf.user)
        .bind(shelf.before(slice)?)
        .bind(&slice.pattern)
        .bind(shelf.limit(slice));
    shelf.read(projects.fetch(db), slice).await
}

pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
    project: &ProjectInput,
) -> Result<Project, Fault> {
    let statement = format!(
        "insert into project (customer_id, id, name, description, report_template_id,
             retention_in_days)
         select $1, $2, $3, $4, $5, $6
         where not exists (select from deleted_customer where customer_id = $1)
         returning {COLUMNS}"
    );
    let project = sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(id)
        .bind(&project.name)
        .bind(&project.description)
        .bind(&project.report_template_id)
        .bind(project.retention_in_days)
        .fetch_optional(&mut **tx)
        .await?;
    project.ok_or(Fault::NotFound("customer"))
}

/// Replaces what a client may write of a locked project.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ProjectId,
    project: &ProjectInput,
) -> Result<Project, Fault> {
    let statement = format!(
        "update project
         set name = $3, description = $4, report_template_id = $5, archived = $6,
             retention_in_days = $7, revision = revision + 1
         where customer_id = $1 and id = $2
         returning {COLUMNS}"
    );
    let project = sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(id)
        .bind(&project.name)
        .bind(&project.description)
        .bind(&project.report_template_id)
        .bind(project.archived)
        .bind(project.retention_in_days)
        .fetch_one(&mut **tx)
        .await?;
    Ok(project)
}
