//! Makes the logs of ended leases artifacts.
//!
//! The transaction that makes a log an artifact also marks it as sealed. So a program that is killed at any point, a
//! commit whose outcome is lost, or a second replica that does the same does not store a log twice.

use std::time::Duration;

use assay_database::{Database, exclusively};
use assay_proto::Fault;
use assay_runtime::Runtime;
use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use tonic::{Code, Status};

use super::store::{self, EndedLog};
use crate::artifact::{
    Artifacts, rules,
    store::{Announced, Companion, NewArtifact},
};

/// Interval between rounds.
const PERIOD: Duration = Duration::from_secs(2);

/// Starts the task that makes logs artifacts until the program stops.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, artifacts: &Artifacts) {
    let artifacts = artifacts.clone();
    database.every(runtime, "live-logs", PERIOD, "cannot store live logs", move |db| {
        let artifacts = artifacts.clone();
        async move { seal_logs(&db, &artifacts).await }
    });
}

/// Makes the logs of ended leases artifacts. Only one replica does so at a time. A log that cannot be stored is
/// tried again for a day. Logs are removed a minute later, so that readers who follow them miss nothing of the end.
pub async fn seal_logs(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    while store::remove_sealed(db).await? > 0 {}
    if store::ended(db, None).await?.is_empty() {
        return Ok(());
    }
    exclusively(db, "assay live logs", seal_all(db, artifacts)).await.map(|_| ())
}

async fn seal_all(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    let mut after = None;
    loop {
        let logs = store::ended(db, after).await?;
        let Some(last) = logs.last() else { return Ok(()) };
        after = Some(*last);
        for log in logs {
            let Err(status) = seal(db, artifacts, log).await else { continue };
            let id = log.lease_id;
            match status.code() {
                // The execution was deleted, or its results have expired.
                Code::NotFound => {}
                _ if log.is_old => {
                    tracing::warn!(%status, lease.id = %id, "a live log is given up");
                }
                _ => {
                    tracing::warn!(%status, lease.id = %id, "a live log is stored later");
                    continue;
                }
            }
            store::mark_sealed(db, log.customer_id, id).await?;
        }
    }
}

/// Stores a log as an artifact of its test report. The name of the log of an engine that did not
/// complete its work, or whose name is taken, has the id of its lease.
async fn seal(db: &PgPool, artifacts: &Artifacts, log: EndedLog) -> Result<(), Status> {
    let of_lease = rules::live_log_of(log.lease_id);
    let name = if log.is_final { rules::LIVE_LOG.to_owned() } else { of_lease.clone() };
    match put(db, artifacts, log, name).await {
        Err(status) if status.code() == Code::FailedPrecondition => {
            put(db, artifacts, log, of_lease).await
        }
        done => done,
    }
}

/// Returns the change that marks a log as sealed. It fails if the log is sealed already.
fn marking(log: EndedLog) -> Companion {
    Box::new(move |tx| {
        async move {
            let is_new = store::mark_sealed(&mut **tx, log.customer_id, log.lease_id).await?;
            is_new.then_some(()).ok_or(Fault::NotFound("live log"))
        }
        .boxed()
    })
}

async fn put(
    db: &PgPool,
    artifacts: &Artifacts,
    log: EndedLog,
    name: String,
) -> Result<(), Status> {
    let new = NewArtifact {
        customer: log.customer_id,
        execution: log.execution_id,
        owner: log.test_report_id.0,
        lease: None,
        name,
        content_type: "text/plain; charset=utf-8".to_owned(),
        announced: Announced::default(),
        companion: Some(marking(log)),
    };
    let db = db.clone();
    let pieces = stream::try_unfold(0, move |from| {
        let db = db.clone();
        async move {
            let piece = store::read(&db, log.customer_id, log.lease_id, from).await?;
            let size = i64::try_from(piece.len()).map_err(Fault::internal)?;
            Ok::<_, Fault>((size > 0).then(|| (Bytes::from(piece), from + size)))
        }
    });
    // One log is stored at a time. If it waited for the uploads of its customer, so would the logs of others.
    Box::pin(artifacts.store(new, pieces.map_err(Status::from).boxed(), None)).await.map(drop)
}
