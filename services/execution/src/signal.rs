//! Signals that wake requests, in this program and over NATS in all replicas.
//!
//! A signal is published on a NATS subject that no stream stores. It may be lost, so a request that
//! waits for one also reads the database at the end of its wait.

use std::{hash::Hash, time::Duration};

use assay_fair::{Notifier, OfCustomer};
use assay_runtime::{Runtime, nats::subscribe};
use async_nats::{Client, connection::State};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::timeout;

/// Time limit for publishing a signal.
const TIMEOUT: Duration = Duration::from_millis(500);

/// A signal, with the requests that wait for it at this program.
pub(crate) struct Signal<K> {
    pub(crate) waiting: Notifier<K>,
    subject: &'static str,
    nats: Option<Client>,
}

impl<K> Clone for Signal<K> {
    fn clone(&self) -> Self {
        Self { waiting: self.waiting.clone(), subject: self.subject, nats: self.nats.clone() }
    }
}

impl<K> Signal<K>
where
    K: OfCustomer + Eq + Hash + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    /// Returns a signal on this subject that wakes the waiters. With a client, it does so at every
    /// program.
    pub(crate) fn new(
        runtime: &Runtime,
        waiting: Notifier<K>,
        subject: &'static str,
        nats: Option<Client>,
    ) -> Self {
        if let Some(nats) = nats.clone() {
            let here = waiting.clone();
            subscribe(
                runtime,
                nats,
                subject.to_owned(),
                move |message| match serde_json::from_slice(&message.payload) {
                    Ok(key) => here.wake(&key),
                    Err(error) => tracing::warn!(%error, subject, "cannot parse a signal"),
                },
            );
        }
        Self { waiting, subject, nats }
    }

    /// Wakes the waiters for a key. Must follow the commit.
    pub(crate) async fn send(&self, key: &K) {
        self.waiting.wake(key);
        let Some(nats) = &self.nats else { return };
        if nats.connection_state() != State::Connected {
            return;
        }
        let Ok(message) = serde_json::to_vec(key) else { return };
        let published = timeout(TIMEOUT, nats.publish(self.subject, message.into())).await;
        if !matches!(published, Ok(Ok(()))) {
            tracing::debug!(subject = self.subject, "cannot publish a signal");
        }
    }
}
