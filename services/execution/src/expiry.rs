//! The task that publishes the ends of known failures and of states of test cases, also a day before they come.
//! All replicas of the service may do this at the same time.

use std::{fmt::Display, time::Duration};

use assay_database::{Database, begin};
use assay_events::{Event, RecordKind, publish_all};
use assay_ledger::{event, known_failure, test_case_state};
use assay_proto::{CustomerId, Fault, ProjectId};
use assay_runtime::Runtime;
use sqlx::{PgPool, PgTransaction};

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let failure = "cannot publish the ends of what is muted";
    let round = |db| async move { publish_expired(&db).await };
    database.every(runtime, "expiry", INTERVAL, failure, round);
}

/// Publishes the ends of all known failures and states of test cases that have expired.
pub async fn publish_expired(db: &PgPool) -> Result<(), Fault> {
    loop {
        let mut tx = begin(db).await?;
        let events = expired(&mut tx).await?;
        if events.is_empty() {
            return Ok(());
        }
        publish_all(&mut tx, events).await?;
        tx.commit().await?;
    }
}

/// Expires what has ended, notes what ends soon, and returns the events.
async fn expired(tx: &mut PgTransaction<'_>) -> Result<Vec<Result<Event, Fault>>, Fault> {
    let mut events = of(RecordKind::KnownFailure, known_failure::expiry::expire(tx).await?);
    events.extend(of(RecordKind::TestCaseState, test_case_state::store::expire(tx).await?));
    let ending = known_failure::expiry::announce(tx).await?.into_iter();
    events.extend(ending.map(|(customer, project, id)| {
        event::expiring(customer, project, (RecordKind::KnownFailure, id))
    }));
    let ending = test_case_state::store::announce(tx).await?.into_iter();
    events.extend(ending.map(|(customer, project, id)| {
        event::expiring(customer, project, (RecordKind::TestCaseState, id))
    }));
    Ok(events)
}

fn of(
    kind: RecordKind,
    expired: Vec<(CustomerId, ProjectId, impl Display)>,
) -> Vec<Result<Event, Fault>> {
    let event = |(customer, project, id)| event::expired(customer, project, (kind, id));
    expired.into_iter().map(event).collect()
}
