//! The dead letters of one kind of work in PostgreSQL. They are those of all customers.

use assay_proto::{CustomerId, Fault, Timestamp};
use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor, PgPool, Row as _};
use uuid::Uuid;

use crate::{Queue, Work};

/// Work that was given up.
#[derive(Clone, Debug, FromRow)]
pub struct DeadLetter {
    /// The id among the dead letters of its kind.
    pub id: String,
    pub customer_id: CustomerId,
    /// The record that the work is done for, if the id does not say so.
    pub about: Option<String>,
    /// Number of attempts.
    pub attempts: i32,
    pub reason: Option<String>,
    pub given_up_at: Timestamp,
}

/// The dead letters that are counted in `unfinished_work`.
const UNFINISHED: &str = "select kind, customer_id || '.' || id as id, customer_id, null as about,
                                 failures as attempts, reason, given_up_at
                          from unfinished_work w where given_up_at is not null";

/// Maximum count of dead letters of a kind.
const COUNTED: i64 = 10_000;

impl Work {
    /// Returns a query of the dead letters. It is bound to the kind.
    fn given_up(&self) -> String {
        match self.queue {
            Queue::Unfinished { .. } => {
                format!("select * from ({UNFINISHED}) as w where kind = $1")
            }
            Queue::Own { given_up, .. } => {
                format!("select * from ({given_up}) as own where $1::text is not null")
            }
        }
    }

    /// Calls `show` with each dead letter, oldest first; only with those of a customer, if there is one.
    /// Returns their number.
    pub async fn list(
        &self,
        db: &PgPool,
        customer: Option<CustomerId>,
        mut show: impl FnMut(DeadLetter),
    ) -> Result<u64, Fault> {
        let list = format!(
            "select * from ({}) as letter where $2::uuid is null or customer_id = $2
             order by given_up_at, id",
            self.given_up()
        );
        let list = sqlx::query_as(AssertSqlSafe(list)).bind(self.kind).bind(customer);
        let (mut letters, mut count) = (list.fetch(db), 0);
        while let Some(letter) = letters.try_next().await? {
            show(letter);
            count += 1;
        }
        Ok(count)
    }

    /// Counts the dead letters, up to 10,000.
    pub(crate) async fn count(&self, db: &PgPool) -> Result<i64, Fault> {
        let count = format!("select count(*) from ({} limit {COUNTED}) as letter", self.given_up());
        let count = sqlx::query_scalar(AssertSqlSafe(count)).bind(self.kind);
        Ok(count.fetch_one(db).await?)
    }

    /// Returns those of the ids that are not ids of dead letters.
    pub(crate) async fn missing(
        &self,
        db: impl PgExecutor<'_>,
        ids: &[String],
    ) -> Result<Vec<String>, Fault> {
        let missing = format!(
            "select wanted from unnest($2::text[]) as wanted
             where wanted not in (select letter.id from ({}) as letter where letter.id = any($2))",
            self.given_up()
        );
        let missing = sqlx::query_scalar(AssertSqlSafe(missing)).bind(self.kind);
        Ok(missing.bind(ids).fetch_all(db).await?)
    }

    /// Has dead letters with these ids, or all, attempted again. Returns their number.
    pub async fn retry(&self, tx: &mut PgConnection, ids: Option<&[String]>) -> Result<u64, Fault> {
        let Queue::Own { retry, .. } = self.queue else {
            let retry = "update unfinished_work
                         set given_up_at = null, taken = 0, failures = 0, begun_at = now()
                         where given_up_at is not null and kind = $2
                           and ($1::text[] is null or customer_id || '.' || id = any($1))";
            let retried = sqlx::query(retry).bind(ids).bind(self.kind).execute(tx).await?;
            return Ok(retried.rows_affected());
        };
        Ok(sqlx::query(retry).bind(ids).execute(tx).await?.rows_affected())
    }

    /// Drops dead letters with these ids, or all. Returns their number.
    pub async fn drop(&self, tx: &mut PgConnection, ids: Option<&[String]>) -> Result<u64, Fault> {
        let drop = match self.queue {
            Queue::Own { drop, .. } => {
                return Ok(sqlx::query(drop).bind(ids).execute(tx).await?.rows_affected());
            }
            Queue::Unfinished { drop, .. } => drop,
        };
        let dropped = "delete from unfinished_work
                       where given_up_at is not null and kind = $2
                         and ($1::text[] is null or customer_id || '.' || id = any($1))
                       returning customer_id, id";
        let dropped = sqlx::query(dropped).bind(ids).bind(self.kind).fetch_all(&mut *tx).await?;
        if !drop.is_empty() {
            let column = |name| dropped.iter().map(|row| row.get::<Uuid, _>(name)).collect();
            let [customers, ids]: [Vec<Uuid>; 2] = ["customer_id", "id"].map(column);
            sqlx::query(drop).bind(customers).bind(ids).execute(tx).await?;
        }
        Ok(dropped.len() as u64)
    }

    /// Removes the records of work that need not be done any more, for instance because its customer was
    /// deleted.
    pub(crate) async fn forget_settled(&self, db: &PgPool) -> Result<(), Fault> {
        if let Queue::Unfinished { pending, .. } = self.queue {
            let forget =
                format!("delete from unfinished_work w where kind = $1 and not ({pending})");
            sqlx::query(AssertSqlSafe(forget)).bind(self.kind).execute(db).await?;
        }
        Ok(())
    }
}
