//! The audit log in PostgreSQL.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use assay_auth::actor;
use assay_events::{Event, EventType, is_audited, publish};
use assay_proto::{
    AccountId, ActorKind, AuditEntryId, CustomerId, Fault, Timestamp, UserId,
    events::AuditRecorded, identity::AuditEntry,
};
use assay_rpc::{
    history::{self, SCANNED},
    list::{Rows, Slice},
};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

use super::entry::{Actor, Entry};

/// The entries to list.
#[derive(Clone)]
pub(super) struct Filter {
    pub(super) from: Option<Timestamp>,
    pub(super) to: Option<Timestamp>,
    pub(super) user: Option<UserId>,
    pub(super) action: Option<String>,
}

impl Filter {
    fn is_none(&self) -> bool {
        let Self { from, to, user, action } = self;
        from.is_none() && to.is_none() && user.is_none() && action.is_none()
    }
}

/// Lists a slice of a customer's entries, newest first. Filters examine the entries in short steps.
pub(super) async fn list(
    db: &PgPool,
    customer: CustomerId,
    filter: &Filter,
    slice: &Slice,
) -> Result<Rows<AuditEntry>, Fault> {
    let bound = move |before: Uuid| async move {
        if filter.is_none() && slice.pattern.is_none() {
            return Ok(None);
        }
        let bound = sqlx::query_scalar(
            "select id from audit_entry where customer_id = $1 and id < $2
             order by id desc offset $3 limit 1",
        );
        let bound = bound.bind(customer).bind(before).bind(SCANNED - 1);
        Ok(bound.fetch_optional(db).await?)
    };
    let find = move |from: Uuid, before: Uuid, limit: i64| async move {
        let columns = AuditEntry::COLUMNS;
        let entries = sqlx::query_as(AssertSqlSafe(format!(
            "select {columns} from audit_entry
             where customer_id = $1 and id >= $2 and id < $3
               and ($4::timestamptz is null or time >= $4)
               and ($5::timestamptz is null or time < $5)
               and ($6::uuid is null or user_id = $6) and ($7::text is null or action = $7)
               and ($8::text is null or action ilike $8 or user_email ilike $8)
             order by id desc
             limit $9"
        )));
        let entries = entries.bind(customer).bind(from).bind(before);
        let entries = entries.bind(filter.from).bind(filter.to).bind(filter.user);
        let entries = entries.bind(&filter.action).bind(&slice.pattern).bind(limit);
        slice.read(entries.fetch(db)).await
    };
    history::search(slice, bound, find).await
}

pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    actor: &Actor,
    entry: &Entry,
) -> Result<(), Fault> {
    let (target, target_id) = entry.target.clone().unzip();
    let id = AuditEntryId::new();
    let name: Option<String> = sqlx::query_scalar(
        "insert into audit_entry
            (id, customer_id, user_id, user_email, address, action, target, target_id, details)
         values ($1, $2, $3,
                 (select account.email
                  from membership join account on account.id = membership.account_id
                  where membership.id = $3),
                 $4, $5, $6, $7, $8)
         returning (select display_name from membership where id = $3)",
    )
    .bind(id)
    .bind(actor.customer)
    .bind(actor.user)
    .bind(actor.address.map(|address| address.to_string()))
    .bind(&entry.action)
    .bind(target)
    .bind(target_id)
    .bind(&entry.details)
    .fetch_one(&mut **tx)
    .await?;
    publish_entry(tx, actor, id, entry, name.unwrap_or_default()).await
}

/// Publishes an entry, unless its action has an event of a record. The event has no details and no address.
async fn publish_entry(
    tx: &mut PgTransaction<'_>,
    actor: &Actor,
    id: AuditEntryId,
    entry: &Entry,
    name: String,
) -> Result<(), Fault> {
    if !is_audited(&entry.action) {
        return Ok(());
    }
    let user_id = Some(actor.user.to_string());
    let caller = actor::current();
    let user = || assay_proto::Actor {
        kind: ActorKind::User.into(),
        user_id: user_id.clone(),
        name,
        token_id: None,
    };
    let performed_by = if caller.user_id == user_id { caller } else { user() };
    let (target, target_id) = entry.target.clone().unzip();
    let recorded = AuditRecorded {
        id: id.to_string(),
        action: entry.action.clone(),
        target,
        target_id,
        actor: Some(performed_by),
    };
    publish(tx, &Event::new(actor.customer, id, EventType::Audited, &recorded)?).await
}

/// Records an action on an account in all of its customers.
pub(crate) async fn record_of_account(
    tx: &mut PgTransaction<'_>,
    account: AccountId,
    address: Option<IpAddr>,
    action: &str,
) -> Result<(), Fault> {
    let users: Vec<(CustomerId, UserId)> =
        sqlx::query_as("select customer_id, id from membership where account_id = $1")
            .bind(account)
            .fetch_all(&mut **tx)
            .await?;
    for (customer, user) in users {
        let actor = Actor { customer, user, address };
        insert(tx, &actor, &Entry::new(action).target("User", user)).await?;
    }
    Ok(())
}

/// Records a rejected login in the customer whose host it was sent to, and in the customer that the
/// account has used last. The entry for the former does not depend on other customers of the
/// account. The statement takes as long for an unknown account.
pub(crate) async fn record_refused_login(
    db: impl PgExecutor<'_>,
    email: &str,
    subdomain: Option<&str>,
    address: Option<IpAddr>,
    reason: &'static str,
) -> Result<(), Fault> {
    sqlx::query(
        "with named as (
            select id from customer where subdomain = $4 and deleted_at is null
         ), used as (
            select membership.customer_id, membership.id as user_id
            from membership join account on account.id = membership.account_id
            where lower(account.email) = lower($3)
            order by membership.customer_id = (select id from named) desc nulls last,
                     membership.last_used_at desc nulls last, membership.created_at
            limit 1
         ), concerned as (
            select customer_id, user_id, $1::uuid as id from used
            union all
            select (select id from named), null, $2::uuid
            where not exists (select from used where customer_id = (select id from named))
              and (exists (select from named) or not exists (select from used))
         )
         insert into audit_entry
            (id, customer_id, user_id, user_email, address, action, details)
         select id, customer_id, user_id, nullif($3, ''), $5, 'LoginRefused', $6 from concerned",
    )
    .bind(AuditEntryId::new())
    .bind(AuditEntryId::new())
    .bind(email)
    .bind(subdomain)
    .bind(address.map(|address| address.to_string()))
    .bind(reason)
    .execute(db)
    .await?;
    Ok(())
}

/// Number of entries that a statement deletes.
const BATCH: i64 = 2000;

/// Deletes a batch of entries that are older than `retention`; returns false if none is left. Ids
/// begin with the time, so that the primary key finds the oldest entries.
pub(crate) async fn prune(db: impl PgExecutor<'_>, retention: Duration) -> Result<bool, Fault> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let oldest = since_1970.saturating_sub(retention).as_millis() << 80;
    let removed = sqlx::query(
        "delete from audit_entry
         where id in (select id from audit_entry where id < $1 order by id limit $2)",
    )
    .bind(Uuid::from_u128(oldest))
    .bind(BATCH)
    .execute(db)
    .await?;
    Ok(removed.rows_affected() > 0)
}
