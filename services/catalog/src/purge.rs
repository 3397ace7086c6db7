//! Removal of what belonged to deleted projects, in the background.
//!
//! A deleted project is refused from the moment of its deletion. What belonged to it is removed in
//! batches, each in a short transaction with the events that announce it. The batches adapt to how
//! long they take, and wait while many events are unpublished, so that neither the database nor the
//! consumers of events are kept from other work. Removal goes on after a restart where it stopped.

mod store;

use std::time::{Duration, Instant};

use assay_events::{is_behind, publish_all};
use assay_proto::Fault;
use assay_records::Action;
use assay_runtime::{Alone, Database, Pace, Runtime, begin};
use sqlx::PgPool;
use tokio::time::sleep;
use uuid::Uuid;

use self::store::{PARTS, Project, Table};

/// How often to look for deleted projects.
const PERIOD: Duration = Duration::from_secs(1);

/// Maximum number of events that may wait to be published before a batch.
const UNPUBLISHED: i64 = 2000;

/// Time between two looks whether events were published.
const PAUSE: Duration = Duration::from_millis(100);

/// Removes what was deleted, until the program stops.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let (database, stopping) = (database.clone(), runtime.stopping());
    runtime.spawn("purge", async move {
        let work = async {
            database.ready().await;
            let mut fails = false;
            loop {
                let done = purge(database.pool()).await;
                let failed_before = std::mem::replace(&mut fails, done.is_err());
                if let Err(fault) = done
                    && !failed_before
                {
                    tracing::warn!(%fault, "not all was removed of deleted projects; trying again");
                }
                sleep(PERIOD).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Removes all that belongs to deleted projects. Of several replicas one does it.
pub async fn purge(db: &PgPool) -> Result<(), Fault> {
    store::delete_late_projects(db).await?;
    if store::next_project(db).await?.is_none() {
        return Ok(());
    }
    let Some(mut alone) = Alone::at(db, "assay purge").await? else { return Ok(()) };
    let mut pace = Pace::within(20..=1000);
    while let Some(project) = store::next_project(db).await? {
        for table in Table::ALL {
            for part in PARTS {
                remove(db, project, table, part, &mut pace, &mut alone).await?;
            }
        }
        store::finish(db, project).await?;
        tracing::info!(project.id = %project.id, "removed all of a deleted project");
    }
    alone.end().await
}

/// Waits while many events are unpublished, so that those of others are published soon.
async fn wait_for_relay(db: &PgPool) -> Result<(), Fault> {
    while is_behind(db, UNPUBLISHED).await? {
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Removes the records of a table that belong to a project, in the order of their ids.
async fn remove(
    db: &PgPool,
    project: Project,
    table: Table,
    part: &'static str,
    pace: &mut Pace,
    alone: &mut Alone,
) -> Result<(), Fault> {
    let mut after = Uuid::nil();
    loop {
        wait_for_relay(db).await?;
        alone.keep().await?;
        let batch = pace.rows();
        let ids = store::ids(db, project, table, part, after, batch).await?;
        let Some(last) = ids.last() else { return Ok(()) };

        let begun = Instant::now();
        let mut tx = begin(db).await?;
        let (mut gone, is_complete) =
            store::remove_below(&mut tx, project, table, &ids, batch).await?;
        if is_complete {
            gone.extend(store::remove(&mut tx, project, table, &ids).await?);
            after = *last;
        }
        if project.is_announced {
            let events: Result<Vec<_>, _> =
                gone.iter().map(|gone| gone.was(Action::Deleted, project.customer_id)).collect();
            publish_all(&mut tx, &events?).await?;
        }
        tx.commit().await?;
        pace.learn(begun.elapsed()).await;
    }
}
