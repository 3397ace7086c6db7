//! Uploads in several requests: a connection that breaks costs only the bytes that were on their way.
//!
//! A request is cut into parts. Each is stored under an id of its own, and its row appears in the transaction that
//! counts its bytes (`received`). So all bytes that are counted are there, and bytes that are not counted have a row in
//! `stray_content`, by which they are found. The last part is never counted by itself: it is counted in the
//! transaction that makes the joined parts a file. So an upload never has all of its bytes without a file, and a
//! client that asks after a crash is asked for the last part again.
//!
//! One request at a time appends to an upload: its id stands in the row, and it renews the row while bytes arrive. A
//! request that has died gives way after [`store::PATIENCE`]. Until then, and after it, a request that is not
//! the writer cannot count anything.

mod append;
mod arriving;
mod checksum;
mod completion;
mod length;
pub(crate) mod removal;
pub(crate) mod store;

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    CustomerId, Fault, ProjectId, UploadId,
    catalog::{AppendUploadTarget, Upload, UploadCreation, UploadFileHead},
};
use assay_storage::Place;
use tonic::Status;
use uuid::Uuid;

use self::store::NewUpload;
use super::{Files, rules, store as files};
use crate::project::store as projects;

/// Maximum length of the metadata of an upload, in bytes.
const LONGEST_METADATA: usize = 4096;

/// A request that appends to an upload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    pub(crate) customer: CustomerId,
    pub(crate) project: ProjectId,
    pub(crate) upload: UploadId,
    /// Id of the request.
    pub(crate) id: Uuid,
}

impl Writer {
    fn of(customer: CustomerId, target: &AppendUploadTarget) -> Result<Self, Fault> {
        let project = ProjectId::from_path(&target.project_id)?;
        Ok(Self::new(customer, project, UploadId::from_path(&target.id)?))
    }

    fn new(customer: CustomerId, project: ProjectId, upload: UploadId) -> Self {
        Self { customer, project, upload, id: Uuid::now_v7() }
    }

    /// Returns a place for new bytes.
    fn new_place(&self) -> Place {
        Place { customer: self.customer, folder: self.project.0, id: Uuid::now_v7() }
    }
}

impl Files {
    /// Begins an upload. An empty file is stored at once.
    pub(super) async fn begin_upload(
        &self,
        caller: &Caller,
        project_id: &str,
        creation: UploadCreation,
    ) -> Result<Upload, Status> {
        let project = ProjectId::from_path(project_id)?;
        let upload = valid(creation)?;
        // Without a size, room is claimed as bytes arrive.
        let claimed = upload.size.unwrap_or_default();
        self.store.check_size(claimed)?;
        let writer = Writer::new(caller.customer, project, UploadId::new());
        let mut tx = begin(&self.db).await?;
        projects::lock_shared(&mut tx, caller.customer, project).await?;
        files::lock_quota(&mut tx, caller.customer).await?;
        self.left(&mut *tx, caller.customer, claimed).await?;
        store::insert(&mut tx, &writer, &upload).await?;
        tx.commit().await.map_err(Fault::from)?;
        if upload.size == Some(0) {
            let completed = self.complete_empty(caller, &writer).await;
            if completed.is_err() {
                self.abandon(&writer).await;
            }
            completed?;
        }
        Ok(store::get(&self.db, caller.customer, project, writer.upload).await?)
    }

    async fn complete_empty(&self, caller: &Caller, writer: &Writer) -> Result<(), Status> {
        let claimed = store::claim(&self.db, writer, 0).await?;
        let claimed = claimed.ok_or(Fault::NotFound("upload"))?;
        self.complete(caller, writer, &claimed, None).await
    }

    /// Deletes an upload that its client does not know. If this fails, the upload expires.
    async fn abandon(&self, writer: &Writer) {
        let deleted = async {
            let mut tx = begin(&self.db).await?;
            removal::delete(&mut tx, writer.customer, writer.project, writer.upload).await?;
            Ok::<_, Fault>(tx.commit().await?)
        };
        match deleted.await {
            Ok(()) | Err(Fault::NotFound(_)) => {}
            Err(fault) => tracing::warn!(%fault, "cannot delete an upload; it expires"),
        }
    }
}

/// Checks what a client has sent about an upload.
fn valid(creation: UploadCreation) -> Result<NewUpload, Fault> {
    let UploadCreation { name, content_type, metadata, size, sha256 } = creation;
    let head = UploadFileHead { name, content_type, sha256 };
    let sha256 = rules::valid(&head)?;
    if metadata.len() > LONGEST_METADATA {
        let problem = format!("must have at most {LONGEST_METADATA} bytes");
        return Err(Fault::invalid("metadata", problem));
    }
    if size.is_some_and(|size| size < 0) {
        return Err(Fault::invalid("length", "must not be negative"));
    }
    Ok(NewUpload { head, metadata, size, sha256 })
}
