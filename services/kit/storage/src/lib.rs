//! The store of the bytes of files and artifacts: a folder, or a bucket of an S3-compatible service.
//!
//! Paths consist of ids only. The names, types and owners of the bytes are in the database of the service that
//! owns them. A service records an id before it stores bytes under it, and shows the bytes in the
//! transaction that makes them a record, so bytes without a record are found and removed later.

mod arrival;
mod call;
mod config;
mod end;
mod listing;
mod pace;
mod removal;
#[cfg(test)]
mod tests;
mod wanted;

use std::{fs, ops::Range, path::PathBuf, pin::Pin, sync::Arc};

use anyhow::Context;
use assay_proto::{CustomerId, Fault};
use bytes::{Bytes, BytesMut};
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, WriteMultipart, aws::AmazonS3Builder,
    local::LocalFileSystem, path::Path, prefix::PrefixStore,
};
use tonic::Status;
use uuid::Uuid;

use self::{
    arrival::{Arrival, too_large},
    call::{available, measured, within},
    end::finish,
    pace::Pace,
};
pub use self::{
    arrival::{Claim, Renew, Room, Stored, Terms, Unstored, parse_sha256},
    call::describe_metrics,
    config::FileStoreConfig,
    listing::{Found, Listing},
    wanted::{Part, Wanted},
};

/// The chunks of an uploaded file, as they arrive.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// Returns the pieces of a file as they arrive. They break off at the `end`, which is that of the program.
pub fn pieces_until(pieces: Pieces, end: impl Future<Output = ()> + Send + 'static) -> Pieces {
    let state = Some((pieces, end.boxed()));
    Box::pin(stream::unfold(state, |state| async move {
        let (mut pieces, mut end) = state?;
        tokio::select! {
            piece = pieces.next() => Some((piece?, Some((pieces, end)))),
            () = &mut end => Some((Err(Fault::Unavailable("the service").into()), None)),
        }
    }))
}

/// Size of the parts in which files are sent to a bucket, in bytes. S3 has no smaller ones.
const PART: usize = 5 << 20;

/// Size of the parts in which files are written to a folder, in bytes.
const PART_OF_FOLDER: usize = 1 << 20;

/// Maximum number of parts that are sent at the same time.
const PARTS: usize = 2;

/// Maximum number of parts of a file that are in memory: those that are sent, and the one that arrives.
const PARTS_IN_MEMORY: usize = PARTS + 1;

/// Size from which chunks of a file are returned, in bytes. Folders have chunks of 8 KiB.
const CHUNK: usize = 128 << 10;

/// Place of the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub customer: CustomerId,
    /// Id of the record that contains the file, such as its project or execution.
    pub folder: Uuid,
    pub id: Uuid,
}

impl Place {
    fn path(self) -> Path {
        folder(self.customer, self.folder).join(self.id.to_string())
    }
}

/// The store of the files.
#[derive(Clone, Debug)]
pub struct FileStore {
    store: Arc<dyn ObjectStore>,
    /// The same store, for files that are read for as long as their clients take.
    reader: Arc<dyn ObjectStore>,
    /// The folder, if the store is one.
    folder: Option<PathBuf>,
    /// Maximum size of a file, in bytes.
    largest: u64,
}

impl FileStore {
    /// Opens the store. A folder is created if it does not exist.
    pub fn open(config: &FileStoreConfig) -> anyhow::Result<Self> {
        Self::open_with(config, false)
    }

    /// Opens the store like [`FileStore::open`]. Files in a folder are on the disk before [`FileStore::put`]
    /// returns.
    pub fn open_synced(config: &FileStoreConfig) -> anyhow::Result<Self> {
        Self::open_with(config, true)
    }

    fn open_with(config: &FileStoreConfig, is_synced: bool) -> anyhow::Result<Self> {
        let artifacts = config.artifacts.as_deref().context("set ASSAY_ARTIFACTS")?;
        let largest = u64::from(config.largest_file_mib) << 20;
        let Some(bucket) = artifacts.strip_prefix("s3://") else {
            return Self::in_folder(artifacts, is_synced, largest);
        };
        let (bucket, folder) = bucket.split_once('/').unwrap_or((bucket, ""));
        let open = |client: AmazonS3Builder| {
            let store = client.build().context("invalid ASSAY_ARTIFACTS or ASSAY_S3_…")?;
            anyhow::Ok(Arc::new(PrefixStore::new(store, folder)))
        };
        let (store, reader) = (open(config.bucket(bucket))?, open(config.bucket_to_read(bucket))?);
        Ok(Self { store, reader, folder: None, largest })
    }

    fn in_folder(folder: &str, is_synced: bool, largest: u64) -> anyhow::Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {folder}"))?;
        let store = LocalFileSystem::new_with_prefix(folder)?
            .with_automatic_cleanup(true)
            .with_fsync(is_synced);
        let store = Arc::new(store);
        Ok(Self { reader: store.clone(), store, folder: Some(folder.into()), largest })
    }

    /// Returns the maximum size of a file, in bytes.
    pub fn largest(&self) -> i64 {
        i64::try_from(self.largest).unwrap_or(i64::MAX)
    }

    /// Returns the size of the parts in which a file is stored, in bytes.
    fn part(&self) -> usize {
        if self.folder.is_some() { PART_OF_FOLDER } else { PART }
    }

    /// Returns how many files may arrive at the same time if their parts may take this number of bytes of memory.
    pub fn arrivals_within(&self, memory: usize) -> usize {
        memory / (PARTS_IN_MEMORY * self.part())
    }

    /// Fails if a file of this size in bytes would be larger than files may be.
    pub fn check_size(&self, size: i64) -> Result<(), Fault> {
        let fits = u64::try_from(size).is_ok_and(|size| size <= self.largest);
        if fits { Ok(()) } else { Err(too_large(self.largest)) }
    }

    /// Stores a file as [`FileStore::receive`] does, and returns its size in bytes.
    pub async fn put(&self, place: Place, file: Pieces) -> Result<i64, Status> {
        Ok(self.receive(place, file, Terms::default()).await?.size)
    }

    /// Stores a file. One that is incomplete or too large, or that does not meet the terms, is not stored. If the store does
    /// not confirm the end of a file, it may have the file later.
    pub async fn receive(
        &self,
        place: Place,
        mut file: impl Stream<Item = Result<Bytes, Status>> + Send + Unpin,
        mut terms: Terms,
    ) -> Result<Stored, Unstored> {
        let unstored = |status, may_appear| Unstored { status, may_appear };
        let path = place.path();
        let upload = available(measured("begin", self.store.put_multipart(&path)).await);
        let upload = upload.map_err(|fault| unstored(fault.into(), false))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, self.part());
        let mut pacing = Pace::new(terms.turn.take(), self.part());
        let arrival = Arrival::new(terms, self.largest);
        match fill(&mut upload, arrival, &mut pacing, &mut file).await {
            Ok((stored, renew)) => {
                let finished = finish(upload.finish(), stored.size, renew).await;
                finished.map_err(|fault| unstored(fault.into(), true))?;
                Ok(stored)
            }
            Err(status) => {
                if let Err(error) = measured("abort", upload.abort()).await {
                    tracing::warn!(%error, "cannot abort an upload; its parts remain in the store");
                }
                Err(unstored(status, false))
            }
        }
    }

    /// Returns the size of a file in bytes, and its chunks.
    pub async fn get(
        &self,
        place: Place,
    ) -> Result<(i64, impl Stream<Item = Result<Bytes, Fault>> + Send + use<>), Fault> {
        let (size, chunks) = self.read(place, None).await?;
        Ok((i64::try_from(size).unwrap_or(i64::MAX), chunks))
    }

    /// Returns the chunks of a range of a file, which must not be empty.
    pub async fn get_range(
        &self,
        place: Place,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = Result<Bytes, Fault>> + Send + use<>, Fault> {
        let (_, chunks) = self.read(place, Some(GetRange::Bounded(range))).await?;
        Ok(chunks)
    }

    async fn read(
        &self,
        place: Place,
        range: Option<GetRange>,
    ) -> Result<(u64, impl Stream<Item = Result<Bytes, Fault>> + Send + use<>), Fault> {
        let options = GetOptions { range, ..GetOptions::default() };
        let found = match measured("read", self.reader.get_opts(&place.path(), options)).await {
            Err(Error::NotFound { .. }) => return Err(Fault::NotFound("file")),
            found => available(found)?,
        };
        let size = found.meta.size;
        let chunks = stream::unfold(Some(found.into_stream()), |chunks| async {
            let mut chunks = chunks?;
            match joined(&mut chunks).await {
                Ok(Some(chunk)) => Some((Ok(chunk), Some(chunks))),
                Ok(None) => None,
                Err(error) => Some((available(Err(error)), None)),
            }
        });
        Ok((size, chunks))
    }

    /// Copies a file to a place whose file was lost, and does nothing if that has a file.
    pub async fn copy_if_missing(&self, from: Place, to: Place) -> Result<(), Fault> {
        match measured("find", self.store.head(&to.path())).await {
            Err(Error::NotFound { .. }) => {}
            found => return available(found.map(drop)),
        }
        tracing::warn!(content.id = %to.id, "the store had lost a file; its bytes have arrived again");
        available(measured("copy", self.store.copy(&from.path(), &to.path())).await)
    }
}

/// Sends the chunks of a file to the store, as fast as it accepts them.
async fn fill(
    upload: &mut WriteMultipart,
    mut arrival: Arrival,
    pace: &mut Pace,
    file: &mut (impl Stream<Item = Result<Bytes, Status>> + Send + Unpin),
) -> Result<(Stored, Renew), Status> {
    while let Some(mut piece) = pace.next(file).await? {
        arrival.add(&piece).await?;
        while !piece.is_empty() {
            pace.begin().await?;
            available(measured("write", upload.wait_for_capacity(PARTS)).await)?;
            upload.put(piece.split_to(pace.take(piece.len())));
        }
    }
    Ok(arrival.end()?)
}

/// Returns the next chunks of a file as one; none at its end.
async fn joined(
    chunks: &mut BoxStream<'static, Result<Bytes, Error>>,
) -> Result<Option<Bytes>, Error> {
    let Some(first) = within(chunks.try_next()).await? else { return Ok(None) };
    if first.len() >= CHUNK {
        return Ok(Some(first));
    }
    let mut joined = BytesMut::with_capacity(CHUNK);
    joined.extend_from_slice(&first);
    while joined.len() < CHUNK
        && let Some(chunk) = within(chunks.try_next()).await?
    {
        joined.extend_from_slice(&chunk);
    }
    Ok(Some(joined.freeze()))
}

fn folder(customer: CustomerId, folder: Uuid) -> Path {
    Path::from_iter([customer.to_string(), folder.to_string()])
}
