//! Environments in PostgreSQL. Passwords are read and written as they are stored, encrypted.

use assay_proto::{
    CustomerId, EnvironmentId, Fault, InputColumns, ProjectId,
    catalog::{Environment, EnvironmentEntry, EnvironmentInput},
};
use sqlx::{AssertSqlSafe, PgTransaction};

use crate::records::{Columns, ProjectRecord};

impl ProjectRecord for Environment {
    type Id = EnvironmentId;
    type Entry = EnvironmentEntry;

    const TABLE: &'static str = "environment";
    const NOUN: &'static str = "environment";
    const SEARCH: &'static str = "name ilike $4";
    const COLUMNS_OF_RECORD: Columns = &[Self::COLUMNS];
    const COLUMNS_OF_ENTRY: Columns = &[EnvironmentEntry::COLUMNS];
}

pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
    environment: &EnvironmentInput,
) -> Result<EnvironmentEntry, Fault> {
    let (columns, values) = (EnvironmentInput::COLUMNS, EnvironmentInput::values(4));
    let returned = EnvironmentEntry::COLUMNS;
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into environment (customer_id, project_id, id, {columns})
         values ($1, $2, $3, {values})
         returning {returned}"
    )));
    let insert = environment.bind(insert.bind(customer).bind(project).bind(id));
    Ok(insert.fetch_one(&mut **tx).await?)
}

/// Writes the fields of a locked environment.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
    environment: &EnvironmentInput,
) -> Result<Environment, Fault> {
    let (assignments, returned) = (EnvironmentInput::assignments(4), Environment::COLUMNS);
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update environment set {assignments}, revision = revision + 1
         where customer_id = $1 and project_id = $2 and id = $3
         returning {returned}"
    )));
    let update = environment.bind(update.bind(customer).bind(project).bind(id));
    Ok(update.fetch_one(&mut **tx).await?)
}
