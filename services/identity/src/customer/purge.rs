//! Purge of deleted customers: removes their rows in the background, in short transactions. After a
//! restart it continues where it stopped.

use std::{sync::Arc, time::Duration};

use assay_proto::{AccountId, CustomerId, Fault};
use assay_runtime::{Database, Runtime, begin};
use sqlx::{AssertSqlSafe, PgPool, PgTransaction};
use tokio::{sync::Notify, time::sleep};

/// Interval of polls for customers deleted through other replicas.
const PERIOD: Duration = Duration::from_mins(1);

/// Number of rows that a transaction removes.
const BATCH: i64 = 500;

/// Tables with rows of customers, in addition to `membership`, in an order that respects foreign
/// keys.
const TABLES: [(&str, &str); 3] = [("mail", "id"), ("user_group", "id"), ("audit_entry", "id")];

/// Starts the purge, which runs after each deletion and periodically.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, deletions: Arc<Notify>) {
    let (database, stopping) = (database.clone(), runtime.stopping());
    runtime.spawn("purge", async move {
        let work = async {
            database.ready().await;
            loop {
                if let Err(fault) = purge(database.pool()).await {
                    tracing::warn!(%fault, "failed to purge deleted customers; will retry");
                }
                tokio::select! {
                    () = sleep(PERIOD) => {}
                    () = deletions.notified() => {}
                }
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

async fn purge(db: &PgPool) -> Result<(), Fault> {
    while batch(db).await? {}
    Ok(())
}

/// Removes a batch of rows of a deleted customer. Returns false if there is none, or another
/// replica purges it.
async fn batch(db: &PgPool) -> Result<bool, Fault> {
    let mut tx = begin(db).await?;
    let customer: Option<CustomerId> = sqlx::query_scalar(
        "select id from customer where deleted_at is not null and purged_at is null
         order by deleted_at limit 1 for no key update skip locked",
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(customer) = customer else { return Ok(false) };
    if !remove(&mut tx, customer).await? {
        sqlx::query("update customer set purged_at = now() where id = $1")
            .bind(customer)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// Removes a batch of rows; returns false if none is left.
async fn remove(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<bool, Fault> {
    if remove_members(tx, customer).await? {
        return Ok(true);
    }
    for (table, id) in TABLES {
        let statement = format!(
            "delete from {table}
             where {id} in (select {id} from {table} where customer_id = $1 limit $2)
               and customer_id = $1"
        );
        let removed = sqlx::query(AssertSqlSafe(statement))
            .bind(customer)
            .bind(BATCH)
            .execute(&mut **tx)
            .await?;
        if removed.rows_affected() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes a batch of memberships with their API tokens, settings, invitations and links, and
/// accounts without another membership.
async fn remove_members(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<bool, Fault> {
    let removed: Vec<Option<AccountId>> = sqlx::query_scalar(
        "delete from membership
         where customer_id = $1
           and id in (select id from membership where customer_id = $1 order by id limit $2)
         returning account_id",
    )
    .bind(customer)
    .bind(BATCH)
    .fetch_all(&mut **tx)
    .await?;
    let accounts: Vec<AccountId> = removed.iter().copied().flatten().collect();
    // The lock prevents new memberships of these accounts.
    sqlx::query("select from account where id = any($1) order by id for update")
        .bind(&accounts)
        .execute(&mut **tx)
        .await?;
    sqlx::query(
        "delete from account
         where id = any($1) and not exists (select from membership where account_id = account.id)",
    )
    .bind(&accounts)
    .execute(&mut **tx)
    .await?;
    Ok(!removed.is_empty())
}
