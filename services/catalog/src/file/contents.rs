//! The contents of files, whole or in ranges.

use assay_proto::{
    CustomerId, Fault, FileId,
    catalog::{FileContentsBatch, FileRange},
};
use assay_rpc::list::Batches;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use tonic::Status;
use uuid::Uuid;

use super::{
    Files, rules,
    store::{self, Placed},
};

/// The part of a file to return.
pub(crate) struct Wanted {
    /// The whole file by default.
    pub(crate) range: Option<FileRange>,
    /// SHA-256 that the file must have for the range to apply.
    pub(crate) if_sha256: Option<String>,
    /// Whether to return no chunks.
    pub(crate) head_only: bool,
}

impl Files {
    /// Returns the contents of a file, in chunks. The first message describes them.
    pub(super) async fn contents(
        &self,
        customer: CustomerId,
        stored: Placed,
        wanted: Wanted,
    ) -> Result<Batches<FileContentsBatch>, Fault> {
        let (place, size) = (stored.place(customer)?, stored.file.size);
        let applies = wanted.if_sha256.is_none_or(|sha256| sha256 == stored.file.sha256);
        let range = wanted.range.filter(|_| applies).map(|range| range.within(size));
        let head = FileContentsBatch {
            served_as: rules::served_as(&stored.file.content_type),
            range: range.clone().flatten().map(|range| FileRange::of(&range)),
            is_unsatisfiable: range == Some(None),
            file: Some(stored.file),
            ..FileContentsBatch::default()
        };
        let is_empty = wanted.head_only || size == 0 || range == Some(None);
        let chunks: BoxStream<'static, Result<Bytes, Fault>> = match range {
            _ if is_empty => stream::empty().boxed(),
            Some(Some(range)) => {
                let range = range.start.unsigned_abs()..range.end.unsigned_abs();
                self.store.get_range(place, range).await?.boxed()
            }
            _ => self.store.get(place).await?.1.boxed(),
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
