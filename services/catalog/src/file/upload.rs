//! Uploads: a row before any byte, and a file in the transaction that makes the bytes its contents.

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    ContentId, CustomerId, Fault, ProjectId,
    catalog::{StoredFile, UploadFileHead, UploadFileRequest},
};
use assay_storage::{Pieces, Place, Stored, Terms};
use sqlx::{PgExecutor, PgTransaction};
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
        let left = self.left(&self.db, caller.customer, announced).await?;

        let place = store::place(caller.customer, project, ContentId::new());
        stray::insert(&self.db, place, announced).await?;
        let terms = Terms { left, sha256: expected, renew: stray::renewal(&self.db, place) };
        match self.store(caller, place, head, opened.contents(), terms).await {
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
    pub(super) async fn left(
        &self,
        db: impl PgExecutor<'_>,
        customer: CustomerId,
        announced: i64,
    ) -> Result<Option<(u64, Fault)>, Fault> {
        self.store.check_size(announced)?;
        let Some(limit) = self.limit() else { return Ok(None) };
        let (stored, uploading) = stray::sizes(db, customer).await?;
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
        pieces: Pieces,
        terms: Terms,
    ) -> Result<(StoredFile, bool), Status> {
        let stored = self.store.receive(place, pieces, terms).await?;
        Ok(self.insert(caller, place, &head, &stored).await?)
    }

    async fn insert(
        &self,
        caller: &Caller,
        place: Place,
        head: &UploadFileHead,
        stored: &Stored,
    ) -> Result<(StoredFile, bool), Fault> {
        let mut tx = begin(&self.db).await?;
        let inserted = self.insert_in(&mut tx, caller, place, head, stored).await?;
        tx.commit().await?;
        Ok(inserted)
    }

    /// Inserts the file of stored bytes as [`Files::store`] does, as a part of a transaction.
    pub(super) async fn insert_in(
        &self,
        tx: &mut PgTransaction<'_>,
        caller: &Caller,
        place: Place,
        head: &UploadFileHead,
        stored: &Stored,
    ) -> Result<(StoredFile, bool), Fault> {
        let project = ProjectId(place.folder);
        projects::lock_shared(tx, caller.customer, project).await?;
        store::lock_quota(tx, caller.customer).await?;
        let content = store::insert_content(tx, place, stored).await?;
        // Only a deletion removes contents, and it waits for the lock of the project.
        let content = content.ok_or(Fault::Unavailable("the file"))?;
        let is_new = content.0 == place.id;
        if is_new {
            stray::adopt(&mut **tx, place).await?;
            let (stored, _) = stray::sizes(&mut **tx, caller.customer).await?;
            if self.limit().is_some_and(|limit| stored > limit) {
                return Err(self.exceeded());
            }
        }
        let file = store::insert(tx, caller, project, content, head).await?;
        Ok((file, is_new))
    }
}
