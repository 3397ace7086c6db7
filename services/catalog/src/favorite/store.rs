//! Favorites in PostgreSQL.

use assay_proto::{CustomerId, Fault, UserId, catalog::RecordKind, name_of};
use sqlx::{AssertSqlSafe, PgExecutor};
use uuid::Uuid;

use crate::project;

/// Fails if the record does not exist, archived or not.
pub(super) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    kind: RecordKind,
    id: Uuid,
) -> Result<(), Fault> {
    let (noun, table, project) = match kind {
        RecordKind::TestCase => ("test case", "test_case", "project_id"),
        RecordKind::TestSet => ("test set", "test_set", "project_id"),
        RecordKind::Project | RecordKind::Unspecified => ("project", "project", "$2"),
    };
    let live = project::store::is_live(project);
    let found = sqlx::query(AssertSqlSafe(format!(
        "select from {table} where customer_id = $1 and id = $2 and deleted_at is null and {live}"
    )));
    let found = found.bind(customer).bind(id).fetch_optional(db).await?;
    found.map(drop).ok_or(Fault::NotFound(noun))
}

pub(super) async fn insert(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
    kind: RecordKind,
    id: Uuid,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into favorite (customer_id, user_id, kind, record_id) values ($1, $2, $3, $4)
         on conflict on constraint favorite_pkey do nothing",
    )
    .bind(customer)
    .bind(user)
    .bind(name_of(kind))
    .bind(id)
    .execute(db)
    .await?;
    Ok(())
}

pub(super) async fn delete(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
    kind: RecordKind,
    id: Uuid,
) -> Result<(), Fault> {
    sqlx::query(
        "delete from favorite
         where customer_id = $1 and user_id = $2 and kind = $3 and record_id = $4",
    )
    .bind(customer)
    .bind(user)
    .bind(name_of(kind))
    .bind(id)
    .execute(db)
    .await?;
    Ok(())
}
