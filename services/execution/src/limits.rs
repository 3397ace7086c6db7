//! How much is taken in at once: by whom, into what, and in how much memory.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use assay_runtime::{Share, Shares, body::Intake};
use tokio::{
    sync::{self, OwnedMutexGuard},
    time::timeout,
};
use uuid::Uuid;

/// How many mebibytes bodies and snapshots take at once.
const MEMORY: usize = 192;

/// How many transactions write results at once: half of the connections, so that those who read
/// don't wait for those who report. More would not be faster.
const WRITERS: usize = 4;

/// Maximum time that a writer waits for its turn at a record.
const PATIENCE: Duration = Duration::from_secs(10);

/// The limits that all calls with results share.
#[derive(Clone)]
pub(crate) struct IngestLimits {
    pub(crate) intake: Intake,
    database: Shares,
    writers: Shares,
    turns: Turns<Uuid>,
}

/// The right to write into one record. Others wait for it without a connection to the database.
pub(crate) struct Writing {
    _turn: OwnedMutexGuard<()>,
    _shares: [Share; 2],
}

impl IngestLimits {
    pub(crate) fn new(database: &Shares) -> Self {
        let (writers, turns) = (Shares::new(WRITERS), Turns::default());
        Self { intake: Intake::new(MEMORY), database: database.clone(), writers, turns }
    }

    /// Reads with a share of the database, for calls that do not hold one all the time.
    pub(crate) async fn read<T>(
        &self,
        customer: CustomerId,
        read: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let _share = self.database.acquire(customer).await?;
        read.await
    }

    /// Waits until nobody else in this program writes into a record, and then for shares of the
    /// writers and of the database: however many write into one record, they take one share.
    pub(crate) async fn write(&self, customer: CustomerId, record: Uuid) -> Result<Writing, Fault> {
        let turn = timeout(PATIENCE, self.turns.take(record)).await;
        let turn = turn.map_err(|_| Fault::Busy(PATIENCE))?;
        let writer = self.writers.acquire(customer).await?;
        let connection = self.database.acquire(customer).await?;
        Ok(Writing { _turn: turn, _shares: [writer, connection] })
    }
}

/// Turns: one at a time for each key, in the order in which they were asked for.
struct Turns<K>(Arc<Mutex<HashMap<K, Weak<sync::Mutex<()>>>>>);

impl<K> Clone for Turns<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash> Turns<K> {
    async fn take(&self, key: K) -> OwnedMutexGuard<()> {
        let lock = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
                turns.retain(|_, lock| lock.strong_count() > 0);
                let lock = Arc::default();
                turns.insert(key, Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn those_who_write_into_one_record_take_one_share() {
        let limits = IngestLimits::new(&Shares::new(8));
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
