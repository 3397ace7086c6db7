//! Invitations in PostgreSQL. Those of deleted or archived customers are ignored.

use assay_proto::{AccountId, CustomerId, Fault, OnConstraint, UserGroupId, UserId};
use sqlx::{PgExecutor, PgTransaction};

/// The data for the mail of an invitation.
#[derive(sqlx::FromRow)]
pub(crate) struct Invitation {
    pub(crate) customer_id: CustomerId,
    pub(crate) user_id: UserId,
    pub(crate) email: String,
    pub(crate) customer_name: String,
}

/// A consumed invitation, which is being accepted.
#[derive(sqlx::FromRow)]
pub(crate) struct AcceptedInvitation {
    pub(crate) customer_id: CustomerId,
    pub(crate) user_id: UserId,
    pub(crate) user_group_id: Option<UserGroupId>,
    pub(crate) email: String,
    /// The user who has requested it, who may be one of another customer.
    pub(super) requested_by: Option<UserId>,
    /// Whether the user has an account, whose address is about to change.
    pub(super) is_change: bool,
    /// The permissions of the user's group.
    pub(super) usage_permission: Option<String>,
}

/// Replaces the invitation of a user. The links of the previous one are deleted.
pub(crate) async fn replace(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
    email: &str,
    requester: Option<UserId>,
) -> Result<(), Fault> {
    delete(tx, customer, user).await?;
    sqlx::query(
        "insert into invitation (customer_id, user_id, email, requested_by)
         values ($1, $2, $3, $4)",
    )
    .bind(customer)
    .bind(user)
    .bind(email)
    .bind(requester)
    .execute(&mut **tx)
    .await
    .on_constraint("invitation_email_key", Fault::AlreadyExists("user with this email address"))?;
    Ok(())
}

/// Deletes the invitation of a user, if there is one, with its links.
pub(crate) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<(), Fault> {
    sqlx::query("delete from invitation where customer_id = $1 and user_id = $2")
        .bind(customer)
        .bind(user)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Replaces the requester of an invitation, whose links stay valid.
pub(crate) async fn set_requester(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
    requester: UserId,
) -> Result<(), Fault> {
    sqlx::query("update invitation set requested_by = $3 where customer_id = $1 and user_id = $2")
        .bind(customer)
        .bind(user)
        .bind(requester)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Fails if the customer has a user or an invitation with that address.
pub(crate) async fn check_available(
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
        return Err(Fault::AlreadyExists("user with this email address"));
    }
    Ok(())
}

/// Returns whether a user's invitation is for that address.
pub(crate) async fn is_for(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
    email: &str,
) -> Result<bool, Fault> {
    let is_for = sqlx::query_scalar(
        "select exists (
            select from invitation
            where customer_id = $1 and user_id = $2 and lower(email) = lower($3))",
    );
    Ok(is_for.bind(customer).bind(user).bind(email).fetch_one(db).await?)
}

const SELECT: &str = "select invitation.customer_id, invitation.user_id, invitation.email,
        customer.name as customer_name
     from invitation join customer on customer.id = invitation.customer_id
     where customer.deleted_at is null and not customer.archived";

/// Finds the invitation of a user.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<Option<Invitation>, Fault> {
    let statement = format!("{SELECT} and invitation.customer_id = $1 and invitation.user_id = $2");
    let invitation = sqlx::query_as(sqlx::AssertSqlSafe(statement));
    Ok(invitation.bind(customer).bind(user).fetch_optional(db).await?)
}

/// Finds the latest invitation of a mailbox.
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

/// Locks a membership, and deletes and returns its invitation. Of several concurrent calls, one succeeds.
pub(super) async fn consume(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<Option<AcceptedInvitation>, Fault> {
    let locked = sqlx::query(
        "select from membership join customer on customer.id = membership.customer_id
         where membership.customer_id = $1 and membership.id = $2
           and customer.deleted_at is null and not customer.archived
         for update of membership",
    );
    if locked.bind(customer).bind(user).fetch_optional(&mut **tx).await?.is_none() {
        return Ok(None);
    }
    let invitation = sqlx::query_as(
        "delete from invitation
         using membership
         left join user_group on user_group.customer_id = membership.customer_id
                             and user_group.id = membership.user_group_id
         where invitation.customer_id = $1 and invitation.user_id = $2
           and membership.customer_id = $1 and membership.id = $2
         returning invitation.customer_id, invitation.user_id, membership.user_group_id,
                   invitation.email, invitation.requested_by,
                   membership.account_id is not null as is_change, user_group.usage_permission",
    );
    Ok(invitation.bind(customer).bind(user).fetch_optional(&mut **tx).await?)
}

/// Returns the customer of the invitation with that id to the address of an account.
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

/// Deletes expired invitations of users who have an account; they keep their address.
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
