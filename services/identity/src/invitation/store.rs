//! Invitations in PostgreSQL. What a deleted customer has left behind counts as gone.

use assay_proto::{AccountId, CustomerId, Fault, OnConstraint, UserGroupId, UserId};
use sqlx::{PgExecutor, PgTransaction};

/// An invitation as its mail needs it.
#[derive(sqlx::FromRow)]
pub(crate) struct Invitation {
    pub(crate) customer_id: CustomerId,
    pub(crate) user_id: UserId,
    pub(crate) email: String,
    /// The customer's.
    pub(crate) name: String,
}

/// An invitation that is being accepted.
#[derive(sqlx::FromRow)]
pub(crate) struct Taken {
    pub(crate) customer_id: CustomerId,
    pub(crate) user_id: UserId,
    pub(crate) user_group_id: Option<UserGroupId>,
    pub(crate) email: String,
}

/// Invites a mailbox in place of the one that was invited before, whose links die.
pub(crate) async fn put(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
    email: &str,
) -> Result<(), Fault> {
    sqlx::query("delete from invitation where customer_id = $1 and user_id = $2")
        .bind(customer)
        .bind(user)
        .execute(&mut **tx)
        .await?;
    sqlx::query("insert into invitation (customer_id, user_id, email) values ($1, $2, $3)")
        .bind(customer)
        .bind(user)
        .bind(email)
        .execute(&mut **tx)
        .await
        .on_constraint("invitation_email_key", Fault::AlreadyExists("user"))?;
    Ok(())
}

/// Fails if the customer has a user with that address already, or has invited it. What the address
/// is elsewhere makes no difference.
pub(crate) async fn refuse_taken(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    email: &str,
) -> Result<(), Fault> {
    let taken = sqlx::query_scalar(
        "select exists (
            select from membership join account on account.id = membership.account_id
            where membership.customer_id = $1 and lower(account.email) = lower($2))
         or exists (
            select from invitation where customer_id = $1 and lower(email) = lower($2))",
    );
    if taken.bind(customer).bind(email).fetch_one(db).await? {
        return Err(Fault::AlreadyExists("user"));
    }
    Ok(())
}

/// Whether a user's invitation is to that mailbox already.
pub(crate) async fn invites(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
    email: &str,
) -> Result<bool, Fault> {
    let invites = sqlx::query_scalar(
        "select exists (
            select from invitation
            where customer_id = $1 and user_id = $2 and lower(email) = lower($3))",
    );
    Ok(invites.bind(customer).bind(user).bind(email).fetch_one(db).await?)
}

const SELECT: &str = "select invitation.customer_id, invitation.user_id, invitation.email,
        customer.name
     from invitation join customer on customer.id = invitation.customer_id
     where customer.deleted_at is null and not customer.archived";

/// The invitation of a user.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<Option<Invitation>, Fault> {
    let statement = format!("{SELECT} and invitation.customer_id = $1 and invitation.user_id = $2");
    let invitation = sqlx::query_as(sqlx::AssertSqlSafe(statement));
    Ok(invitation.bind(customer).bind(user).fetch_optional(db).await?)
}

/// The latest invitation of a mailbox.
pub(crate) async fn latest(
    db: impl PgExecutor<'_>,
    email: &str,
) -> Result<Option<Invitation>, Fault> {
    let statement = format!(
        "{SELECT} and lower(invitation.email) = lower($1)
         order by invitation.created_at desc, invitation.user_id desc limit 1"
    );
    let invitation = sqlx::query_as(sqlx::AssertSqlSafe(statement));
    Ok(invitation.bind(email).fetch_optional(db).await?)
}

/// Uses an invitation up, and keeps others from changing its membership. Of several who try, one
/// finds it.
pub(crate) async fn take(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<Option<Taken>, Fault> {
    let taken: Option<Taken> = sqlx::query_as(
        "select membership.customer_id, membership.id as user_id, membership.user_group_id,
                invitation.email
         from membership
         join invitation on invitation.customer_id = membership.customer_id
                        and invitation.user_id = membership.id
         join customer on customer.id = membership.customer_id
         where membership.customer_id = $1 and membership.id = $2
           and customer.deleted_at is null and not customer.archived
         for update of membership",
    )
    .bind(customer)
    .bind(user)
    .fetch_optional(&mut **tx)
    .await?;
    let deleted = sqlx::query("delete from invitation where customer_id = $1 and user_id = $2")
        .bind(customer)
        .bind(user)
        .execute(&mut **tx)
        .await?;
    Ok(taken.filter(|_| deleted.rows_affected() == 1))
}

/// The invitation with that id to the address of an account.
pub(crate) async fn of_account(
    db: impl PgExecutor<'_>,
    account: AccountId,
    user: UserId,
) -> Result<Option<CustomerId>, Fault> {
    let customer = sqlx::query_scalar(
        "select customer_id from invitation
         where user_id = $2 and lower(email) = (select lower(email) from account where id = $1)",
    );
    Ok(customer.bind(account).bind(user).fetch_optional(db).await?)
}

/// Removes invitations to another mailbox that nobody has accepted; users keep their old address.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query(
        "delete from invitation using membership
         where membership.customer_id = invitation.customer_id
           and membership.id = invitation.user_id and membership.account_id is not null
           and invitation.created_at < now() - interval '8 days'",
    )
    .execute(db)
    .await?;
    Ok(())
}
