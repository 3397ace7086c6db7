//! The audit record in PostgreSQL.

use std::net::IpAddr;

use assay_proto::{AuditEntryId, CustomerId, Fault, Timestamp, UserId, identity::AuditEntry};
use assay_runtime::list::{Rows, Slice};
use sqlx::{PgExecutor, PgTransaction};

use super::{Actor, Entry};

/// Which entries to list.
#[derive(Clone)]
pub(super) struct Filter {
    pub(super) from: Option<Timestamp>,
    pub(super) to: Option<Timestamp>,
    pub(super) user: Option<UserId>,
    pub(super) action: Option<String>,
}

/// Lists a slice of a customer's entries, newest first.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    filter: &Filter,
    slice: &Slice,
) -> Result<Rows<AuditEntry>, Fault> {
    let entries = sqlx::query_as(
        "select id, time, action, user_id, user_email, target, target_id, address, details
         from audit_entry
         where customer_id = $1 and id < $2
           and ($3::timestamptz is null or time >= $3) and ($4::timestamptz is null or time < $4)
           and ($5::uuid is null or user_id = $5) and ($6::text is null or action = $6)
           and ($7::text is null or action ilike $7 or user_email ilike $7)
         order by id desc
         limit $8",
    )
    .bind(customer)
    .bind(slice.before()?)
    .bind(filter.from)
    .bind(filter.to)
    .bind(filter.user)
    .bind(&filter.action)
    .bind(&slice.pattern)
    .bind(slice.limit).fetch(db);
    slice.read(entries).await
}

pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    actor: &Actor,
    entry: &Entry,
) -> Result<(), Fault> {
    let (target, target_id) = entry.target.clone().unzip();
    sqlx::query(
        "insert into audit_entry
            (id, customer_id, user_id, user_email, address, action, target, target_id, details)
         values ($1, $2, $3, (select email from account where id = $3), $4, $5, $6, $7, $8)",
    )
    .bind(AuditEntryId::new())
    .bind(actor.customer)
    .bind(actor.user)
    .bind(actor.address.map(|address| address.to_string()))
    .bind(&entry.action)
    .bind(target)
    .bind(target_id)
    .bind(&entry.details)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Writes down what happened to an account, in each of its customers.
pub(crate) async fn record_of_account(
    tx: &mut PgTransaction<'_>,
    account: UserId,
    address: Option<IpAddr>,
    action: &str,
) -> Result<(), Fault> {
    let customers: Vec<CustomerId> =
        sqlx::query_scalar("select customer_id from membership where account_id = $1")
            .bind(account)
            .fetch_all(&mut **tx)
            .await?;
    for customer in customers {
        let actor = Actor { customer, user: account, address };
        insert(tx, &actor, &Entry::new(action).of("User", account)).await?;
    }
    Ok(())
}

/// Writes down that a login was refused: in the customer that it was for, so far as that can be
/// told. It takes as long for an account that there is as for one that there is not.
pub(crate) async fn record_refused_login(
    db: impl PgExecutor<'_>,
    email: &str,
    subdomain: Option<&str>,
    address: Option<IpAddr>,
    reason: &'static str,
) -> Result<(), Fault> {
    sqlx::query(
        "with named as (
            select id from customer where subdomain = $3 and deleted_at is null
         ), used as (
            select membership.customer_id, membership.account_id
            from membership join account on account.id = membership.account_id
            where lower(account.email) = lower($2)
            order by membership.customer_id = (select id from named) desc nulls last,
                     membership.last_used_at desc nulls last, membership.created_at
            limit 1
         )
         insert into audit_entry
            (id, customer_id, user_id, user_email, address, action, details)
         values ($1, coalesce((select customer_id from used), (select id from named)),
                 (select account_id from used), nullif($2, ''), $4, 'LoginRefused', $5)",
    )
    .bind(AuditEntryId::new())
    .bind(email)
    .bind(subdomain)
    .bind(address.map(|address| address.to_string()))
    .bind(reason)
    .execute(db)
    .await?;
    Ok(())
}
