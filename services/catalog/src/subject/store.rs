//! Subjects in PostgreSQL. Variables are read and written as they are stored, with encrypted secrets.

use assay_proto::{
    CustomerId, Fault, InputColumns, ProjectId, Rendered, SubjectId,
    catalog::{Subject, SubjectEntry, SubjectInput},
};
use sqlx::{AssertSqlSafe, PgTransaction};

use crate::records::{Columns, ProjectRecord};

/// The identifier of the subject that a subject is based on, as a column.
const BASE_IDENTIFIER: &str = "(
        select identifier from subject base
        where base.customer_id = subject.customer_id and base.id = subject.base_subject_id
    ) as base_subject_identifier";

impl ProjectRecord for Subject {
    type Id = SubjectId;
    type Entry = Rendered<SubjectEntry>;

    const TABLE: &'static str = "subject";
    const NOUN: &'static str = "subject";
    const SEARCH: &'static str = "name ilike $4 or identifier ilike $4";
    const COLUMNS_OF_RECORD: Columns = &[Self::COLUMNS, BASE_IDENTIFIER];
    const COLUMNS_OF_ENTRY: Columns = &[SubjectEntry::COLUMNS, BASE_IDENTIFIER];
}

pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
    subject: &SubjectInput,
) -> Result<SubjectEntry, Fault> {
    let (columns, values) = (SubjectInput::COLUMNS, SubjectInput::values(4));
    let returned = Subject::COLUMNS_OF_ENTRY.join(", ");
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into subject (customer_id, project_id, id, {columns})
         values ($1, $2, $3, {values})
         returning {returned}"
    )));
    let insert = subject.bind(insert.bind(customer).bind(project).bind(id));
    Ok(insert.fetch_one(&mut **tx).await?)
}

/// Writes the fields of a locked subject.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
    subject: &SubjectInput,
) -> Result<Subject, Fault> {
    let assignments = SubjectInput::assignments(4);
    let returned = Subject::COLUMNS_OF_RECORD.join(", ");
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update subject set {assignments}, revision = revision + 1
         where customer_id = $1 and project_id = $2 and id = $3
         returning {returned}"
    )));
    let update = subject.bind(update.bind(customer).bind(project).bind(id));
    Ok(update.fetch_one(&mut **tx).await?)
}
