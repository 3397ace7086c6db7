//! Uploads: a row before any byte, and a file in the transaction that makes the bytes its contents.

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    ContentId, CustomerId, Fault, ProjectId,
    catalog::{StoredFile, UploadFileHead, UploadFileRequest},
};
use assay_storage::{Claim, Place, Room, Stored, Terms, pieces_until};
use futures::FutureExt;
use sqlx::{PgExecutor, PgTransaction};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::{
    Files,
    intake::{self, Opened},
    rules, store, stray,
};
use crate::project::store as projects;

impl Files {
    /// Receives and stores a file. Goes on if the client breaks off, so that nothing is left of the file, and its room
    /// is free at once. Only the wait for its turn ends then.
    pub(super) async fn receive(
        &self,
        caller: &Caller,
        messages: Streaming<UploadFileRequest>,
    ) -> Result<StoredFile, Status> {
        let opened = intake::open(messages).await?;
        let (this, caller) = (self.clone(), caller.clone());
        let gone = CancellationToken::new();
        let _gone = gone.clone().drop_guard();
        let storing = async move { this.store_opened(&caller, opened, gone).await };
        self.runtime.spawn_call(storing).await.map_err(Fault::internal)?
    }

    /// Stores a file whose name has arrived, for a client that has `gone` when the token is cancelled.
    async fn store_opened(
        &self,
        caller: &Caller,
        opened: Opened,
        gone: CancellationToken,
    ) -> Result<StoredFile, Status> {
        let project = ProjectId::from_path(&opened.target.project_id)?;
        let (head, expected) = (opened.head.clone(), rules::valid(&opened.head)?);
        let announced = opened.target.size.unwrap_or_default().max(0);
        projects::find(&self.db, caller.customer, project).await?;
        let place = store::place(caller.customer, project, ContentId::new());
        self.claim(place, announced).await?;
        let terms = Terms {
            room: self.room(place, announced),
            sha256: expected,
            renew: stray::renewal(&self.db, place),
            turn: Some(self.turn(caller.customer).until(gone)),
        };
        let contents = pieces_until(opened.contents(), self.runtime.end_of_calls());
        let stored = match self.store.receive(place, contents, terms).await {
            Ok(stored) => stored,
            Err(unstored) => return Err(self.discard(place, unstored).await),
        };
        let inserted = self.insert(caller, place, &head, &stored).await;
        self.settle(place, inserted.as_ref().ok().map(|(_, contents)| *contents)).await?;
        Ok(inserted?.0)
    }

    /// Removes stored bytes unless they are the contents of a file. If the project has the same contents at another place,
    /// but the store has lost their bytes, it gets them back.
    pub(super) async fn settle(&self, place: Place, contents: Option<Place>) -> Result<(), Fault> {
        if contents == Some(place) {
            return Ok(());
        }
        let restored = match contents {
            Some(contents) => self.store.copy_if_missing(place, contents).await,
            None => Ok(()),
        };
        self.remove(place).await;
        restored
    }

    /// Records bytes before they are stored, and claims room for those that the client has announced.
    async fn claim(&self, place: Place, announced: i64) -> Result<(), Fault> {
        self.store.check_size(announced)?;
        let mut tx = begin(&self.db).await?;
        store::lock_quota(&mut tx, place.customer).await?;
        self.left(&mut *tx, place.customer, announced).await?;
        stray::insert(&mut *tx, place, announced).await?;
        Ok(tx.commit().await?)
    }

    /// Returns the room of a file, which grows with it; none without a limit.
    fn room(&self, place: Place, announced: i64) -> Option<Room> {
        self.limit()?;
        let this = self.clone();
        let more: Claim = Box::new(move |wanted| {
            let this = this.clone();
            async move { this.claim_more(place, wanted).await }.boxed()
        });
        Some(Room { claimed: announced.unsigned_abs(), more })
    }

    /// Claims room for up to this number of bytes more. Returns for how many, at least one.
    async fn claim_more(&self, place: Place, wanted: u64) -> Result<u64, Fault> {
        let mut tx = begin(&self.db).await?;
        store::lock_quota(&mut tx, place.customer).await?;
        let left = self.left(&mut *tx, place.customer, 1).await?;
        let claimed = left.map_or(wanted, |left| left.min(wanted));
        stray::grow(&mut *tx, place, i64::try_from(claimed).map_err(Fault::internal)?).await?;
        tx.commit().await?;
        Ok(claimed)
    }

    /// Returns how many bytes the customer has left, if there is a limit. Fails if the wanted ones are more, or if none is
    /// left. The transaction has locked the quota.
    pub(super) async fn left(
        &self,
        db: impl PgExecutor<'_>,
        customer: CustomerId,
        wanted: i64,
    ) -> Result<Option<u64>, Fault> {
        let Some(limit) = self.limit() else { return Ok(None) };
        let (stored, uploading) = stray::sizes(db, customer).await?;
        let left = limit.saturating_sub(stored).saturating_sub(uploading);
        if wanted > left || left <= 0 {
            return Err(self.exceeded());
        }
        Ok(Some(left.unsigned_abs()))
    }

    /// Inserts the file of stored bytes. Returns the file, and the place of its contents: another one if the project has them
    /// already.
    async fn insert(
        &self,
        caller: &Caller,
        place: Place,
        head: &UploadFileHead,
        stored: &Stored,
    ) -> Result<(StoredFile, Place), Fault> {
        let mut tx = begin(&self.db).await?;
        let inserted = self.insert_in(&mut tx, caller, place, head, stored).await?;
        tx.commit().await?;
        Ok(inserted)
    }

    /// Inserts the file of stored bytes as [`Files::insert`] does, as a part of a transaction.
    pub(super) async fn insert_in(
        &self,
        tx: &mut PgTransaction<'_>,
        caller: &Caller,
        place: Place,
        head: &UploadFileHead,
        stored: &Stored,
    ) -> Result<(StoredFile, Place), Fault> {
        let project = ProjectId(place.folder);
        projects::lock_shared(tx, caller.customer, project).await?;
        store::lock_quota(tx, caller.customer).await?;
        let content = store::insert_content(tx, place, stored).await?;
        // Only a deletion removes contents, and it waits for the lock of the project.
        let content = content.ok_or(Fault::Unavailable("the file"))?;
        if content.0 == place.id {
            stray::adopt(&mut **tx, place).await?;
            let (stored, _) = stray::sizes(&mut **tx, caller.customer).await?;
            if self.limit().is_some_and(|limit| stored > limit) {
                return Err(self.exceeded());
            }
        }
        let file = store::insert(tx, caller, project, content, head).await?;
        Ok((file, store::place(caller.customer, project, content)))
    }
}
