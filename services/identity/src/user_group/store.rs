//! User groups in PostgreSQL. Every statement names the customer.

use assay_proto::{
    CustomerId, Fault, InputColumns, OnConstraint, UserGroupId,
    identity::{UserGroup, UserGroupInput},
};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments, query::QueryAs,
};

const NAME_TAKEN: Fault = Fault::AlreadyExists("user group with this name");

/// Maximum number of groups of a customer, and of the bytes of their descriptions. A customer is returned with all of
/// its groups, in one message.
const MOST: i64 = 1000;
const LONGEST_DESCRIPTIONS: i64 = 4 << 20;

/// Selects a user group; `lock` is the lock it gets.
fn select(lock: &'static str) -> QueryAs<'static, Postgres, UserGroup, PgArguments> {
    let columns = UserGroup::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from user_group
         where customer_id = $1 and id = $2 and deleted_at is null {lock}"
    )))
}

/// Fails if the customer has no such group.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: UserGroupId,
) -> Result<(), Fault> {
    let group = select("").bind(customer).bind(id).fetch_optional(db).await?;
    group.map(drop).ok_or(Fault::NotFound("user group"))
}

/// Finds a group, and prevents its deletion until the transaction ends.
pub(crate) async fn lock_shared(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserGroupId,
) -> Result<Option<UserGroup>, Fault> {
    Ok(select("for key share").bind(customer).bind(id).fetch_optional(&mut **tx).await?)
}

/// Reads and locks a group. Tokens are issued meanwhile; those that must end are revoked.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserGroupId,
) -> Result<UserGroup, Fault> {
    let group = select("for update").bind(customer).bind(id).fetch_optional(&mut **tx).await?;
    group.ok_or(Fault::NotFound("user group"))
}

/// Adds a group. Fails if the customer was deleted.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserGroupId,
    group: &UserGroupInput,
) -> Result<UserGroup, Fault> {
    let (columns, values) = (UserGroupInput::COLUMNS, UserGroupInput::values(3));
    let returned = UserGroup::COLUMNS;
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into user_group (customer_id, id, {columns})
         select $1, $2, {values} from customer
         where customer.id = $1 and deleted_at is null
         for key share
         returning {returned}"
    )));
    let inserted = group.bind(insert.bind(customer).bind(id)).fetch_optional(&mut **tx).await;
    let inserted = inserted.on_constraint("user_group_name_key", NAME_TAKEN)?;
    inserted.ok_or(Fault::NotFound("customer"))
}

/// Fails if a customer has more groups than it may have, or longer descriptions of them.
pub(super) async fn check_number(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    let size = sqlx::query_as(
        "select count(*), coalesce(sum(octet_length(description)), 0)::bigint from user_group
         where customer_id = $1 and deleted_at is null",
    );
    let (count, bytes): (i64, i64) = size.bind(customer).fetch_one(&mut **tx).await?;
    if count <= MOST && bytes <= LONGEST_DESCRIPTIONS {
        return Ok(());
    }
    let reason = format!(
        "a customer may have {MOST} user groups, whose descriptions have at most {LONGEST_DESCRIPTIONS} bytes: \
         delete or shorten some"
    );
    Err(Fault::Refused { code: "too_many_user_groups", reason })
}

/// Writes the fields of a locked group.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserGroupId,
    group: &UserGroupInput,
) -> Result<UserGroup, Fault> {
    let (assignments, returned) = (UserGroupInput::assignments(3), UserGroup::COLUMNS);
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update user_group set {assignments}, revision = revision + 1
         where customer_id = $1 and id = $2
         returning {returned}"
    )));
    let updated = group.bind(update.bind(customer).bind(id)).fetch_one(&mut **tx).await;
    updated.on_constraint("user_group_name_key", NAME_TAKEN)
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
