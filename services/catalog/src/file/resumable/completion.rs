//! The end of an upload: its parts become a file.

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{Fault, FileId, catalog::UploadFileHead};
use assay_storage::{Place, Stored, Terms};
use futures::{StreamExt, TryStreamExt, stream};
use tonic::Status;

use super::{
    Writer, removal,
    store::{self, Claimed},
};
use crate::file::{Files, stray};

impl Files {
    /// Makes an upload a file: of its parts, and of the last one, which is stored but not counted. If this fails, the
    /// last part is removed, and the client sends it again.
    pub(super) async fn complete(
        &self,
        caller: &Caller,
        writer: &Writer,
        upload: &Claimed,
        last: Option<(Place, Stored)>,
    ) -> Result<(), Status> {
        let parts = store::parts(&self.db, writer).await;
        let (place, stored) = match (parts, last) {
            // The only part is the file as it is.
            (Ok(parts), Some(only)) if parts.is_empty() => only,
            (parts, last) => {
                let last = last.map(|(place, _)| place);
                let joined = match parts {
                    Ok(parts) => self.join(writer, parts, last).await,
                    Err(fault) => Err(fault.into()),
                };
                if let Some(last) = last {
                    self.remove(last).await;
                }
                joined?
            }
        };
        let inserted = self.insert_complete(caller, writer, upload, (place, stored)).await;
        self.settle(place, inserted.as_ref().ok().copied()).await?;
        inserted?;
        Ok(())
    }

    /// Stores all parts as one.
    async fn join(
        &self,
        writer: &Writer,
        parts: Vec<Place>,
        last: Option<Place>,
    ) -> Result<(Place, Stored), Status> {
        let place = writer.new_place();
        stray::insert(&self.db, place, 0).await?;
        let renewed = last.into_iter().chain([place]).collect();
        let renew = store::renewal(&self.db, writer, renewed);
        let terms = Terms { renew, turn: Some(self.turn(writer.customer)), ..Terms::default() };
        let files = self.store.clone();
        let pieces = stream::iter(parts.into_iter().chain(last)).then(move |part| {
            let files = files.clone();
            async move { Ok::<_, Fault>(files.get(part).await.map_err(lost)?.1) }
        });
        let pieces = pieces.try_flatten().map_err(Status::from).boxed();
        match self.store.receive(place, pieces, terms).await {
            Ok(stored) => Ok((place, stored)),
            Err(unstored) => Err(self.discard(place, unstored).await),
        }
    }

    /// Inserts the file of an upload. Returns the place of its contents, which is another one if the project has them
    /// already. A file that is not the one that the client has announced ends the upload.
    async fn insert_complete(
        &self,
        caller: &Caller,
        writer: &Writer,
        upload: &Claimed,
        (place, stored): (Place, Stored),
    ) -> Result<Place, Fault> {
        let mut tx = begin(&self.db).await?;
        if upload.sha256.as_ref().is_some_and(|expected| expected[..] != stored.sha256) {
            // The upload may belong to another request by now.
            store::renew(&mut *tx, writer).await?;
            removal::delete(&mut tx, writer.customer, writer.project, writer.upload).await?;
            tx.commit().await?;
            let problem = "is not the SHA-256 of the file that has arrived: upload it again";
            return Err(Fault::invalid("digest", problem));
        }
        let head = UploadFileHead {
            name: upload.name.clone(),
            content_type: upload.content_type.clone(),
            ..UploadFileHead::default()
        };
        let (file, contents) = self.insert_in(&mut tx, caller, place, &head, &stored).await?;
        store::finish(&mut tx, writer, (FileId::from_record(&file.id)?, stored.size)).await?;
        tx.commit().await?;
        Ok(contents)
    }
}

/// Returns the conflict of an upload of which the store does not have a part any more.
fn lost(fault: Fault) -> Fault {
    match fault {
        Fault::NotFound(_) => Fault::Conflict {
            code: "upload_part_missing",
            reason: "the store of files has lost a part of the upload: delete the upload, and begin it again".to_owned(),
        },
        other => other,
    }
}
