//! Requests that append to an upload.

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    Fault,
    catalog::{AppendUploadRequest, AppendUploadTarget, Upload},
};
use assay_rpc::body;
use assay_storage::{Place, Stored, Terms};
use tonic::{Status, Streaming};
use tracing::Instrument;

use super::{
    Writer,
    arriving::{Arriving, too_long},
    checksum::Checksum,
    store::{self, Claimed, MOST_PARTS},
};
use crate::file::{Files, stray};

impl Files {
    /// Appends a body to an upload. Goes on if the client breaks off, so that what has arrived is stored.
    #[expect(clippy::disallowed_methods, reason = "the task ends with the body")]
    pub(in crate::file) async fn append(
        &self,
        caller: &Caller,
        messages: Streaming<AppendUploadRequest>,
    ) -> Result<Upload, Status> {
        let (target, pieces) = body::open(messages).await?;
        let writer = Writer::of(caller.customer, &target)?;
        let checksum = Checksum::of(&target)?;
        let share = self.uploads.acquire(caller.customer).await?;
        let (this, caller) = (self.clone(), caller.clone());
        let appending = async move {
            let _share = share;
            let Some(upload) = store::claim(&this.db, &writer, target.offset).await? else {
                return this.without_claim(&writer, &target).await;
            };
            let written = match lacking(&upload, &target) {
                Ok(lacking) => {
                    let body = Arriving::new(pieces, lacking, checksum);
                    this.write(&caller, &writer, (&upload, target.offset), body).await
                }
                Err(fault) => Err(fault.into()),
            };
            store::release(&this.db, &writer).await?;
            written?;
            Ok(store::get(&this.db, writer.customer, writer.project, writer.upload).await?)
        };
        tokio::spawn(appending.in_current_span()).await.map_err(Fault::internal)?
    }

    /// Returns the upload if it lacks nothing, or why the request cannot append to it.
    async fn without_claim(
        &self,
        writer: &Writer,
        target: &AppendUploadTarget,
    ) -> Result<Upload, Status> {
        let upload = store::get(&self.db, writer.customer, writer.project, writer.upload).await?;
        if upload.offset != target.offset {
            let reason = format!("Upload-Offset: the upload has {} bytes", upload.offset);
            return Err(Fault::Conflict { code: "upload_offset_mismatch", reason }.into());
        }
        if upload.file_id.is_none() {
            return Err(store::in_use().into());
        }
        if target.size.is_some_and(|size| size > 0) { Err(too_long().into()) } else { Ok(upload) }
    }

    /// Stores a body in parts, which follow the bytes before `position`.
    async fn write(
        &self,
        caller: &Caller,
        writer: &Writer,
        (upload, mut position): (&Claimed, i64),
        mut body: Arriving,
    ) -> Result<(), Status> {
        while body.has_more().await {
            let place = writer.new_place();
            let part = self.store_part(writer, place, &mut body).await?;
            if position + part.size == upload.size {
                return self.complete(caller, writer, upload, Some((place, part))).await;
            }
            self.record(writer, position, (place, part.size)).await?;
            position += part.size;
        }
        Ok(body.check_end()?)
    }

    /// Stores the next part of a body.
    async fn store_part(
        &self,
        writer: &Writer,
        place: Place,
        body: &mut Arriving,
    ) -> Result<Stored, Status> {
        // The size of the upload counts against the quota, not that of its parts.
        stray::insert(&self.db, place, 0).await?;
        let renew = store::renewal(&self.db, writer, vec![place]);
        let terms = Terms { renew, ..Terms::default() };
        let stored = self.store.receive(place, body.part(), terms).await;
        let stored = stored.and_then(|stored| {
            body.check_part()?;
            Ok(stored)
        });
        if stored.is_err() {
            self.remove(place).await;
        }
        stored
    }

    /// Counts the bytes of a stored part.
    async fn record(
        &self,
        writer: &Writer,
        position: i64,
        part: (Place, i64),
    ) -> Result<(), Fault> {
        let recorded = async {
            let mut tx = begin(&self.db).await?;
            store::record(&mut tx, writer, position, part).await?;
            Ok::<_, Fault>(tx.commit().await?)
        };
        let recorded = recorded.await;
        if recorded.is_err() {
            self.remove(part.0).await;
        }
        recorded
    }
}

/// Returns how many bytes an upload lacks. Fails if the client has announced more, or if the upload has too many parts.
fn lacking(upload: &Claimed, target: &AppendUploadTarget) -> Result<usize, Fault> {
    if upload.parts >= MOST_PARTS {
        let reason = format!(
            "the upload has {MOST_PARTS} parts, its limit: delete it, and begin one with larger requests"
        );
        return Err(Fault::Refused { code: "too_many_parts", reason });
    }
    let lacking = upload.size - target.offset;
    if target.size.is_some_and(|size| size > lacking) {
        return Err(too_long());
    }
    usize::try_from(lacking).map_err(Fault::internal)
}
