//! Limits on results that are received and stored at the same time.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use assay_fair::{Share, Shares};
use assay_proto::{CustomerId, Fault};
use assay_rpc::body::Intake;
use tokio::{
    sync::{self, OwnedMutexGuard},
    time::timeout,
};
use uuid::Uuid;

use crate::quota::Quota;

/// Memory for bodies and snapshots, in MiB.
const MEMORY: usize = 192;

/// Maximum number of transactions that write results at the same time: half of the connections, so
/// that readers do not wait for writers. More would not be faster.
const WRITERS: usize = 4;

/// Maximum time that a writer waits for the lock of a record.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The limits that all calls with results share.
#[derive(Clone)]
pub(crate) struct IngestLimits {
    pub(crate) intake: Intake,
    database: Shares,
    writers: Shares,
    records: Locks<Uuid>,
    pub(crate) quota: Quota,
}

/// The right to write results of one record. Others wait for it without a database connection.
pub(crate) struct WritePermit {
    _lock: OwnedMutexGuard<()>,
    _shares: [Share; 2],
}

impl IngestLimits {
    pub(crate) fn new(database: &Shares, quota: &Quota) -> Self {
        let (writers, records) = (Shares::new(WRITERS), Locks::default());
        let (intake, database, quota) = (Intake::new(MEMORY), database.clone(), quota.clone());
        Self { intake, database, writers, records, quota }
    }

    /// Reads with a share of the database, for calls that do not hold one all the time.
    pub(crate) async fn read<T>(
        &self,
        customer: CustomerId,
        read: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let _share = self.share(customer).await?;
        read.await
    }

    /// Acquires a share of the database, for calls that do not hold one all the time.
    pub(crate) async fn share(&self, customer: CustomerId) -> Result<Share, Fault> {
        self.database.acquire(customer).await
    }

    /// Waits for the lock of a record within this process, then for shares of the writers and of
    /// the database. All writers of one record together take one share.
    pub(crate) async fn write(
        &self,
        customer: CustomerId,
        record: Uuid,
    ) -> Result<WritePermit, Fault> {
        let lock = timeout(LOCK_TIMEOUT, self.records.lock(record)).await;
        let lock = lock.map_err(|_| Fault::Busy(LOCK_TIMEOUT))?;
        let writer = self.writers.acquire(customer).await?;
        let connection = self.database.acquire(customer).await?;
        Ok(WritePermit { _lock: lock, _shares: [writer, connection] })
    }
}

/// A lock for each key, acquired in the order of the requests.
struct Locks<K>(Arc<Mutex<HashMap<K, Weak<sync::Mutex<()>>>>>);

impl<K> Clone for Locks<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash> Locks<K> {
    async fn lock(&self, key: K) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
                locks.retain(|_, lock| lock.strong_count() > 0);
                let lock = Arc::default();
                locks.insert(key, Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use sqlx::PgPool;

    use super::*;
    use crate::quota::QuotaConfig;

    #[tokio::test]
    async fn writers_of_one_record_take_one_share() {
        let db = PgPool::connect_lazy("postgres://localhost").unwrap();
        let quota = Quota::new(&db, QuotaConfig::default());
        let limits = IngestLimits::new(&Shares::new(8), &quota);
        let (one, other, busy) = (CustomerId::new(), CustomerId::new(), Uuid::now_v7());
        let first = limits.write(one, busy).await.unwrap();
        let mut second = Box::pin(limits.write(one, busy));
        assert!((&mut second).now_or_never().is_none());

        let at_others: Vec<_> = (0..2)
            .map(|_| limits.write(one, Uuid::now_v7()).now_or_never().unwrap().unwrap())
            .collect();
        assert!(limits.write(one, Uuid::now_v7()).now_or_never().is_none(), "a customer's share");
        assert!(limits.write(other, Uuid::now_v7()).now_or_never().unwrap().is_ok());

        drop((first, at_others));
        assert!(second.now_or_never().unwrap().is_ok());
    }
}
