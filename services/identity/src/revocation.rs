//! Tokens that die before their time, and how all programs that verify tokens learn of it.

mod store;

use std::{sync::Arc, time::Duration};

use assay_auth::{REVOCATIONS, Verifier};
use assay_events::Nats;
use assay_proto::{Fault, identity::Revocation};
use assay_runtime::{Database, Runtime};
use sqlx::{PgConnection, PgPool};
use tokio::{
    sync::{Mutex, Notify},
    time::{sleep, timeout},
};

pub(crate) use self::store::{
    Scope, date_token, list, prune, record, record_name, record_of_account, record_of_customer,
    record_of_group, record_of_session,
};

/// How often this program looks for what other replicas have revoked.
const POLL: Duration = Duration::from_secs(1);

/// How long NATS may take to accept a message. Programs that verify tokens read the revocations every
/// other second without it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tells of revocations.
#[derive(Clone)]
pub(crate) struct Revocations(Arc<Inner>);

struct Inner {
    db: PgPool,
    nats: Nats,
    verifier: Verifier,
    /// The last one that `verifier` knows, with all before it.
    known: Mutex<i64>,
    recorded: Notify,
}

impl Revocations {
    /// `verifier` learns them first.
    pub(crate) fn new(db: &PgPool, nats: &Nats, verifier: &Verifier) -> Self {
        Self(Arc::new(Inner {
            db: db.clone(),
            nats: nats.clone(),
            verifier: verifier.clone(),
            known: Mutex::default(),
            recorded: Notify::new(),
        }))
    }

    /// To be called after a revocation was committed. What is not told because the program ends
    /// here, another replica tells.
    pub(crate) fn committed(&self) {
        self.0.recorded.notify_one();
    }

    /// Learns all that is committed by now, and says what was new of it.
    pub(crate) async fn catch_up(&self, db: &mut PgConnection) -> Result<Vec<Revocation>, Fault> {
        let mut known = self.0.known.lock().await;
        let mut new = Vec::new();
        loop {
            let part = list(&mut *db, *known).await?;
            let Some(last) = part.last() else { return Ok(new) };
            for revocation in &part {
                self.0.verifier.revoke(revocation);
            }
            *known = last.sequence;
            new.extend(part);
        }
    }

    /// Learns what was revoked before the program started, and tells of what is revoked from now
    /// on. The program is ready then.
    pub(crate) fn spawn(&self, runtime: &Runtime, database: &Database) {
        let (this, database) = (self.clone(), database.clone());
        let (gate, stopping) = (runtime.gate("revocations"), runtime.stopping());
        runtime.spawn("revocations", async move {
            let work = async {
                database.ready().await;
                loop {
                    match this.tell().await {
                        Ok(()) => gate.open(),
                        Err(fault) => tracing::debug!(%fault, "the revocations cannot be read"),
                    }
                    tokio::select! {
                        () = sleep(POLL) => {}
                        () = this.0.recorded.notified() => {}
                    }
                }
            };
            stopping.run_until_cancelled(work).await;
            Ok(())
        });
    }

    async fn tell(&self) -> Result<(), Fault> {
        let mut db = self.0.db.acquire().await?;
        let new = self.catch_up(&mut db).await?;
        drop(db);
        if !new.is_empty() && self.0.nats.is_connected() {
            let published = self.0.nats.client().publish(REVOCATIONS, "".into());
            if !matches!(timeout(PATIENCE, published).await, Ok(Ok(()))) {
                tracing::debug!("NATS does not accept that there are revocations");
            }
        }
        Ok(())
    }
}
