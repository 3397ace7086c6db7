//! Openings: the records that users have opened last.
//!
//! A read only adds its opening to a queue in memory; a task writes them in batches. After a crash, a
//! list of recent records may miss the last openings.

mod store;

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::{CustomerId, Fault, UserId, catalog::RecordKind};
use assay_runtime::{Runtime, begin};
use sqlx::PgPool;
use tokio::{sync::mpsc, time::timeout};
use uuid::Uuid;

/// Maximum number of openings in the queue. Further ones are dropped.
const QUEUE: usize = 10_000;

/// Maximum number of openings that are written at once.
const BATCH: usize = 1000;

/// Timeout for writing a batch.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The opening of a record by a user.
#[derive(Clone, Copy, Debug)]
struct Opening {
    customer: CustomerId,
    user: UserId,
    kind: RecordKind,
    record: Uuid,
    /// The project of the record; for a project, the customer.
    owner: Uuid,
}

/// The queue of openings.
#[derive(Clone)]
pub struct Openings(mpsc::Sender<Opening>);

impl Openings {
    /// Starts the task that writes openings.
    pub fn start(runtime: &Runtime, db: PgPool) -> Self {
        let (sender, mut source) = mpsc::channel(QUEUE);
        let stop = runtime.stopping();
        runtime.spawn("openings", async move {
            let mut batch = Vec::new();
            loop {
                // The queue is written before the program stops.
                let count = tokio::select! {
                    biased;
                    count = source.recv_many(&mut batch, BATCH) => count,
                    () = stop.cancelled() => 0,
                };
                if count == 0 {
                    return Ok(());
                }
                if let Err(error) = write(&db, &batch).await {
                    tracing::warn!(%error, count, "cannot write openings; dropped them");
                }
                batch.clear();
            }
        });
        Self(sender)
    }

    /// Adds the opening of a record to the queue. Does not wait and cannot fail.
    pub(crate) fn note(&self, caller: &Caller, kind: RecordKind, record: Uuid, owner: Uuid) {
        let Caller { customer, user, .. } = *caller;
        // Under an overload, complete lists of recent records matter least.
        let _ = self.0.try_send(Opening { customer, user, kind, record, owner });
    }
}

async fn write(db: &PgPool, openings: &[Opening]) -> Result<(), Fault> {
    let written = timeout(TIMEOUT, async {
        let mut tx = begin(db).await?;
        store::upsert(&mut tx, openings).await?;
        store::prune(&mut tx, openings).await?;
        Ok(tx.commit().await?)
    });
    written.await.unwrap_or(Err(Fault::Unavailable("the database")))
}
