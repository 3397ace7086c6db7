//! Purge of deleted customers: removes their rows in the background, in short transactions. After a
//! restart it continues where it stopped.

use std::{sync::Arc, time::Duration};

use assay_database::{Database, begin, exclusively};
use assay_proto::{AccountId, CustomerId, Fault};
use assay_runtime::Runtime;
use assay_work::{Attempt, Patience, Queue, Work};
use sqlx::{AssertSqlSafe, PgPool, PgTransaction};
use tokio::{sync::Notify, time::sleep};

/// Interval of polls for customers deleted through other replicas.
const PERIOD: Duration = Duration::from_mins(1);

/// Number of rows that a transaction removes.
const BATCH: i64 = 500;

/// Removing the rows of a deleted customer. If it is dropped, the rest of them stays.
pub(crate) const PURGE: Work = Work {
    kind: "purge",
    queue: Queue::Unfinished {
        patience: Patience::of_purges(Duration::from_secs(10)),
        pending: "exists (select from customer c where c.id = w.id and c.purged_at is null)",
        drop: "update customer set purged_at = now()
               where id = any($2) and $1::uuid[] is not null",
    },
};

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

/// Purges all deleted customers, unless another replica is doing so. A failure of one does not delay
/// the others.
async fn purge(db: &PgPool) -> Result<(), Fault> {
    if next(db).await?.is_none() {
        return Ok(());
    }
    exclusively(db, "assay purge", purge_all(db)).await.map(|_| ())
}

async fn purge_all(db: &PgPool) -> Result<(), Fault> {
    while let Some(customer) = next(db).await? {
        let Some(attempt) = PURGE.begin(db, customer, customer.0).await? else { continue };
        match purge_customer(db, customer, &attempt).await {
            Ok(()) => attempt.done(db).await?,
            Err(fault) => attempt.failed(db, &fault).await?,
        }
    }
    Ok(())
}

/// Returns the first customer that is to be purged now.
async fn next(db: &PgPool) -> Result<Option<CustomerId>, Fault> {
    let next = format!(
        "select id from customer
         where deleted_at is not null and purged_at is null and {}
         order by deleted_at limit 1",
        PURGE.is_due("customer.id", "customer.id")
    );
    Ok(sqlx::query_scalar(AssertSqlSafe(next)).fetch_optional(db).await?)
}

/// Removes the rows of a deleted customer, batch by batch.
async fn purge_customer(db: &PgPool, customer: CustomerId, attempt: &Attempt) -> Result<(), Fault> {
    loop {
        let mut tx = begin(db).await?;
        let is_more = remove(&mut tx, customer).await?;
        if !is_more {
            let purged = sqlx::query("update customer set purged_at = now() where id = $1");
            purged.bind(customer).execute(&mut *tx).await?;
        }
        attempt.progressed(&mut *tx).await?;
        tx.commit().await?;
        if !is_more {
            return Ok(());
        }
    }
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
