//! Files of projects, such as the software under test. Their bytes are in the store of files, their rows in the
//! database.

mod contents;
mod intake;
mod recorded;
pub(crate) mod reference;
pub(crate) mod resumable;
mod rules;
mod service;
pub(crate) mod store;
mod stray;
mod sweep;
mod upload;

use assay_fair::{Shares, Turn};
use assay_proto::{CustomerId, Fault};
use assay_runtime::Runtime;
use assay_storage::{FileStore, FileStoreConfig};
use sqlx::PgPool;

pub use self::recorded::unrecorded;

/// Limits of files.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct FileConfig {
    /// Maximum size of the files of a customer, in GiB; 0 for no limit
    #[arg(long, env = "ASSAY_FILES_GIB", default_value_t = Self::default().files_gib)]
    pub files_gib: u32,
}

impl Default for FileConfig {
    fn default() -> Self {
        Self { files_gib: 1024 }
    }
}

/// Maximum number of uploads of which bytes are in memory at the same time: up to three parts of each, of 5 MiB in a
/// bucket.
const UPLOADS: usize = 16;

/// The files: their bytes, their rows and their limits.
#[derive(Clone)]
pub struct Files {
    db: PgPool,
    store: FileStore,
    config: FileConfig,
    uploads: Shares,
    /// Ends with the program, after the requests whose bytes it stores.
    runtime: Runtime,
}

impl Files {
    /// Opens the store. A folder is created if it does not exist.
    pub fn open(
        runtime: &Runtime,
        db: &PgPool,
        store: &FileStoreConfig,
        config: FileConfig,
    ) -> anyhow::Result<Self> {
        assay_storage::describe_metrics();
        let store = FileStore::open_synced(store)?;
        let (db, runtime) = (db.clone(), runtime.clone());
        Ok(Self { db, store, config, uploads: Shares::new(UPLOADS), runtime })
    }

    /// Returns the turn of an upload, which holds a permit while parts of it are in memory.
    fn turn(&self, customer: CustomerId) -> Turn {
        Turn::new(&self.uploads, customer)
    }

    /// Returns the maximum size of the files of a customer, in bytes, if there is one.
    fn limit(&self) -> Option<i64> {
        Some(i64::from(self.config.files_gib) << 30).filter(|limit| *limit > 0)
    }

    /// Returns the fault of a customer that would exceed the limit.
    fn exceeded(&self) -> Fault {
        let reason = format!(
            "the files of the customer would have more than {} GiB, its limit: delete files, or ask the \
             operator for more (ASSAY_FILES_GIB)",
            self.config.files_gib
        );
        Fault::Refused { code: "quota_exceeded", reason }
    }
}
