//! The list of the memberships of an account and of the invitations to its address, in PostgreSQL.

use assay_auth::Caller;
use assay_proto::{AccountId, Fault, UserId, identity::Membership};
use assay_rpc::list::Slice;
use sqlx::{AssertSqlSafe, PgExecutor};

/// The memberships of the account `$1` and the invitations to its address, of customers that are
/// neither archived nor deleted. `$2` and `$3` are the customer and the user of the caller.
///
/// An invitation may be for the membership of another account whose address is about to change:
/// the group and the last use of that membership stay hidden.
const MEMBER: &str = "
    with member as (
        select membership.id, membership.customer_id, customer.name as customer_name,
               customer.subdomain, membership.display_name,
               coalesce(user_group.usage_permission, '') as usage_permission,
               membership.account_id is distinct from $1 as pending,
               case when membership.account_id = $1 then user_group.name end as user_group_name,
               (membership.customer_id = $2 and membership.id = $3) as current,
               case when membership.account_id = $1 then membership.last_used_at end
                   as last_used_at
        from membership
        join customer on customer.id = membership.customer_id
        left join user_group on user_group.customer_id = membership.customer_id
                            and user_group.id = membership.user_group_id
        where not customer.archived and customer.deleted_at is null
          and not membership.archived
          and membership.id in (
              select id from membership where account_id = $1
              union
              select user_id from invitation
              where lower(email) = (select lower(email) from account where id = $1)))";

/// Lists a slice of the memberships of the caller's account and of the invitations to its address,
/// by the name of the customer. A caller with an API token gets the membership of the token only.
pub(crate) async fn list(
    db: impl PgExecutor<'_> + Copy,
    caller: &Caller,
    account: AccountId,
    slice: &Slice,
) -> Result<Vec<Membership>, Fault> {
    let after = match &slice.after {
        Some(cursor) => {
            let id = UserId::from_field("cursor", cursor)?;
            Some((customer_name(db, caller, account, id).await?, id))
        }
        None => None,
    };
    let (name, id) = after.unzip();
    let columns = Membership::COLUMNS;
    let memberships = sqlx::query_as(AssertSqlSafe(format!(
        "{MEMBER}
         select {columns} from member
         where (current or not $4)
           and ($5::text is null or (lower(customer_name), id) > (lower($5), $6))
           and ($7::text is null or customer_name ilike $7)
         order by lower(customer_name), id
         limit $8"
    )));
    let memberships = memberships.bind(account).bind(caller.customer).bind(caller.user);
    let memberships = memberships.bind(caller.api_token.is_some()).bind(name).bind(id);
    Ok(memberships.bind(&slice.pattern).bind(slice.limit).fetch_all(db).await?)
}

/// Returns the name of the customer of the membership that a cursor names.
async fn customer_name(
    db: impl PgExecutor<'_>,
    caller: &Caller,
    account: AccountId,
    cursor: UserId,
) -> Result<String, Fault> {
    let name = sqlx::query_scalar(AssertSqlSafe(format!(
        "{MEMBER} select customer_name from member where id = $4"
    )));
    let name = name.bind(account).bind(caller.customer).bind(caller.user).bind(cursor);
    let ended = || Fault::invalid("cursor", "names a membership that has ended");
    name.fetch_optional(db).await?.ok_or_else(ended)
}
