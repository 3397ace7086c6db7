//! The contents of files, whole or in ranges.

use assay_proto::{CustomerId, Fault, FileId, catalog::FileContentsBatch};
use assay_rpc::list::Batches;
use assay_storage::Wanted;
use futures::{StreamExt, TryStreamExt, stream};
use tonic::Status;
use uuid::Uuid;

use super::{
    Files, rules,
    store::{self, Placed},
};

impl Files {
    /// Returns the contents of a file, in chunks. The first message describes them.
    pub(super) async fn contents(
        &self,
        customer: CustomerId,
        stored: Placed,
        wanted: Wanted,
    ) -> Result<Batches<FileContentsBatch>, Fault> {
        let place = stored.place(customer)?;
        let part = wanted.part(stored.file.size, &stored.file.sha256);
        let chunks = self.store.get_part(place, &part).await?;
        let head = FileContentsBatch {
            served_as: rules::served_as(&stored.file.content_type),
            range: part.range,
            is_unsatisfiable: part.is_unsatisfiable,
            file: Some(stored.file),
            ..FileContentsBatch::default()
        };
        let chunks = chunks.map_ok(|chunk| FileContentsBatch { chunk, ..Default::default() });
        Ok(stream::iter([Ok(head)]).chain(chunks.map_err(Status::from)).boxed())
    }

    /// Returns the contents of a file to which one of these records refers.
    pub(crate) async fn contents_for(
        &self,
        customer: CustomerId,
        records: &[Uuid],
        id: FileId,
        wanted: Wanted,
    ) -> Result<Batches<FileContentsBatch>, Fault> {
        let stored = store::referred(&self.db, customer, records, id).await?;
        self.contents(customer, stored, wanted).await
    }
}
