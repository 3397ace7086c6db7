//! Memberships in PostgreSQL.

use assay_proto::{CustomerId, Fault, UserGroupId, UserId};
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
    .await?;
    Ok(())
}

/// Records that the account has logged in. Fails if it is a member no longer.
pub(crate) async fn record_login(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    account: UserId,
) -> Result<(), Fault> {
    let done = sqlx::query(
        "update membership
         set previous_login = last_login, last_login = now(), last_used_at = now()
         where customer_id = $1 and account_id = $2",
    )
    .bind(customer)
    .bind(account)
    .execute(db)
    .await?;
    if done.rows_affected() == 0 { Err(Fault::Unauthenticated) } else { Ok(()) }
}

/// Records that the account works for the customer now.
pub(crate) async fn record_use(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    account: UserId,
) -> Result<(), Fault> {
    sqlx::query(
        "update membership set last_used_at = now() where customer_id = $1 and account_id = $2",
    )
    .bind(customer)
    .bind(account)
    .execute(db)
    .await?;
    Ok(())
}
