//! User groups in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{CustomerId, Fault, Permissions, UserGroupId, identity::UserGroup};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments};

/// Reads user groups; `rest` picks and orders them.
fn select(rest: &'static str) -> sqlx::query::QueryAs<'static, Postgres, UserGroup, PgArguments> {
    sqlx::query_as(AssertSqlSafe(format!(
        "select id, name, description, usage_permission, revision::text as data_version, archived
         from user_group {rest}"
    )))
}

/// Lists a customer's groups by name.
pub(crate) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<Vec<UserGroup>, Fault> {
    let groups = select("where customer_id = $1 and deleted_at is null order by name, id");
    Ok(groups.bind(customer).fetch_all(db).await?)
}

pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    name: &str,
    permissions: Permissions,
) -> Result<UserGroupId, Fault> {
    let id = UserGroupId::new();
    sqlx::query(
        "insert into user_group (customer_id, id, name, usage_permission) values ($1, $2, $3, $4)",
    )
    .bind(customer)
    .bind(id)
    .bind(name)
    .bind(permissions.to_string())
    .execute(&mut **tx)
    .await?;
    Ok(id)
}
