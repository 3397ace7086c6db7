//! Users in PostgreSQL: memberships with their accounts and groups. Every statement
//! names the customer.

use assay_proto::{
    CustomerId, Fault, InputColumns, UserGroupId, UserId,
    identity::{User, UserGroup, UserInput},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments, query::QueryAs,
};

/// Selects users; `rest` adds conditions and the order.
fn select(rest: &'static str) -> QueryAs<'static, Postgres, User, PgArguments> {
    let (columns, group) = (User::COLUMNS, UserGroup::JSON);
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}
         from (
             select membership.*, coalesce(account.email, invitation.email) as email,
                    null::text as password, user_group.user_group,
                    coalesce(user_group.usage_permission, '') as usage_permission
             from membership
             left join account on account.id = membership.account_id
             left join invitation on invitation.customer_id = membership.customer_id
                                 and invitation.user_id = membership.id
             left join (select *, {group} as user_group from user_group) user_group
                    on user_group.customer_id = membership.customer_id
                   and user_group.id = membership.user_group_id
         ) member
         {rest}"
    )))
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: UserId,
) -> Result<User, Fault> {
    select("where customer_id = $1 and id = $2")
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
        "where customer_id = $1 and user_group_id = $2 and id < $3
           and ($4::text is null or display_name ilike $4 or email ilike $4)
         order by id desc
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

/// Locks a user. Tokens are issued meanwhile; those that must end are revoked.
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

/// Writes the fields of a locked user, except for the email address of the account.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserId,
    group: UserGroupId,
    user: &UserInput,
) -> Result<(), Fault> {
    let assignments = UserInput::assignments(4);
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update membership set user_group_id = $3, {assignments}, revision = revision + 1
         where customer_id = $1 and id = $2
         returning id"
    )));
    let update = user.bind(update.bind(customer).bind(id).bind(group));
    let (_,): (UserId,) = update.fetch_one(&mut **tx).await?;
    Ok(())
}
