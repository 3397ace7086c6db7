//! The tasks for launches of all customers: closing those that are over, adopting test cases, and
//! removing what is old. All replicas of the service may do this at the same time.

use std::{collections::HashMap, time::Duration};

use assay_database::Database;
use assay_proto::{CustomerId, Fault};
use assay_runtime::Runtime;
use futures::{StreamExt, stream::FuturesUnordered};
use tokio::time::{sleep, timeout};

use super::{
    Launches,
    store::{self, LAUNCH, StoredLaunch},
};

/// Interval at which launches that are due are sought.
const CLOSING: Duration = Duration::from_millis(250);

/// Interval of the adoption of test cases.
const ADOPTION: Duration = Duration::from_secs(1);

/// Interval of the removal of old launches.
const REMOVAL: Duration = Duration::from_secs(10);

/// Maximum number of launches that are closed at the same time, and of those of one customer.
const AT_ONCE: usize = 4;
const OF_CUSTOMER: usize = 3;

/// The metrics of launches.
const WAITING: &str = "assay_launches_waiting";
const STORED: &str = "assay_launch_stored_seconds";

impl Launches {
    /// Starts the tasks. They work until the program stops.
    pub fn spawn(&self, runtime: &Runtime, database: &Database) {
        describe_metrics();
        let launches = self.clone();
        let close = move |_| {
            let launches = launches.clone();
            async move { launches.close_due().await }
        };
        let failure = "cannot read the launches that are over";
        database.every(runtime, "closing launches", CLOSING, failure, close);
        let launches = self.clone();
        let adopt = move |_| {
            let launches = launches.clone();
            async move { launches.adopt_and_count().await }
        };
        let failure = "cannot read the launches that need a caller";
        database.every(runtime, "adoption for launches", ADOPTION, failure, adopt);
        let remove = |db| async move { store::remove_old(&db).await };
        let failure = "cannot remove old launches";
        database.every(runtime, "removal of launches", REMOVAL, failure, remove);
    }

    async fn adopt_and_count(&self) -> Result<(), Fault> {
        self.adopt_paused().await?;
        #[expect(clippy::cast_precision_loss, reason = "a metric")]
        metrics::gauge!(WAITING).set(store::count_waiting(&self.0.db).await? as f64);
        Ok(())
    }

    /// Adopts test cases, closes the launches that are due, and removes what is old, each once.
    pub async fn round(&self) -> Result<(), Fault> {
        self.adopt_paused().await?;
        self.close_due().await?;
        store::remove_old(&self.0.db).await
    }

    /// Closes launches until none is due. One that takes long does not delay those of others.
    async fn close_due(&self) -> Result<(), Fault> {
        let mut closing = FuturesUnordered::new();
        let mut at_once = HashMap::<CustomerId, usize>::new();
        loop {
            while closing.len() < AT_ONCE {
                let busy = at_once.iter().filter(|(_, count)| **count >= OF_CUSTOMER);
                let busy: Vec<CustomerId> = busy.map(|(customer, _)| *customer).collect();
                let launch = match store::take_due(&self.0.db, &busy).await {
                    Ok(Some(launch)) => launch,
                    Err(fault) if closing.is_empty() => return Err(fault),
                    Ok(None) | Err(_) => break,
                };
                *at_once.entry(launch.customer).or_default() += 1;
                closing.push(Box::pin(self.close_leased(launch)));
            }
            match timeout(CLOSING, closing.next()).await {
                Ok(Some(customer)) => {
                    let count = at_once.entry(customer).or_default();
                    *count -= 1;
                }
                Ok(None) => return Ok(()),
                // Launches of other customers may be due.
                Err(_) => {}
            }
        }
    }

    /// Closes a launch whose lease this program has, and returns its customer.
    async fn close_leased(&self, launch: StoredLaunch) -> CustomerId {
        let renew = async {
            loop {
                sleep(Duration::from_secs_f64(store::LEASE / 3.0)).await;
                if let Err(fault) = store::renew(&self.0.db, &launch).await {
                    tracing::warn!(error = %fault, launch.id = %launch.id,
                        "cannot extend the lease of a launch");
                }
            }
        };
        let closed = tokio::select! {
            closed = self.attempt(&launch) => closed,
            () = renew => return launch.customer,
        };
        if let Err(fault) = closed {
            tracing::warn!(error = %fault, launch.id = %launch.id, "cannot postpone a launch");
        }
        launch.customer
    }

    /// Attempts to close a launch. One that is given up is left until it is overdue.
    async fn attempt(&self, launch: &StoredLaunch) -> Result<(), Fault> {
        let db = &self.0.db;
        let attempt = LAUNCH.begin(db, launch.customer, launch.id.0).await?;
        if attempt.is_none() && !launch.is_overdue {
            return store::release(db, launch).await;
        }
        let closed = Box::pin(self.close(launch, attempt.is_none())).await;
        match (closed, attempt) {
            (Ok(()), Some(attempt)) => attempt.done(db).await,
            (Ok(()), None) => Ok(()),
            (Err(status), attempt) => {
                tracing::warn!(%status, launch.id = %launch.id,
                    "cannot store the results of a launch; trying again");
                if let Some(attempt) = attempt {
                    attempt.failed_because(db, status.message()).await?;
                }
                store::release(db, launch).await
            }
        }
    }
}

/// Records the seconds from the end of a launch until its results were stored.
pub(super) fn record_stored(seconds: f64) {
    metrics::histogram!(STORED).record(seconds);
}

fn describe_metrics() {
    use metrics::{Unit, describe_gauge, describe_histogram};

    describe_gauge!(
        WAITING,
        Unit::Count,
        "Launches that are over and whose results are not stored yet, over all customers."
    );
    describe_histogram!(
        STORED,
        Unit::Seconds,
        "Time from the end of a launch until its results are stored."
    );
}
