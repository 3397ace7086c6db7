//! Uploads: a row before any byte, and a file in the transaction that makes the bytes its contents.

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    ContentId, Fault, ProjectId,
    catalog::{StoredFile, UploadFileHead, UploadFileRequest},
};
use assay_storage::{Pieces, Place};
use tokio::sync::oneshot;
use tonic::{Status, Streaming};

use super::{Files, intake, rules, store, stray};
use crate::project::store as projects;

impl Files {
    /// Receives and stores a file.
    pub(super) async fn receive(
        &self,
        caller: &Caller,
        messages: Streaming<UploadFileRequest>,
    ) -> Result<StoredFile, Status> {
        let opened = intake::open(messages).await?;
        let project = ProjectId::from_path(&opened.target.project_id)?;
        let (head, expected) = (opened.head.clone(), rules::valid(&opened.head)?);
        let announced = opened.target.size.unwrap_or_default().max(0);
        projects::find(&self.db, caller.customer, project).await?;
        let _share = self.uploads.acquire(caller.customer).await?;
        let left = self.left(caller, announced).await?;

        let place = store::place(caller.customer, project, ContentId::new());
        stray::insert(&self.db, place, announced).await?;
        let (pieces, hash) = opened.contents(&self.db, place, left);
        let stored = self.store(caller, place, head, expected, (pieces, hash)).await;
        match stored {
            Ok((file, true)) => Ok(file),
            Ok((file, false)) => {
                self.remove(place).await;
                Ok(file)
            }
            Err(status) => {
                self.remove(place).await;
                Err(status)
            }
        }
    }

    /// Returns how many bytes the customer has left, with the fault of more. Fails if the announced ones are
    /// more.
    async fn left(&self, caller: &Caller, announced: i64) -> Result<Option<(u64, Fault)>, Fault> {
        if u64::try_from(announced).is_ok_and(|announced| announced > self.largest()) {
            return Err(self.too_large());
        }
        let Some(limit) = self.limit() else { return Ok(None) };
        let (stored, uploading) = stray::sizes(&self.db, caller.customer).await?;
        let left = limit.saturating_sub(stored).saturating_sub(uploading);
        if announced > left || left <= 0 {
            return Err(self.exceeded());
        }
        Ok(Some((left.unsigned_abs(), self.exceeded())))
    }

    /// Stores the bytes, and inserts their file. Returns the file, and whether the bytes are its contents: they
    /// are not if the project has them already.
    async fn store(
        &self,
        caller: &Caller,
        place: Place,
        head: UploadFileHead,
        expected: Option<[u8; 32]>,
        (pieces, hash): (Pieces, oneshot::Receiver<Vec<u8>>),
    ) -> Result<(StoredFile, bool), Status> {
        let size = self.store.put(place, self.largest(), pieces).await?;
        let sha256 = hash.await.map_err(Fault::internal)?;
        if expected.is_some_and(|expected| expected[..] != sha256) {
            let problem = "is not the SHA-256 of the file that has arrived: send it again";
            return Err(Fault::invalid("digest", problem).into());
        }
        Ok(self.insert(caller, place, &head, &sha256, size).await?)
    }

    async fn insert(
        &self,
        caller: &Caller,
        place: Place,
        head: &UploadFileHead,
        sha256: &[u8],
        size: i64,
    ) -> Result<(StoredFile, bool), Fault> {
        let project = ProjectId(place.folder);
        let mut tx = begin(&self.db).await?;
        projects::lock_shared(&mut tx, caller.customer, project).await?;
        store::lock_quota(&mut tx, caller.customer).await?;
        let content = store::insert_content(&mut tx, place, sha256, size).await?;
        // Only a deletion removes contents, and it waits for the lock of the project.
        let content = content.ok_or(Fault::Unavailable("the file"))?;
        let is_new = content.0 == place.id;
        if is_new {
            stray::adopt(&mut *tx, place).await?;
            let (stored, _) = stray::sizes(&mut *tx, caller.customer).await?;
            if self.limit().is_some_and(|limit| stored > limit) {
                return Err(self.exceeded());
            }
        }
        let file = store::insert(&mut tx, caller, project, content, head).await?;
        tx.commit().await?;
        Ok((file, is_new))
    }
}
