//! Start of transactions.

use assay_proto::Fault;
use sqlx::{Error, PgPool, PgTransaction};
use tracing::Instrument as _;

/// Begins a transaction on a connection of the pool.
///
/// The future may be cancelled at any time, for example when the client of a call disconnects. If
/// `BEGIN` has been sent but not answered, sqlx 0.9 returns the connection to the pool as if it
/// were outside a transaction, and statements of other calls run in a transaction that is never
/// committed. A task of its own therefore waits for `BEGIN` in any case; a transaction without an
/// owner is rolled back.
#[expect(clippy::disallowed_methods, reason = "the task is short, and protects `begin`")]
pub async fn begin(db: &PgPool) -> Result<PgTransaction<'static>, Fault> {
    let db = db.clone();
    let begun = async move { db.begin().await };
    let begun = tokio::spawn(begun.in_current_span()).await;
    Ok(begun.map_err(|_| Error::WorkerCrashed)??)
}
