//! Files in the store that no record has: those that are younger than the backup from which the databases were restored.

use anyhow::{Result, ensure};
use assay_storage::{FileStore, Found};
use futures::{StreamExt, TryStreamExt, stream};
use secrecy::SecretString;

use crate::verify::connect;

/// The time before which files were stored that are compared, in seconds since 1970. A file has a record before it is
/// stored; a day is for clocks that differ.
const BEFORE: &str = "select extract(epoch from now() - interval '1 day')::bigint";

/// Maximum number of files that are removed at the same time.
const AT_ONCE: usize = 16;

/// The files in a store that are older than a day.
#[derive(Debug, Default)]
pub struct StoredFiles {
    /// Number of files that have a record.
    pub recorded: usize,
    /// Files that no record has.
    pub unrecorded: Vec<Found>,
    /// Whether the store has no files at all, also no younger ones.
    pub is_empty: bool,
}

impl StoredFiles {
    /// Returns the size of the files that no record has, in bytes.
    pub fn unrecorded_bytes(&self) -> u64 {
        self.unrecorded.iter().map(|file| file.size).sum()
    }

    /// Compares a store with the databases of the execution service and the catalog, which may share it.
    pub async fn compare(
        execution: &SecretString,
        catalog: &SecretString,
        store: &FileStore,
    ) -> Result<Self> {
        let (execution, catalog) = (connect(execution).await?, connect(catalog).await?);
        let before: i64 = sqlx::query_scalar(BEFORE).fetch_one(&execution).await?;
        let (mut listing, mut files) = (store.list(before), Self::default());
        loop {
            let listed = listing.batch().await?;
            let all = listed.len();
            if all == 0 {
                files.is_empty = listing.is_empty();
                return Ok(files);
            }
            let unrecorded = assay_execution::unrecorded_files(&execution, listed).await?;
            let unrecorded = assay_catalog::unrecorded_files(&catalog, unrecorded).await?;
            files.recorded += all - unrecorded.len();
            files.unrecorded.extend(unrecorded);
        }
    }

    /// Removes the files that no record has. Refuses to remove all files of a store, since it may be that of another
    /// Assay.
    pub async fn remove_unrecorded(&self, store: &FileStore) -> Result<()> {
        ensure!(
            self.recorded > 0 || self.unrecorded.is_empty(),
            "none of the files in the store has a record, so it may be the store of another Assay: nothing was removed"
        );
        let files = stream::iter(&self.unrecorded).map(Ok);
        let remove = move |file: &Found| store.delete(file.place);
        Ok(files.try_for_each_concurrent(AT_ONCE, remove).await?)
    }
}
