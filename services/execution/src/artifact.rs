//! Artifacts: files that belong to results, such as screenshots and logs.

mod link;
mod recorded;
mod reference;
mod room;
pub(crate) mod rules;
mod service;
pub(crate) mod staged;
pub(crate) mod store;
mod stray;

use std::time::Instant;

use assay_auth::{Seal, SealConfig};
use assay_database::begin;
use assay_fair::{Shares, Turn};
use assay_ledger::{lease, removal};
use assay_proto::{
    ArtifactId, CustomerId, ExecutionId, Fault,
    execution::{Artifact, ArtifactEntry},
};
use assay_rpc::list::Slice;
use assay_runtime::{PublicUrl, Runtime};
use assay_storage::{FileStore, FileStoreConfig, Pieces, Place, Stored, Terms};
use sqlx::PgPool;
use tonic::Status;

pub use self::recorded::unrecorded;
use self::{
    link::Links,
    store::{Announced, NewArtifact},
};
use crate::quota::Quota;

/// The artifacts: their files, their rows and their links.
#[derive(Clone)]
pub struct Artifacts {
    db: PgPool,
    file_store: FileStore,
    links: Links,
    /// Encrypts the secrets of pools.
    pub(crate) seal: Seal,
    /// Limits the uploads that are stored.
    uploads: Shares,
    /// Limits the transactions that claim room for artifacts, and insert them.
    shares: Shares,
    pub(crate) quota: Quota,
    /// Ends with the program, after the uploads that it stores.
    runtime: Runtime,
}

/// Maximum number of uploads of which bytes are in memory at the same time.
const UPLOADS: usize = 32;

/// Maximum number of bytes that they take together, so that other work fits beside them. In a bucket, with its large
/// parts, they are fewer.
const MEMORY: usize = 240 << 20;

/// Maximum number of transactions that claim room for artifacts, or insert them, at the same time. Other requests need
/// connections too.
const WRITERS: usize = 4;

/// Settings of the store of artifacts and of the links to them.
#[derive(clap::Args, Clone, Debug)]
pub struct ArtifactConfig {
    #[command(flatten)]
    pub file_store: FileStoreConfig,
    /// Keys that sign the links, and encrypt the secrets of pools.
    #[command(flatten)]
    pub seal: SealConfig,
    /// Base of the links.
    #[command(flatten)]
    pub public: PublicUrl,
}

/// Returns where the file of an artifact is.
fn place(customer: CustomerId, execution: ExecutionId, id: ArtifactId) -> Place {
    Place { customer, folder: execution.0, id: id.0 }
}

/// The conflict of a file that people may have looked at when they reviewed the results.
fn is_final(name: &str) -> Fault {
    let reason = format!("the execution has ended, and has a file {name}: choose another name");
    Fault::Conflict { code: "execution_ended", reason }
}

impl Artifacts {
    /// Opens the store. A folder is created if it does not exist.
    pub fn open(
        runtime: &Runtime,
        db: &PgPool,
        config: &ArtifactConfig,
        quota: Quota,
    ) -> anyhow::Result<Self> {
        assay_storage::describe_metrics();
        let file_store = FileStore::open(&config.file_store)?;
        let links = Links::new(&config.seal, config.public.public_url.clone())?;
        let seal = Seal::new(&config.seal)?;
        let uploads = Shares::new(UPLOADS.min(file_store.arrivals_within(MEMORY)));
        let shares = Shares::new(WRITERS);
        let (db, runtime) = (db.clone(), runtime.clone());
        Ok(Self { db, file_store, links, seal, uploads, shares, quota, runtime })
    }

    /// Stores an artifact. Replaces one of the same name as soon as the new file is complete. A file of a client takes
    /// turns with others.
    pub(crate) async fn store(
        &self,
        new: NewArtifact,
        file: Pieces,
        turn: Option<Turn>,
    ) -> Result<Artifact, Status> {
        rules::check_name(&new.name)?;
        rules::check_content_type(&new.content_type)?;
        self.file_store.check_size(new.announced.size)?;
        let id = ArtifactId::new();
        let NewArtifact { customer, execution, announced: Announced { size, .. }, .. } = new;
        self.claim(customer, execution, &[(id, size)]).await?;
        let terms = Terms {
            room: self.room(customer, id, size.unsigned_abs()),
            sha256: new.announced.sha256,
            renew: stray::renewal(&self.db, customer, id),
            turn,
        };
        let place = place(customer, execution, id);
        let Stored { size, .. } = match self.file_store.receive(place, file, terms).await {
            Ok(stored) => stored,
            Err(unstored) => {
                // The sweep removes a file that appears later.
                if !unstored.may_appear {
                    self.remove_file(customer, execution, id).await;
                }
                return Err(unstored.status);
            }
        };
        match self.insert(&new, id, size).await {
            Ok((replaced, expires)) => {
                if let Some(replaced) = replaced {
                    self.remove_file(customer, execution, replaced).await;
                }
                let uri = self.links.link(customer, id, &new.name, expires, None);
                let NewArtifact { name, content_type, .. } = new;
                Ok(Artifact { id: id.to_string(), name, content_type, size, uri })
            }
            Err(fault) => {
                self.remove_file(customer, execution, id).await;
                Err(fault.into())
            }
        }
    }

    /// Removes a file that is not an artifact. If this fails, [`Artifacts::sweep`] does it later.
    async fn remove_file(&self, customer: CustomerId, execution: ExecutionId, id: ArtifactId) {
        if let Err(fault) = self.try_remove_file(customer, execution, id).await {
            tracing::warn!(%fault, artifact.id = %id, "cannot remove a file; it is removed later");
        }
    }

    async fn try_remove_file(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        id: ArtifactId,
    ) -> Result<(), Fault> {
        // A transaction whose outcome was lost may have made it an artifact.
        if !stray::condemn(&self.db, customer, id).await? {
            return Ok(());
        }
        self.file_store.delete(place(customer, execution, id)).await?;
        stray::delete(&self.db, customer, id).await
    }

    /// Removes abandoned files, of uploads or removals that did not end. Fails if the store hangs.
    pub(crate) async fn sweep(&self) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let files = stray::abandon(&self.db, after).await?;
            let Some(last) = files.last() else { return Ok(()) };
            after = Some(last.artifact);
            for file in files {
                let (begun, id) = (Instant::now(), file.artifact);
                let removed = self.try_remove_file(file.customer, file.execution, id).await;
                let Err(fault) = removed else { continue };
                tracing::warn!(%fault, artifact.id = %id, "cannot remove a file; it is removed later");
                if removal::has_hung(begun) {
                    return Err(fault);
                }
            }
        }
    }

    /// Inserts the artifact of a stored file. Returns the artifact that it replaces, and when a
    /// link to it expires.
    async fn insert(
        &self,
        new: &NewArtifact,
        id: ArtifactId,
        size: i64,
    ) -> Result<(Option<ArtifactId>, i64), Fault> {
        let _share = self.shares.acquire(new.customer).await?;
        let mut tx = begin(&self.db).await?;
        let (has_ended, now) = store::lock_execution(&mut tx, new.customer, new.execution).await?;
        if let Some(lease) = new.lease {
            lease::store::check_not_lost(&mut *tx, new.customer, lease).await?;
        }
        let replaced = store::replace(&mut tx, new, id, size).await?;
        if has_ended && replaced.is_some() {
            return Err(is_final(&new.name));
        }
        if let Some(companion) = &new.companion {
            companion(&mut tx).await?;
        }
        tx.commit().await?;
        Ok((replaced, now + link::LIFETIME))
    }

    /// Lists the artifacts of an execution with links to them, oldest first.
    pub(crate) async fn list(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        slice: &Slice,
    ) -> Result<Vec<ArtifactEntry>, Fault> {
        let entries = store::list(&self.db, customer, execution, slice).await?;
        let expires = store::now(&self.db).await? + link::LIFETIME;
        let link = |entry: ArtifactEntry| {
            let id = ArtifactId::from_record(&entry.id)?;
            Ok(ArtifactEntry {
                uri: self.links.link(customer, id, &entry.name, expires, None),
                ..entry
            })
        };
        entries.into_iter().map(link).collect()
    }

    /// Removes the artifacts of an execution: first the files, then the rows.
    pub(crate) async fn remove(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
    ) -> Result<(), Fault> {
        self.file_store.remove(customer, execution.0).await?;
        store::delete_all(&self.db, customer, execution).await
    }
}
