//! Removal of files.

use std::io::ErrorKind;

use assay_proto::{CustomerId, Fault};
use futures::{StreamExt, TryStreamExt};
use object_store::{Error, ObjectStore, ObjectStoreExt};
use uuid::Uuid;

use crate::{
    FileStore, Place,
    call::{available, measured},
    folder,
};

impl FileStore {
    /// Removes a file if it exists, and what an upload that did not end has left of it in a folder.
    pub async fn delete(&self, place: Place) -> Result<(), Fault> {
        if let Some(folder) = &self.folder {
            let staged = folder.join(format!("{}#1", place.path()));
            match tokio::fs::remove_file(&staged).await {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%error, "cannot remove a file that was not stored as a whole");
                    return Err(Fault::Unavailable("the store of files"));
                }
                _ => {}
            }
        }
        match measured("remove", self.store.delete(&place.path())).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            failed => available(failed),
        }
    }

    /// Removes all files in a folder of a customer.
    pub async fn remove(&self, customer: CustomerId, folder: Uuid) -> Result<(), Fault> {
        let files = self.store.list(Some(&self::folder(customer, folder)));
        let files = files.map_ok(|file| file.location).boxed();
        let mut removed = self.store.delete_stream(files);
        loop {
            match measured("remove", removed.try_next()).await {
                Ok(None) => return Ok(()),
                Ok(Some(_)) | Err(Error::NotFound { .. }) => {}
                failed => available(failed.map(drop))?,
            }
        }
    }
}
