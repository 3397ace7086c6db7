//! Work that one replica does at a time, a piece after the other, in turns of customers.

use assay_database::exclusively;
use assay_proto::{CustomerId, Fault};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use crate::{Attempt, Work};

/// Maximum number of pieces of a customer, and of all, that are read at once.
const OF_CUSTOMER: i64 = 10;
const OF_ALL: i64 = 100;

/// A table with a row for each piece of work that is still to be done.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The table, which has a column `customer_id`.
    pub table: &'static str,
    /// The column with the id of the work, a `uuid`. Smaller ones come first.
    pub id: &'static str,
    /// A condition of the rows whose work may begin, such as `true`.
    pub condition: &'static str,
}

impl Work {
    /// Does all work that is due, unless another replica is doing so. `due` returns it in its order. `each` does
    /// a piece, and notes with the attempt that it is done. A piece that fails is attempted again later, and
    /// does not affect the others.
    pub async fn do_all<D, E>(
        &self,
        db: &PgPool,
        due: impl Fn(PgPool) -> D,
        each: impl Fn(PgPool, CustomerId, Uuid, Attempt) -> E,
    ) -> Result<(), Fault>
    where
        D: Future<Output = Result<Vec<(CustomerId, Uuid)>, Fault>>,
        E: Future<Output = Result<(), Fault>>,
    {
        if due(db.clone()).await?.is_empty() {
            return Ok(());
        }
        let all = async {
            loop {
                let pieces = due(db.clone()).await?;
                if pieces.is_empty() {
                    return Ok(());
                }
                for (customer, id) in pieces {
                    let Some(attempt) = self.begin(db, customer, id).await? else { continue };
                    let piece = Box::pin(each(db.clone(), customer, id, attempt.clone()));
                    if let Err(fault) = piece.await {
                        attempt.failed(db, &fault).await?;
                    }
                }
            }
        };
        exclusively(db, &format!("assay {}", self.kind), all).await.map(|_| ())
    }

    /// Returns the work in a table that is due, in turns: the first piece of each customer comes before the
    /// second one of any.
    pub async fn due_of(
        &self,
        db: &PgPool,
        waiting: Waiting,
    ) -> Result<Vec<(CustomerId, Uuid)>, Fault> {
        let Waiting { table, id, condition } = waiting;
        let is_due = self.is_due("waiting.customer_id", &format!("waiting.{id}"));
        let due = sqlx::query_as(AssertSqlSafe(format!(
            "select customer_id, id from (
                 select customer_id, {id} as id,
                        row_number() over (partition by customer_id order by {id}) as turn
                 from {table} as waiting
                 where {condition} and {is_due}
             ) as queued
             where turn <= $1
             order by turn, customer_id
             limit $2"
        )));
        Ok(due.bind(OF_CUSTOMER).bind(OF_ALL).fetch_all(db).await?)
    }
}
