//! Requests that append to an upload.

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    Fault, Piece,
    catalog::{AppendUploadRequest, AppendUploadTarget, Upload},
};
use assay_rpc::body;
use assay_storage::{Place, Stored, Terms};
use futures::Stream;
use tonic::{Status, Streaming};

use super::{
    Writer,
    arriving::{Arriving, too_long},
    checksum::Checksum,
    length,
    store::{self, Claimed, MOST_PARTS},
};
use crate::file::{Files, stray};

impl Files {
    /// Appends a body to an upload, which may begin with it. Goes on if the client breaks off, so that what has arrived is
    /// stored.
    pub(in crate::file) async fn append(
        &self,
        caller: &Caller,
        messages: Streaming<AppendUploadRequest>,
    ) -> Result<Upload, Status> {
        let (target, pieces) = body::open(messages).await?;
        let checksum = Checksum::of(&target)?;
        let (this, caller) = (self.clone(), caller.clone());
        let appending = async move { this.append_to(&caller, target, pieces, checksum).await };
        self.runtime.spawn_call(appending).await.map_err(Fault::internal)?
    }

    /// Appends a body to an upload. One that begins with the body is deleted if it does not arrive, since the client does
    /// not know it yet.
    async fn append_to(
        &self,
        caller: &Caller,
        mut target: AppendUploadTarget,
        pieces: impl Stream<Item = Result<Piece, Status>> + Send + 'static,
        checksum: Option<Checksum>,
    ) -> Result<Upload, Status> {
        let creation = target.creation.take();
        let is_new = creation.is_some();
        if let Some(creation) = creation {
            target.id = self.begin_upload(caller, &target.project_id, creation).await?.id;
            target.offset = 0;
        }
        let writer = Writer::of(caller.customer, &target)?;
        let appended = self.append_as(caller, &writer, &target, (pieces, checksum)).await;
        if is_new && appended.is_err() {
            self.abandon(&writer).await;
        }
        appended
    }

    /// Appends a body as the only request that does so.
    async fn append_as(
        &self,
        caller: &Caller,
        writer: &Writer,
        target: &AppendUploadTarget,
        (pieces, checksum): (
            impl Stream<Item = Result<Piece, Status>> + Send + 'static,
            Option<Checksum>,
        ),
    ) -> Result<Upload, Status> {
        let Some(mut upload) = store::claim(&self.db, writer, target.offset).await? else {
            return self.without_claim(writer, target).await;
        };
        let written = match self.lacking(writer, &mut upload, target).await {
            Ok(lacking) => {
                let body = Arriving::new(pieces, lacking, checksum, self.runtime.stopping());
                let written = self.write(caller, writer, (&upload, target.offset), body);
                self.before_the_end(written).await
            }
            Err(fault) => Err(fault.into()),
        };
        store::release(&self.db, writer).await?;
        written?;
        Ok(store::get(&self.db, writer.customer, writer.project, writer.upload).await?)
    }

    /// Does work that must not outlive the program. Bytes that it stores until then are counted.
    async fn before_the_end(
        &self,
        work: impl Future<Output = Result<(), Status>>,
    ) -> Result<(), Status> {
        tokio::select! {
            done = work => done,
            () = self.runtime.end_of_calls() => Err(Fault::Unavailable("the catalog").into()),
        }
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
        if upload.size == Some(position) {
            // The client has announced the size after the last byte. Or it is an empty file, whose storing has failed
            // when the upload began.
            return self.complete(caller, writer, upload, None).await;
        }
        while body.has_more().await {
            let place = writer.new_place();
            let part = self.store_part(writer, place, upload.size, &mut body).await?;
            if Some(position + part.size) == upload.size {
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
        size: Option<i64>,
        body: &mut Arriving,
    ) -> Result<Stored, Status> {
        // The claim of the upload counts against the quota, not its parts.
        stray::insert(&self.db, place, 0).await?;
        let terms = Terms {
            room: self.room_of_part(writer, size),
            renew: store::renewal(&self.db, writer, vec![place]),
            turn: Some(self.turn(writer.customer)),
            ..Terms::default()
        };
        let (uploads, customer) = (self.uploads.clone(), writer.customer);
        let part = body.part(move || uploads.is_wanted_from(customer));
        let stored = match self.store.receive(place, part, terms).await {
            Ok(stored) => stored,
            Err(unstored) => return Err(self.discard(place, unstored).await),
        };
        if let Err(fault) = body.check_part() {
            self.remove(place).await;
            return Err(fault.into());
        }
        Ok(stored)
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

    /// Returns how many bytes an upload lacks: up to the largest size, if its own is not known. Takes the size that the
    /// client announces. Fails if the body has more, or if the upload has too many parts.
    async fn lacking(
        &self,
        writer: &Writer,
        upload: &mut Claimed,
        target: &AppendUploadTarget,
    ) -> Result<usize, Fault> {
        length::check(upload, target)?;
        let size = upload.size.or(target.length);
        if size.is_none() {
            self.store.check_size(target.offset + 1)?;
        }
        let lacking = size.unwrap_or(self.store.largest()) - target.offset;
        if lacking > 0 && upload.parts >= MOST_PARTS {
            let reason = format!(
                "the upload has {MOST_PARTS} parts, its limit: delete it, and begin one with larger requests"
            );
            return Err(Fault::Refused { code: "too_many_parts", reason });
        }
        if target.size.is_some_and(|size| size > lacking) {
            return Err(too_long());
        }
        self.announce(writer, upload, target).await?;
        usize::try_from(lacking).map_err(Fault::internal)
    }
}
