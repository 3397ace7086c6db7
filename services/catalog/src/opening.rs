//! Openings: the records that users have opened last.
//!
//! A read only adds its opening to lists in memory; a task writes them. After a crash, a list of
//! recent records may miss the last openings.

mod store;

use std::{
    collections::HashMap,
    mem::take,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_auth::Caller;
use assay_proto::{CustomerId, Fault, UserId, catalog::RecordKind};
use assay_runtime::Runtime;
use sqlx::PgPool;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use uuid::Uuid;

/// Number of records that are kept of each list. A list shows half as many, since some of the
/// records may be archived.
const KEPT: usize = 40;

/// Maximum number of lists in memory. Openings in further ones are dropped.
const LISTS: usize = 10_000;

/// Minimum time between two writes.
pub(crate) const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// Timeout of a write.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A list of the records that a user has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct List {
    customer: CustomerId,
    user: UserId,
    kind: RecordKind,
    /// The project of the records; for projects, the customer.
    owner: Uuid,
}

/// The openings that are not yet written.
#[derive(Clone, Default)]
pub struct Openings(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The records of each list, the latest last.
    lists: Mutex<HashMap<List, Vec<Uuid>>>,
    added: Notify,
}

impl Openings {
    /// Starts the task that writes openings, the first one at once and then one batch per interval.
    pub fn start(runtime: &Runtime, db: PgPool, interval: Duration) -> Self {
        let (openings, stop) = (Self::default(), runtime.stopping());
        let this = openings.clone();
        runtime.spawn("openings", async move {
            while stop.run_until_cancelled(this.0.added.notified()).await.is_some() {
                this.write(&db).await;
                stop.run_until_cancelled(sleep(interval)).await;
            }
            this.write(&db).await;
            Ok(())
        });
        openings
    }

    /// Adds the opening of a record to its list, unless the caller is a program. Does not wait and
    /// cannot fail.
    pub(crate) fn note(&self, caller: &Caller, kind: RecordKind, record: Uuid, owner: Uuid) {
        let Caller { customer, user, api_token: None, .. } = *caller else { return };
        let list = List { customer, user, kind, owner };
        let mut lists = self.lists();
        // Under an overload, complete lists of recent records matter least.
        if lists.len() >= LISTS && !lists.contains_key(&list) {
            return;
        }
        let records = lists.entry(list).or_default();
        records.retain(|opened| *opened != record);
        records.push(record);
        if records.len() > KEPT {
            records.remove(0);
        }
        drop(lists);
        self.0.added.notify_one();
    }

    fn lists(&self) -> MutexGuard<'_, HashMap<List, Vec<Uuid>>> {
        self.0.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, db: &PgPool) {
        let lists = take(&mut *self.lists());
        if lists.is_empty() {
            return;
        }
        let written = timeout(TIMEOUT, store::upsert(db, &lists)).await;
        if let Err(error) = written.unwrap_or(Err(Fault::Unavailable("the database"))) {
            tracing::warn!(%error, lists = lists.len(), "cannot write openings; dropped them");
        }
    }
}
