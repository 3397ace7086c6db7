//! The task that counts dead letters, and removes records of work that need not be done any more.

use std::time::Duration;

use assay_database::Database;
use assay_proto::Fault;
use assay_runtime::Runtime;
use sqlx::PgPool;
use tokio::time::sleep;

use crate::Work;

/// Interval between counts.
const INTERVAL: Duration = Duration::from_secs(15);

const DEAD_LETTERS: &str = "assay_dead_letters";

/// Starts the task for these kinds of work. Each replica counts the dead letters of all.
pub fn watch(runtime: &Runtime, database: &Database, works: &'static [Work]) {
    metrics::describe_gauge!(
        DEAD_LETTERS,
        metrics::Unit::Count,
        "Work in the background that was given up, until an operator retries or drops it, up to 10,000 \
         of each kind."
    );
    let (database, stopping) = (database.clone(), runtime.stopping());
    runtime.spawn("dead letters", async move {
        let work = async {
            database.ready().await;
            loop {
                for work in works {
                    if let Err(fault) = round(work, database.pool()).await {
                        tracing::debug!(error = %fault, kind = work.kind, "cannot count dead letters");
                    }
                }
                sleep(INTERVAL).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

async fn round(work: &Work, db: &PgPool) -> Result<(), Fault> {
    work.forget_settled(db).await?;
    #[expect(clippy::cast_precision_loss, reason = "at most 10,000")]
    let count = work.count(db).await? as f64;
    metrics::gauge!(DEAD_LETTERS, "kind" => work.kind).set(count);
    Ok(())
}
