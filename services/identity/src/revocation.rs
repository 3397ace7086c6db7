//! Revocations of tokens, and hints about them to all programs that verify tokens.

mod issuance;
mod store;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use assay_auth::{REVOCATIONS, UnconfirmedCaller, Verifier};
use assay_database::{Database, begin};
use assay_events::Nats;
use assay_proto::Fault;
use assay_runtime::Runtime;
use sqlx::{PgConnection, PgPool};
use tokio::{
    sync::{Mutex, Notify},
    time::{sleep, timeout},
};

pub(crate) use self::{
    issuance::Issuance,
    store::{
        Scope, date_token, expired_until, list, prune, record, record_name, record_of_account,
        record_of_customer, record_of_group, record_of_session,
    },
};

/// Interval of polls for revocations of other replicas.
const POLL: Duration = Duration::from_secs(1);

/// Maximum time until NATS accepts a hint. Without hints, programs that verify tokens fetch
/// revocations every two seconds.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(1);

/// Applies revocations to the verifier of this program, and publishes hints about them.
#[derive(Clone)]
pub(crate) struct Revocations(Arc<Inner>);

struct Inner {
    db: PgPool,
    nats: Nats,
    verifier: Verifier,
    /// Sequence number of the last revocation that `verifier` has applied.
    applied: Mutex<i64>,
    /// Whether revocations were applied since the last hint.
    hint_is_due: AtomicBool,
    recorded: Notify,
}

impl Revocations {
    pub(crate) fn new(db: &PgPool, nats: &Nats, verifier: &Verifier) -> Self {
        Self(Arc::new(Inner {
            db: db.clone(),
            nats: nats.clone(),
            verifier: verifier.clone(),
            applied: Mutex::default(),
            hint_is_due: AtomicBool::default(),
            recorded: Notify::new(),
        }))
    }

    /// Wakes the publisher after a revocation was committed. If the program ends before, another
    /// replica publishes the hint.
    pub(crate) fn notify(&self) {
        self.0.recorded.notify_one();
    }

    /// Begins the transaction of a method that creates a credential or a grant.
    pub(crate) async fn begin(&self, caller: &UnconfirmedCaller) -> Result<Issuance, Fault> {
        Ok(Issuance::new(self.clone(), begin(&self.0.db).await?, caller.clone()))
    }

    /// Applies all committed revocations. The transaction must not have revocations of its own,
    /// which may be rolled back.
    async fn catch_up(&self, db: &mut PgConnection) -> Result<(), Fault> {
        let mut applied = self.0.applied.lock().await;
        loop {
            let batch = list(&mut *db, *applied).await?;
            let Some(last) = batch.last() else { return Ok(()) };
            for revocation in &batch {
                self.0.verifier.revoke(revocation);
            }
            *applied = last.sequence;
            self.0.hint_is_due.store(true, Ordering::Release);
        }
    }

    /// Starts to apply and publish revocations. The program is ready when all existing ones are
    /// applied.
    pub(crate) fn spawn(&self, runtime: &Runtime, database: &Database) {
        let (this, database) = (self.clone(), database.clone());
        let (gate, stopping) = (runtime.gate("revocations"), runtime.stopping());
        runtime.spawn("revocations", async move {
            let work = async {
                database.ready().await;
                loop {
                    match this.apply_and_publish().await {
                        Ok(()) => gate.open(),
                        Err(fault) => {
                            tracing::debug!(%fault, "cannot read revocations; will retry");
                        }
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

    async fn apply_and_publish(&self) -> Result<(), Fault> {
        let mut db = self.0.db.acquire().await?;
        self.catch_up(&mut db).await?;
        if self.0.hint_is_due.load(Ordering::Acquire) {
            self.0.verifier.forget_revocations(expired_until(&mut *db).await?);
        }
        drop(db);
        if self.0.hint_is_due.swap(false, Ordering::AcqRel) && self.0.nats.is_connected() {
            let published = self.0.nats.client().publish(REVOCATIONS, "".into());
            if !matches!(timeout(PUBLISH_TIMEOUT, published).await, Ok(Ok(()))) {
                tracing::debug!("NATS has not accepted the hint about revocations");
            }
        }
        Ok(())
    }
}
