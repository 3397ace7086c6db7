//! Uploads whose size the client announces later. Until then, room is claimed as bytes arrive.

use assay_database::begin;
use assay_proto::{Fault, catalog::AppendUploadTarget};
use assay_storage::{Claim, Room};
use futures::FutureExt;

use super::{
    Writer,
    store::{self, Claimed},
};
use crate::file::{Files, store as files};

impl Files {
    /// Takes the size of an upload that the client announces. It is recorded with its room, unless the bytes are all
    /// there: then it is recorded with the file, so that no upload has all of its bytes without a file.
    pub(super) async fn announce(
        &self,
        writer: &Writer,
        upload: &mut Claimed,
        target: &AppendUploadTarget,
    ) -> Result<(), Fault> {
        let (Some(length), None) = (target.length, upload.size) else { return Ok(()) };
        let lacking = length - target.offset;
        if lacking > 0 {
            self.store.check_size(length)?;
            let mut tx = begin(&self.db).await?;
            files::lock_quota(&mut tx, writer.customer).await?;
            self.left(&mut *tx, writer.customer, lacking).await?;
            store::announce(&mut tx, writer, length).await?;
            tx.commit().await?;
        }
        upload.size = Some(length);
        Ok(())
    }

    /// Returns the room of a part of an upload, which grows with it; none if the size of the upload has its room, or
    /// without a limit.
    pub(super) fn room_of_part(&self, writer: &Writer, size: Option<i64>) -> Option<Room> {
        self.limit().filter(|_| size.is_none())?;
        let (this, writer) = (self.clone(), *writer);
        let more: Claim = Box::new(move |wanted| {
            let this = this.clone();
            async move { this.claim_for_part(&writer, wanted).await }.boxed()
        });
        Some(Room { claimed: 0, more })
    }

    /// Claims room for up to this number of bytes more. Returns for how many, at least one.
    async fn claim_for_part(&self, writer: &Writer, wanted: u64) -> Result<u64, Fault> {
        let mut tx = begin(&self.db).await?;
        files::lock_quota(&mut tx, writer.customer).await?;
        let left = self.left(&mut *tx, writer.customer, 1).await?;
        let claimed = left.map_or(wanted, |left| left.min(wanted));
        store::grow(&mut tx, writer, i64::try_from(claimed).map_err(Fault::internal)?).await?;
        tx.commit().await?;
        Ok(claimed)
    }
}

/// Fails if a client announces a size that cannot be that of the upload, which has the bytes before the offset.
pub(super) fn check(upload: &Claimed, target: &AppendUploadTarget) -> Result<(), Fault> {
    let Some(length) = target.length else { return Ok(()) };
    let reason = match upload.size {
        Some(size) if size != length => format!("Upload-Length: the upload has the size {size}"),
        None if length < target.offset => {
            format!("Upload-Length: the upload has {} bytes already", target.offset)
        }
        _ => return Ok(()),
    };
    Err(Fault::Conflict { code: "upload_length_mismatch", reason })
}
