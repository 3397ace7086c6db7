//! Memberships in PostgreSQL.

use assay_proto::{
    AccountId, CustomerId, Fault, InputColumns, OnConstraint, UserGroupId, UserId,
    identity::UserInput,
};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments, query::QueryAs,
};

use super::Membership;

/// Selects usable memberships: neither they nor their customers are archived or deleted. `rest`
/// adds conditions and the order.
fn select<T>(rest: &'static str) -> QueryAs<'static, Postgres, T, PgArguments>
where
    T: for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow>,
{
    sqlx::query_as(AssertSqlSafe(format!(
        "select membership.customer_id, membership.id, membership.account_id, customer.subdomain,
                membership.display_name, user_group.usage_permission
         from membership
         join customer on customer.id = membership.customer_id
         join user_group on user_group.customer_id = membership.customer_id
                        and user_group.id = membership.user_group_id
         where membership.account_id is not null and not membership.archived
           and not customer.archived and customer.deleted_at is null
           {rest}"
    )))
}

/// Lists the usable memberships of an account, by last use, then by age.
pub(crate) async fn of_account(
    db: impl PgExecutor<'_>,
    account: AccountId,
) -> Result<Vec<Membership>, Fault> {
    let memberships = select(
        "and membership.account_id = $1
         order by membership.last_used_at desc nulls last, membership.created_at, customer.id",
    );
    Ok(memberships.bind(account).fetch_all(db).await?)
}

/// A membership with its account.
#[derive(sqlx::FromRow)]
pub(crate) struct Owned {
    pub(crate) account_id: AccountId,
    #[sqlx(flatten)]
    pub(crate) membership: Membership,
}

/// Finds the usable membership of a user of any customer.
pub(crate) async fn of_user(db: impl PgExecutor<'_>, user: UserId) -> Result<Option<Owned>, Fault> {
    Ok(select("and membership.id = $1").bind(user).fetch_optional(db).await?)
}

/// Finds the usable membership of a user of a customer.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<Option<Membership>, Fault> {
    let membership = select("and membership.customer_id = $1 and membership.id = $2");
    Ok(membership.bind(customer).bind(user).fetch_optional(db).await?)
}

/// Adds a user, without an account until the owner of the invited mailbox accepts.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: UserId,
    account: Option<AccountId>,
    group: UserGroupId,
    user: &UserInput,
) -> Result<(), Fault> {
    let (columns, values) = (UserInput::COLUMNS, UserInput::values(5));
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into membership (customer_id, id, account_id, user_group_id, {columns})
         values ($1, $2, $3, $4, {values})
         returning id"
    )));
    let insert = user.bind(insert.bind(customer).bind(id).bind(account).bind(group));
    let (_,): (UserId,) = insert.fetch_one(&mut **tx).await?;
    Ok(())
}

/// Returns the account of a user, if the user has one.
pub(crate) async fn account(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<Option<AccountId>, Fault> {
    let account =
        sqlx::query_scalar("select account_id from membership where customer_id = $1 and id = $2");
    account.bind(customer).bind(user).fetch_optional(db).await?.ok_or(Fault::NotFound("user"))
}

/// Records a login, unless another transaction has locked the membership: see [`crate::revocation::date_token`].
pub(crate) async fn record_login(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<(), Fault> {
    sqlx::query(
        "update membership
         set previous_login = last_login, last_login = now(), last_used_at = now()
         where customer_id = $1 and id = (
             select id from membership where customer_id = $1 and id = $2
             for no key update skip locked)",
    )
    .bind(customer)
    .bind(user)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Records the use of a membership without a login, like [`record_login`].
pub(crate) async fn record_use(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<(), Fault> {
    sqlx::query(
        "update membership set last_used_at = now()
         where customer_id = $1 and id = (
             select id from membership where customer_id = $1 and id = $2
             for no key update skip locked)",
    )
    .bind(customer)
    .bind(user)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Locks the assignment of permissions to the customer's users.
pub(crate) async fn lock_managers(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    sqlx::query("select from customer where id = $1 and deleted_at is null for no key update")
        .bind(customer)
        .fetch_optional(&mut **tx)
        .await?
        .map(drop)
        .ok_or(Fault::NotFound("customer"))
}

/// Returns whether the customer has a user who can log in and manage users.
pub(crate) async fn has_manager(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<bool, Fault> {
    let managed = sqlx::query_scalar(
        "select exists (
            select from membership
            join user_group on user_group.customer_id = membership.customer_id
                           and user_group.id = membership.user_group_id
            where membership.customer_id = $1 and not membership.archived
              and membership.account_id is not null
              and string_to_array(user_group.usage_permission, ', ')
                  @> array['Login', 'UserManagement'])",
    );
    Ok(managed.bind(customer).fetch_one(db).await?)
}

/// Fails if the transaction has left the customer without a user who manages users; `managed` is
/// whether it had one before. The assignment must be locked.
pub(crate) async fn require_manager(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    managed: bool,
) -> Result<(), Fault> {
    if managed && !has_manager(&mut **tx, customer).await? {
        return Err(Fault::Conflict {
            code: "last_user_management",
            reason: "the customer needs a user with the permissions Login and UserManagement; \
                     give them to another user first"
                .to_owned(),
        });
    }
    Ok(())
}

/// Counts the customers of an account, without deleted ones.
pub(crate) async fn count(db: impl PgExecutor<'_>, account: AccountId) -> Result<i64, Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from membership join customer on customer.id = membership.customer_id
         where membership.account_id = $1 and customer.deleted_at is null",
    );
    Ok(count.bind(account).fetch_one(db).await?)
}

pub(crate) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<(), Fault> {
    sqlx::query("delete from membership where customer_id = $1 and id = $2")
        .bind(customer)
        .bind(user)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Replaces the account of a membership.
pub(crate) async fn transfer(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
    account: AccountId,
) -> Result<(), Fault> {
    let already_member = Fault::Conflict {
        code: "already_member",
        reason: "the account is already a member of this customer".to_owned(),
    };
    sqlx::query(
        "update membership set account_id = $3, revision = revision + 1
         where customer_id = $1 and id = $2",
    )
    .bind(customer)
    .bind(user)
    .bind(account)
    .execute(&mut **tx)
    .await
    .on_constraint("membership_account_id_key", already_member)?;
    Ok(())
}
