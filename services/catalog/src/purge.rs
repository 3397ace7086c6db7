//! Removal of the records of deleted projects in the background.
//!
//! Lookups refuse a deleted project and its records at once. The records are removed in batches, each in
//! a short transaction with the events of their deletion. The size of a batch adapts to the time that
//! batches take. They wait while many events are unpublished, so that other work on the database and by
//! the consumers of events is not delayed. Removal continues after a restart. A project whose records
//! cannot be removed does not delay others.

mod store;

use std::time::{Duration, Instant};

use assay_database::{Database, begin, exclusively};
use assay_events::{publish_all, wait_for_relay};
use assay_fair::Throttle;
use assay_proto::Fault;
use assay_records::Action;
use assay_runtime::Runtime;
use assay_work::Attempt;
use sqlx::PgPool;
use uuid::Uuid;

pub(crate) use self::store::PURGE;
use self::store::{PARTS, Project, Table};
use crate::file;

/// Time between two searches for deleted projects.
const PERIOD: Duration = Duration::from_secs(1);

/// Maximum number of unpublished events before a batch.
const UNPUBLISHED: i64 = 2000;

/// Removes the records of deleted projects until the program stops.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let failure = "cannot remove the records of deleted projects";
    database.every(runtime, "purge", PERIOD, failure, |db| async move { purge(&db).await });
}

/// Removes the records of all deleted projects, unless another replica is doing so.
pub async fn purge(db: &PgPool) -> Result<(), Fault> {
    store::delete_late_projects(db).await?;
    if store::next_project(db).await?.is_none() {
        return Ok(());
    }
    exclusively(db, "assay purge", purge_all(db)).await.map(|_| ())
}

async fn purge_all(db: &PgPool) -> Result<(), Fault> {
    while let Some(project) = store::next_project(db).await? {
        let Some(attempt) = PURGE.begin(db, project.customer_id, project.id.0).await? else {
            continue;
        };
        match purge_project(db, project, &attempt).await {
            Ok(()) => attempt.done(db).await?,
            Err(fault) => attempt.failed(db, &fault).await?,
        }
    }
    Ok(())
}

/// Removes the records of a deleted project.
async fn purge_project(db: &PgPool, project: Project, attempt: &Attempt) -> Result<(), Fault> {
    let mut throttle = Throttle::within(20..=1000);
    for table in Table::ALL {
        for part in PARTS {
            remove(db, project, (table, part), attempt, &mut throttle).await?;
        }
    }
    remove_files(db, project, attempt, &mut throttle).await?;
    store::finish(db, project).await?;
    tracing::info!(project.id = %project.id, "removed the records of a deleted project");
    Ok(())
}

/// Removes the files and uploads of a project. Their bytes are removed later.
async fn remove_files(
    db: &PgPool,
    project: Project,
    attempt: &Attempt,
    throttle: &mut Throttle,
) -> Result<(), Fault> {
    loop {
        let (batch, started) = (throttle.batch_size(), Instant::now());
        let mut tx = begin(db).await?;
        let (customer, id) = (project.customer_id, project.id);
        let files = file::store::purge(&mut tx, customer, id, batch).await?;
        let uploads = file::resumable::removal::purge(&mut tx, customer, id).await?;
        attempt.progressed(&mut *tx).await?;
        tx.commit().await?;
        if files < batch && uploads == 0 {
            return Ok(());
        }
        throttle.pause(started.elapsed()).await;
    }
}

/// Removes the records of a project from a part of a table, in the order of their ids.
async fn remove(
    db: &PgPool,
    project: Project,
    (table, part): (Table, &'static str),
    attempt: &Attempt,
    throttle: &mut Throttle,
) -> Result<(), Fault> {
    let mut after = Uuid::nil();
    loop {
        wait_for_relay(db, UNPUBLISHED).await?;
        let batch = throttle.batch_size();
        let ids = store::ids(db, project, table, part, after, batch).await?;
        let Some(last) = ids.last() else { return Ok(()) };

        let started = Instant::now();
        let mut tx = begin(db).await?;
        let (mut removed, is_complete) =
            store::remove_below(&mut tx, project, table, &ids, batch).await?;
        if is_complete {
            removed.extend(store::remove(&mut tx, project, table, &ids).await?);
            after = *last;
        }
        if project.is_announced {
            let customer = project.customer_id;
            let events = removed.iter().map(|record| record.event(Action::Deleted, customer, None));
            publish_all(&mut tx, events).await?;
        }
        attempt.progressed(&mut *tx).await?;
        tx.commit().await?;
        throttle.pause(started.elapsed()).await;
    }
}
