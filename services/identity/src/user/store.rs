//! Users in PostgreSQL: memberships with their accounts and groups. Every statement
//! names the customer.

use assay_proto::{CustomerId, Fault, UserGroupId, UserId, identity::User};
use assay_runtime::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments, query::QueryAs,
};

/// Selects users; `rest` adds conditions and the order.
fn select(rest: &'static str) -> QueryAs<'static, Postgres, User, PgArguments> {
    sqlx::query_as(AssertSqlSafe(format!(
        "select membership.id, coalesce(account.email, invitation.email) as email,
                membership.display_name,
                coalesce(user_group.usage_permission, '') as usage_permission,
                membership.features, null::text as password, membership.previous_login,
                membership.last_login, membership.profile,
                membership.revision::text as data_version, membership.archived,
                case when user_group.id is not null then jsonb_build_object(
                    'Id', user_group.id, 'Name', user_group.name,
                    'Description', user_group.description,
                    'UsagePermission', user_group.usage_permission,
                    'DataVersion', user_group.revision::text, 'Archived', user_group.archived)
                end as user_group
         from membership
         left join account on account.id = membership.account_id
         left join invitation on invitation.customer_id = membership.customer_id
                             and invitation.user_id = membership.id
         left join user_group on user_group.customer_id = membership.customer_id
                             and user_group.id = membership.user_group_id
         {rest}"
    )))
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: UserId,
) -> Result<User, Fault> {
    select("where membership.customer_id = $1 and membership.id = $2")
        .bind(customer)
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("user"))
}

/// Lists a slice of a group's users, newest first.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    group: UserGroupId,
    slice: &Slice,
) -> Result<Rows<User>, Fault> {
    let users = select(
        "where membership.customer_id = $1 and membership.user_group_id = $2
           and membership.id < $3
           and ($4::text is null or membership.display_name ilike $4
                or coalesce(account.email, invitation.email) ilike $4)
         order by membership.id desc
         limit $5",
    )
    .bind(customer)
    .bind(group)
    .bind(slice.before()?)
    .bind(&slice.pattern)
    .bind(slice.limit)
    .fetch(db);
    slice.read(users).await
}

/// Locks a user. The lock also blocks new tokens of the user.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserId,
) -> Result<(), Fault> {
    sqlx::query("select from membership where customer_id = $1 and id = $2 for update")
        .bind(customer)
        .bind(id)
        .fetch_optional(&mut **tx)
        .await?
        .map(drop)
        .ok_or(Fault::NotFound("user"))
}

/// Writes the changeable fields of a locked user, except for the email address of the account.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserId,
    group: UserGroupId,
    display_name: &str,
) -> Result<(), Fault> {
    sqlx::query(
        "update membership
         set user_group_id = $3, display_name = $4, revision = revision + 1
         where customer_id = $1 and id = $2",
    )
    .bind(customer)
    .bind(id)
    .bind(group)
    .bind(display_name)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
