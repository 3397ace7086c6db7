//! Environments in PostgreSQL. Every statement is bound to one customer. Passwords are stored
//! encrypted, and are read and written here as they are stored.

use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId,
    catalog::{Environment, EnvironmentEntry, EnvironmentInput},
};
use assay_runtime::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

use crate::{page, project};

/// The columns of an environment as lists show it.
pub(crate) const ENTRY: &str =
    "id, name, image_file_id, contained_subject::text as contained_subject,
     image_file_size, modification_allowed, target_group, file_project_id, username, password";

/// What the whole of it has besides.
pub(crate) const MORE: &str = "revision::text as data_version, archived, project_id";

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
) -> Result<Environment, Fault> {
    let live = project::store::is_live("$3");
    let environment = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY}, {MORE} from environment
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null and {live}"
    )));
    environment
        .bind(customer)
        .bind(id)
        .bind(project)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("environment"))
}

/// Reads an environment and keeps others from changing it meanwhile.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
) -> Result<Environment, Fault> {
    project::store::hold(tx, customer, project).await?;
    let environment = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY}, {MORE} from environment
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null
         for no key update"
    )));
    environment
        .bind(customer)
        .bind(id)
        .bind(project)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("environment"))
}

/// Makes sure that the environment that a client has named in `field`, if any, is one of the
/// project, and that it is not deleted meanwhile.
pub(crate) async fn hold(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    field: &'static str,
    id: Option<EnvironmentId>,
) -> Result<(), Fault> {
    if id.is_none() {
        return Ok(());
    }
    sqlx::query(
        "select from environment
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null
         for key share",
    )
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(&mut **tx)
    .await?
    .map(drop)
    .ok_or_else(|| Fault::invalid(field, "must be the id of an environment of the project"))
}

/// Lists a slice of the active environments of a project, or of those in the archive, newest first.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    archived: bool,
    slice: &Slice,
) -> Result<Rows<EnvironmentEntry>, Fault> {
    let part = page::part(archived);
    let live = project::store::is_live("$2");
    let environments = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY} from environment
         where customer_id = $1 and project_id = $2 and id < $3 and {part} and {live}
           and ($4::text is null or name ilike $4)
         order by id desc
         limit $5"
    )));
    let environments = environments
        .bind(customer)
        .bind(project)
        .bind(slice.before()?)
        .bind(&slice.pattern)
        .bind(slice.limit);
    slice.read(environments.fetch(db)).await
}

pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
    environment: &EnvironmentInput,
    contained_subject: Option<SubjectId>,
) -> Result<EnvironmentEntry, Fault> {
    let inserted = sqlx::query_as(AssertSqlSafe(format!(
        "insert into environment (customer_id, id, project_id, name, image_file_id,
             contained_subject, image_file_size, modification_allowed, target_group,
             file_project_id, username, password)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         returning {ENTRY}"
    )));
    let inserted = inserted
        .bind(customer)
        .bind(id)
        .bind(project)
        .bind(&environment.name)
        .bind(&environment.image_file_id)
        .bind(contained_subject)
        .bind(environment.image_file_size)
        .bind(environment.modification_allowed)
        .bind(&environment.target_group)
        .bind(&environment.file_project_id)
        .bind(&environment.username)
        .bind(&environment.password);
    Ok(inserted.fetch_one(&mut **tx).await?)
}

/// Replaces what a client may write of a locked environment.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: EnvironmentId,
    environment: &EnvironmentInput,
    contained_subject: Option<SubjectId>,
) -> Result<Environment, Fault> {
    let updated = sqlx::query_as(AssertSqlSafe(format!(
        "update environment
         set name = $3, image_file_id = $4, contained_subject = $5, image_file_size = $6,
             modification_allowed = $7, target_group = $8, file_project_id = $9, username = $10,
             password = $11, archived = $12, revision = revision + 1
         where customer_id = $1 and id = $2
         returning {ENTRY}, {MORE}"
    )));
    let updated = updated
        .bind(customer)
        .bind(id)
        .bind(&environment.name)
        .bind(&environment.image_file_id)
        .bind(contained_subject)
        .bind(environment.image_file_size)
        .bind(environment.modification_allowed)
        .bind(&environment.target_group)
        .bind(&environment.file_project_id)
        .bind(&environment.username)
        .bind(&environment.password)
        .bind(environment.archived);
    Ok(updated.fetch_one(&mut **tx).await?)
}
