//! User groups in PostgreSQL. Every statement names the customer.

use assay_proto::{
    CustomerId, Fault, OnConstraint, UserGroupId,
    identity::{UserGroup, UserGroupInput},
};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments, query::QueryAs,
};

const COLUMNS: &str =
    "id, name, description, usage_permission, revision::text as data_version, archived";

/// Selects user groups; `rest` adds conditions and the order.
fn select(rest: &'static str) -> QueryAs<'static, Postgres, UserGroup, PgArguments> {
    sqlx::query_as(AssertSqlSafe(format!("select {COLUMNS} from user_group {rest}")))
}

/// Lists a customer's groups by name.
pub(crate) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<Vec<UserGroup>, Fault> {
    let groups = select("where customer_id = $1 and deleted_at is null order by name, id");
    Ok(groups.bind(customer).fetch_all(db).await?)
}

/// Finds a group.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: UserGroupId,
) -> Result<Option<UserGroup>, Fault> {
    let group = select("where customer_id = $1 and id = $2 and deleted_at is null");
    Ok(group.bind(customer).bind(id).fetch_optional(db).await?)
}

/// Finds a group, and prevents its deletion until the transaction ends.
pub(crate) async fn lock_shared(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserGroupId,
) -> Result<Option<UserGroup>, Fault> {
    let group = select("where customer_id = $1 and id = $2 and deleted_at is null for key share");
    Ok(group.bind(customer).bind(id).fetch_optional(&mut **tx).await?)
}

/// Reads and locks a group. The lock also blocks new tokens of its members.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserGroupId,
) -> Result<UserGroup, Fault> {
    select("where customer_id = $1 and id = $2 and deleted_at is null for update")
        .bind(customer)
        .bind(id)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("user group"))
}

pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserGroupId,
    group: &UserGroupInput,
) -> Result<UserGroup, Fault> {
    let statement = format!(
        "insert into user_group (customer_id, id, name, description, usage_permission)
         values ($1, $2, $3, $4, $5)
         returning {COLUMNS}"
    );
    sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(id)
        .bind(&group.name)
        .bind(&group.description)
        .bind(&group.usage_permission)
        .fetch_one(&mut **tx)
        .await
        .on_constraint("user_group_name_key", Fault::AlreadyExists("user group with this name"))
}

/// Writes the changeable fields of a locked group.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserGroupId,
    group: &UserGroupInput,
) -> Result<UserGroup, Fault> {
    let statement = format!(
        "update user_group
         set name = $3, description = $4, usage_permission = $5, revision = revision + 1
         where customer_id = $1 and id = $2
         returning {COLUMNS}"
    );
    sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(id)
        .bind(&group.name)
        .bind(&group.description)
        .bind(&group.usage_permission)
        .fetch_one(&mut **tx)
        .await
        .on_constraint("user_group_name_key", Fault::AlreadyExists("user group with this name"))
}

/// Deletes a locked group. Fails if it has members.
pub(super) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserGroupId,
) -> Result<(), Fault> {
    let done = sqlx::query(
        "update user_group set deleted_at = now(), revision = revision + 1
         where customer_id = $1 and id = $2
           and not exists (select from membership where customer_id = $1 and user_group_id = $2)",
    )
    .bind(customer)
    .bind(id)
    .execute(&mut **tx)
    .await?;
    if done.rows_affected() == 0 {
        return Err(Fault::Conflict {
            code: "user_group_has_members",
            reason: "the user group has members; move or delete them first".to_owned(),
        });
    }
    Ok(())
}
