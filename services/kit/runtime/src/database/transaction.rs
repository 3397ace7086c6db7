//! The beginning of transactions.

use assay_proto::Fault;
use sqlx::{Error, PgPool, PgTransaction};
use tracing::Instrument as _;

/// Begins a transaction on a connection of the pool.
///
/// It may be cancelled at any time, as when the client of a call goes away. sqlx 0.9 returns a
/// connection whose `BEGIN` was sent and not yet answered to the pool as if it were in no
/// transaction: statements of other calls then run in one that nobody commits. So `BEGIN` is always
/// waited for, in a task of its own if need be, and then rolled back.
#[expect(clippy::disallowed_methods, reason = "the task is short, and this is what guards `begin`")]
pub async fn begin(db: &PgPool) -> Result<PgTransaction<'static>, Fault> {
    let db = db.clone();
    let begun = async move { db.begin().await };
    let begun = tokio::spawn(begun.in_current_span()).await;
    Ok(begun.map_err(|_| Error::WorkerCrashed)??)
}
