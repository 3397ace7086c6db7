//! The removal of bytes that are not the contents of a file, in the background.

use std::time::{Duration, Instant};

use assay_database::Database;
use assay_proto::Fault;
use assay_runtime::Runtime;
use assay_storage::{Place, Unstored};
use tonic::Status;

use super::{Files, resumable, stray};

/// Interval between two sweeps.
const INTERVAL: Duration = Duration::from_mins(1);

/// Time from which a failed call means that the store hangs, so that others would, too.
const HANGS: Duration = Duration::from_secs(10);

impl Files {
    /// Removes abandoned bytes until the program stops.
    pub(crate) fn spawn(&self, runtime: &Runtime, database: &Database) {
        let this = self.clone();
        let round = move |_| {
            let this = this.clone();
            async move { this.sweep().await }
        };
        database.every(runtime, "files", INTERVAL, "cannot remove abandoned files", round);
    }

    /// Removes expired uploads, and abandoned bytes of uploads and deletions that did not end. Fails if the store
    /// hangs.
    pub async fn sweep(&self) -> Result<(), Fault> {
        resumable::removal::expire(&self.db).await?;
        let mut after = None;
        loop {
            let places = stray::abandon(&self.db, after).await?;
            let Some(last) = places.last() else { return Ok(()) };
            after = Some(last.id);
            for place in places {
                let begun = Instant::now();
                let Err(fault) = self.try_remove(place).await else { continue };
                tracing::warn!(%fault, content.id = %place.id, "cannot remove a file; it is removed later");
                if begun.elapsed() > HANGS {
                    return Err(fault);
                }
            }
        }
    }

    /// Removes bytes that are not the contents of a file. If this fails, [`Files::sweep`] does it later.
    pub(super) async fn remove(&self, place: Place) {
        if let Err(fault) = self.try_remove(place).await {
            tracing::warn!(%fault, content.id = %place.id, "cannot remove a file; it is removed later");
        }
    }

    /// Removes what has arrived of a file that was not stored. One that may appear later is left to [`Files::sweep`], which
    /// removes it when nothing writes it any more.
    pub(super) async fn discard(&self, place: Place, unstored: Unstored) -> Status {
        if !unstored.may_appear {
            self.remove(place).await;
        }
        unstored.status
    }

    async fn try_remove(&self, place: Place) -> Result<(), Fault> {
        // A transaction whose outcome was lost may have made them those of a file.
        if !stray::condemn(&self.db, place).await? {
            return Ok(());
        }
        self.store.delete(place).await?;
        stray::delete(&self.db, place).await
    }
}
