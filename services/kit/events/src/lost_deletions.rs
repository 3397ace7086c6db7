//! Finds deletions whose event was lost, and applies them.
//!
//! An event that is neither in the stream nor in the outbox any more cannot be replayed: a consumer that was
//! away for longer than the retention never receives it. A lost change is made up for by the next
//! change of its record, but a deletion is the last one, and the records below a deleted project would stay
//! visible. So a service asks the owner, page by page, which of its customers or projects were deleted:
//! once a day, at the start if the last time is longer ago, and when its consumer had to be created again,
//! which means that NATS has lost the stream. A deletion that is found is applied by the handler of its
//! event.
//!
//! Only a deletion that the owner knows counts. A record that is unknown to it, for instance because it was
//! restored from an older backup, stays ([ADR 51](../../../../docs/adr/0051-lost-deletions-are-found.md)).

mod key;
mod owner;

use std::{mem::replace, sync::Arc, time::Duration};

use assay_database::{Database, begin, exclusively};
use assay_proto::{CustomerId, Fault, ProjectId};
use assay_runtime::Runtime;
use assay_work::Age;
use sqlx::PgPool;
use tokio::{sync::Notify, time::sleep};

use self::key::Key;
pub use self::owner::Owner;
use crate::Handler;

/// Time after which the owner is asked again, and between two looks at that time.
const PERIOD: &str = "1 day";
const LOOK: Duration = Duration::from_mins(5);

/// Pause after a failure, for example because the owner is not available.
const RETRY: Duration = Duration::from_secs(5);

/// Number of records in a question.
const PAGE: i64 = 1000;

/// The metric of deletions that were found.
const FOUND: &str = "assay_lost_deletions_total";

/// Lists the next 1,000 records after a customer and a project, of all customers, by the query of a search for lost
/// deletions.
pub async fn list_live(
    db: &PgPool,
    live: &'static str,
    after: Option<(CustomerId, ProjectId)>,
) -> Result<Vec<(CustomerId, ProjectId)>, Fault> {
    let key = |(customer_id, project_id)| Key { customer_id, project_id };
    let keys = key::list(db, live, after.map(key).unwrap_or_default(), PAGE).await?;
    Ok(keys.into_iter().map(|key| (key.customer_id, key.project_id)).collect())
}

/// Lets a service that has searched for lost deletions search again within five minutes, or at its next start. Each call
/// leaves another time, so that a search which has begun before does not count.
pub async fn search_again(db: &PgPool) -> Result<(), Fault> {
    let forget = "update checked_deletions set checked_at = now() - interval '1 day'";
    sqlx::query(forget).execute(db).await?;
    Ok(())
}

/// The search for lost deletions of the records of another service.
pub struct LostDeletions {
    owner: Owner,
    live: &'static str,
    is_lost: Arc<Notify>,
}

impl LostDeletions {
    /// Creates a search. `live` is a query of the next `$3` records after the customer `$1` and the project
    /// `$2` that this service has not deleted, with the columns `customer_id` and `project_id`, in their
    /// order. The project of a customer is the nil UUID.
    pub fn new(owner: Owner, live: &'static str) -> Self {
        Self { owner, live, is_lost: Arc::default() }
    }

    /// Returns what wakes the search, for [`Consumer::notify_of_loss`](crate::Consumer::notify_of_loss).
    pub fn signal(&self) -> Arc<Notify> {
        self.is_lost.clone()
    }

    /// Starts the search. It runs in one replica at a time. The handler is that of the consumer of the
    /// events.
    pub fn start(self, runtime: &Runtime, database: &Database, handler: impl Handler) {
        metrics::describe_counter!(
            FOUND,
            metrics::Unit::Count,
            "Deletions whose event was lost, and which were found and applied."
        );
        let kind = self.owner.kind().noun();
        metrics::counter!(FOUND, "record" => kind).increment(0);
        self.age().spawn(runtime, database);
        let (database, stopping) = (database.clone(), runtime.stopping());
        runtime.spawn("lost deletions", async move {
            let work = async {
                database.ready().await;
                let (db, mut is_lost, mut fails) = (database.pool(), false, false);
                loop {
                    if let Err(fault) = self.search_if_due(db, &handler, is_lost).await {
                        if !replace(&mut fails, true) {
                            tracing::info!(record = kind, %fault,
                                "cannot search for lost deletions; retrying");
                        }
                        sleep(RETRY).await;
                        continue;
                    }
                    fails = false;
                    tokio::select! {
                        () = sleep(LOOK) => is_lost = false,
                        () = self.is_lost.notified() => is_lost = true,
                    }
                }
            };
            stopping.run_until_cancelled(work).await;
            Ok(())
        });
    }

    /// Returns the time since the last search.
    fn age(&self) -> Age {
        let kind = self.owner.kind().noun();
        Age {
            metric: "assay_checked_deletions_age_seconds",
            help: "Time since the owner of the records was last asked which of them were deleted.",
            label: Some(("record", kind)),
            due_since: format!("select checked_at from checked_deletions where kind = '{kind}'"),
        }
    }

    /// Searches if a day has passed since the last time, or after a loss, unless another replica does. A time in
    /// the future does not count: the clock was wrong.
    async fn search_if_due(
        &self,
        db: &PgPool,
        handler: &impl Handler,
        is_lost: bool,
    ) -> Result<(), Fault> {
        let kind = self.owner.kind().noun();
        let is_due = sqlx::query_scalar(
            "select $2 or not exists (
                 select from checked_deletions
                 where kind = $1 and checked_at > now() - $3::interval and checked_at <= now()
             )",
        );
        let is_due: bool = is_due.bind(kind).bind(is_lost).bind(PERIOD).fetch_one(db).await?;
        if !is_due {
            return Ok(());
        }
        let lock = format!("assay lost deletions of {kind}");
        exclusively(db, &lock, self.search(db, handler)).await.map(drop)
    }

    /// Asks the owner about all records, applies the deletions that it knows, and returns their number.
    pub async fn search(&self, db: &PgPool, handler: &impl Handler) -> Result<u64, Fault> {
        let kind = self.owner.kind().noun();
        let begun = sqlx::query_scalar("select now()").fetch_one(db).await?;
        let before = "select checked_at::text from checked_deletions where kind = $1";
        let before: Option<String> =
            sqlx::query_scalar(before).bind(kind).fetch_optional(db).await?;
        let (mut after, mut found) = (Key::default(), 0);
        loop {
            let live = key::list(db, self.live, after, PAGE).await?;
            let Some(last) = live.last().copied() else { break };
            for key in self.owner.deleted(&live).await? {
                let mut tx = begin(db).await?;
                handler.handle(&mut tx, &key.deletion(&self.owner, begun)?).await?;
                tx.commit().await?;
                found += 1;
                metrics::counter!(FOUND, "record" => kind).increment(1);
                tracing::warn!(record = kind, customer = %key.customer_id, project = %key.project_id,
                    "the event of a deletion was lost; applied the deletion");
            }
            after = last;
        }
        let checked = sqlx::query(
            "insert into checked_deletions (kind, checked_at) values ($1, $2)
             on conflict on constraint checked_deletions_pkey do update set checked_at = $2
             where checked_deletions.checked_at::text = $3",
        );
        checked.bind(kind).bind(begun).bind(before).execute(db).await?;
        Ok(found)
    }
}
