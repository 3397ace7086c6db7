//! What users have opened last. An opening is noted off the way of the read that it is: in memory,
//! from where a task writes what came together while it wrote the last ones. Should the program
//! crash, a list of recent records misses what was opened in its last moments; nothing else.

mod store;

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::{CustomerId, Fault, UserId, catalog::RecordKind};
use assay_runtime::{Runtime, begin};
use sqlx::PgPool;
use tokio::{sync::mpsc, time::timeout};
use uuid::Uuid;

/// How many openings may wait to be written; more are forgotten.
const WAITING: usize = 10_000;

/// How many are written at once.
const BATCH: usize = 1000;

/// How long writing them may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A user has opened a record, which belongs to a project, or to the customer.
#[derive(Clone, Copy, Debug)]
struct Opening {
    customer: CustomerId,
    user: UserId,
    kind: RecordKind,
    record: Uuid,
    owner: Uuid,
}

/// Takes note of what users open.
#[derive(Clone)]
pub struct Openings(mpsc::Sender<Opening>);

impl Openings {
    /// Starts to write openings down.
    pub fn start(runtime: &Runtime, db: PgPool) -> Self {
        let (sender, mut source) = mpsc::channel(WAITING);
        let stop = runtime.stopping();
        runtime.spawn("openings", async move {
            let mut batch = Vec::new();
            loop {
                // What is waiting when the program stops is still written.
                let count = tokio::select! {
                    biased;
                    count = source.recv_many(&mut batch, BATCH) => count,
                    () = stop.cancelled() => 0,
                };
                if count == 0 {
                    return Ok(());
                }
                if let Err(error) = write(&db, &batch).await {
                    tracing::warn!(%error, count, "openings are forgotten");
                }
                batch.clear();
            }
        });
        Self(sender)
    }

    /// Notes that a user has opened a record. Takes no time, and cannot fail.
    pub(crate) fn note(&self, caller: &Caller, kind: RecordKind, record: Uuid, owner: Uuid) {
        let Caller { customer, user, .. } = *caller;
        // Where too many wait, a list of recent records is the least of all worries.
        let _ = self.0.try_send(Opening { customer, user, kind, record, owner });
    }
}

async fn write(db: &PgPool, openings: &[Opening]) -> Result<(), Fault> {
    let written = timeout(PATIENCE, async {
        let mut tx = begin(db).await?;
        store::put(&mut tx, openings).await?;
        store::prune(&mut tx, openings).await?;
        Ok(tx.commit().await?)
    });
    written.await.unwrap_or(Err(Fault::Unavailable("the database")))
}
