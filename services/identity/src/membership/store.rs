//! Memberships in PostgreSQL.

use assay_proto::{CustomerId, Fault, OnConstraint, UserGroupId, UserId};
use sqlx::{PgExecutor, PgTransaction};

use super::Membership;

/// The memberships that an account can use, the last used first, then the oldest. Those that are
/// archived, or whose customer is archived or deleted, are none of them.
pub(crate) async fn of_account(
    db: impl PgExecutor<'_>,
    account: UserId,
) -> Result<Vec<Membership>, Fault> {
    let memberships = sqlx::query_as(
        "select membership.customer_id, customer.subdomain, membership.display_name,
                user_group.usage_permission
         from membership
         join customer on customer.id = membership.customer_id
         join user_group on user_group.customer_id = membership.customer_id
                        and user_group.id = membership.user_group_id
         where membership.account_id = $1 and not membership.archived
           and not customer.archived and customer.deleted_at is null
         order by membership.last_used_at desc nulls last, membership.created_at, customer.id",
    )
    .bind(account)
    .fetch_all(db)
    .await?;
    Ok(memberships)
}

/// The membership of an account, if it can use it.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    account: UserId,
) -> Result<Option<Membership>, Fault> {
    let memberships = of_account(db, account).await?;
    Ok(memberships.into_iter().find(|one| one.customer_id == customer))
}

pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    account: UserId,
    group: UserGroupId,
    display_name: &str,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into membership (customer_id, account_id, user_group_id, display_name)
         values ($1, $2, $3, $4)",
    )
    .bind(customer)
    .bind(account)
    .bind(group)
    .bind(display_name)
    .execute(&mut **tx)
    .await
    .on_constraint("membership_pkey", Fault::AlreadyExists("user"))?;
    Ok(())
}

/// Records that the account has logged in.
pub(crate) async fn record_login(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    account: UserId,
) -> Result<(), Fault> {
    sqlx::query(
        "update membership
         set previous_login = last_login, last_login = now(), last_used_at = now()
         where customer_id = $1 and account_id = $2",
    )
    .bind(customer)
    .bind(account)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Records that the account works for the customer now.
pub(crate) async fn record_use(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    account: UserId,
) -> Result<(), Fault> {
    sqlx::query(
        "update membership set last_used_at = now() where customer_id = $1 and account_id = $2",
    )
    .bind(customer)
    .bind(account)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Whether somebody can manage the customer's users.
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
              and string_to_array(user_group.usage_permission, ', ')
                  @> array['Login', 'UserManagement'])",
    );
    Ok(managed.bind(customer).fetch_one(db).await?)
}

/// Fails if somebody could manage the customer's users, and after this transaction nobody can. The
/// customer has to be locked.
pub(crate) async fn keep_manager(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    managed: bool,
) -> Result<(), Fault> {
    if managed && !has_manager(&mut **tx, customer).await? {
        return Err(Fault::Conflict {
            code: "last_user_management",
            reason: "nobody would be left who can manage the customer's users".to_owned(),
        });
    }
    Ok(())
}

/// How many customers the account belongs to, among those that are not deleted.
pub(crate) async fn count(db: impl PgExecutor<'_>, account: UserId) -> Result<i64, Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from membership join customer on customer.id = membership.customer_id
         where membership.account_id = $1 and customer.deleted_at is null",
    );
    Ok(count.bind(account).fetch_one(db).await?)
}

pub(crate) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    account: UserId,
) -> Result<(), Fault> {
    sqlx::query("delete from membership where customer_id = $1 and account_id = $2")
        .bind(customer)
        .bind(account)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Removes all memberships of a locked customer, and the accounts that have no other one.
pub(crate) async fn delete_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    // Locked first, so that nobody else removes an account, or adds to its memberships, meanwhile.
    let accounts: Vec<UserId> = sqlx::query_scalar(
        "select id from account
         where id in (select account_id from membership where customer_id = $1)
         order by id for update",
    )
    .bind(customer)
    .fetch_all(&mut **tx)
    .await?;
    sqlx::query("delete from membership where customer_id = $1")
        .bind(customer)
        .execute(&mut **tx)
        .await?;
    sqlx::query(
        "delete from account
         where id = any($1) and not exists (select from membership where account_id = account.id)",
    )
    .bind(accounts)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
