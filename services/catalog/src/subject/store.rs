//! Subjects in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, Fault, ProjectId, SubjectId, Variable,
    catalog::{Subject, SubjectEntry, SubjectInput},
    name_of,
};
use assay_runtime::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, types::Json};

use crate::{page, project};

/// The columns of a subject as lists show it.
pub(crate) const ENTRY: &str = "subject.id, subject.identifier, subject.name, subject.uri,
     subject.subject_type, subject.needs_public_ip, subject.software_file_id,
     subject.software_file_name, subject.software_file_size, subject.installation_file_id,
     subject.installation_file_name, subject.instruction_file_id, subject.instruction_file_name,
     subject.framework_file_id, subject.modification_allowed, subject.base_subject_id,
     (
         select identifier from subject base
         where base.customer_id = subject.customer_id and base.id = subject.base_subject_id
     ) as base_subject_identifier,
     subject.pass_rate";

/// What the whole of it has besides.
pub(crate) const MORE: &str =
    "subject.revision::text as data_version, subject.archived, subject.project_id,
     subject.variables";

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
) -> Result<Subject, Fault> {
    let live = project::store::is_live("$3");
    let subject = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY}, {MORE} from subject
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null and {live}"
    )));
    subject
        .bind(customer)
        .bind(id)
        .bind(project)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("subject"))
}

/// Reads a subject and keeps others from changing it meanwhile.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
) -> Result<Subject, Fault> {
    project::store::hold(tx, customer, project).await?;
    let subject = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY}, {MORE} from subject
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null
         for no key update"
    )));
    subject
        .bind(customer)
        .bind(id)
        .bind(project)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("subject"))
}

/// Makes sure that the subject that a client has named in `field`, if any, is one of the project,
/// and that it is not deleted meanwhile.
pub(crate) async fn hold(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    field: &'static str,
    id: Option<SubjectId>,
) -> Result<(), Fault> {
    if id.is_none() {
        return Ok(());
    }
    sqlx::query(
        "select from subject
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null
         for key share",
    )
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(&mut **tx)
    .await?
    .map(drop)
    .ok_or_else(|| Fault::invalid(field, "must be the id of a subject of the project"))
}

/// Lists a slice of the active subjects of a project, or of those in the archive, newest first.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    archived: bool,
    slice: &Slice,
) -> Result<Rows<SubjectEntry>, Fault> {
    let part = page::part(archived);
    let live = project::store::is_live("$2");
    let subjects = sqlx::query_as(AssertSqlSafe(format!(
        "select {ENTRY} from subject
         where customer_id = $1 and project_id = $2 and id < $3 and {part} and {live}
           and ($4::text is null or name ilike $4 or identifier ilike $4)
         order by id desc
         limit $5"
    )));
    let subjects = subjects
        .bind(customer)
        .bind(project)
        .bind(slice.before()?)
        .bind(&slice.pattern)
        .bind(slice.limit);
    slice.read(subjects.fetch(db)).await
}

/// Adds a subject. `variables` are the subject's, ready to be stored.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
    subject: &SubjectInput,
    base: Option<SubjectId>,
    variables: &[Variable],
) -> Result<SubjectEntry, Fault> {
    let inserted = sqlx::query_as(AssertSqlSafe(format!(
        "insert into subject (customer_id, id, project_id, identifier, name, uri, subject_type,
             needs_public_ip, software_file_id, software_file_name, software_file_size,
             installation_file_id, installation_file_name, instruction_file_id,
             instruction_file_name, framework_file_id, modification_allowed, base_subject_id,
             variables)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19)
         returning {ENTRY}"
    )));
    let inserted = inserted
        .bind(customer)
        .bind(id)
        .bind(project)
        .bind(&subject.identifier)
        .bind(&subject.name)
        .bind(&subject.uri)
        .bind(name_of(subject.subject_type()))
        .bind(subject.needs_public_ip)
        .bind(&subject.software_file_id)
        .bind(&subject.software_file_name)
        .bind(subject.software_file_size)
        .bind(&subject.installation_file_id)
        .bind(&subject.installation_file_name)
        .bind(&subject.instruction_file_id)
        .bind(&subject.instruction_file_name)
        .bind(&subject.framework_file_id)
        .bind(subject.modification_allowed)
        .bind(base)
        .bind(Json(variables));
    Ok(inserted.fetch_one(&mut **tx).await?)
}

/// Replaces what a client may write of a locked subject. `variables` are the subject's, ready to be
/// stored.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: SubjectId,
    subject: &SubjectInput,
    base: Option<SubjectId>,
    variables: &[Variable],
) -> Result<Subject, Fault> {
    let updated = sqlx::query_as(AssertSqlSafe(format!(
        "update subject
         set identifier = $3, name = $4, uri = $5, subject_type = $6, needs_public_ip = $7,
             software_file_id = $8, software_file_name = $9, software_file_size = $10,
             installation_file_id = $11, installation_file_name = $12, instruction_file_id = $13,
             instruction_file_name = $14, framework_file_id = $15, modification_allowed = $16,
             base_subject_id = $17, variables = $18, archived = $19, revision = revision + 1
         where customer_id = $1 and id = $2
         returning {ENTRY}, {MORE}"
    )));
    let updated = updated
        .bind(customer)
        .bind(id)
        .bind(&subject.identifier)
        .bind(&subject.name)
        .bind(&subject.uri)
        .bind(name_of(subject.subject_type()))
        .bind(subject.needs_public_ip)
        .bind(&subject.software_file_id)
        .bind(&subject.software_file_name)
        .bind(subject.software_file_size)
        .bind(&subject.installation_file_id)
        .bind(&subject.installation_file_name)
        .bind(&subject.instruction_file_id)
        .bind(&subject.instruction_file_name)
        .bind(&subject.framework_file_id)
        .bind(subject.modification_allowed)
        .bind(base)
        .bind(Json(variables))
        .bind(subject.archived);
    Ok(updated.fetch_one(&mut **tx).await?)
}
