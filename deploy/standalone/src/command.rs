//! Commands for operators of a running Assay.

use std::fmt::Display;

use anyhow::{Context, Result, bail};
use assay::{
    Compared, StoredFiles,
    backends::{BackendConfig, SERVICES},
};
use assay_database::connect_options;
use assay_events::command::{NatsCommand, Replay};
use assay_storage::{FileStore, FileStoreConfig};
use assay_transfer::{Export, Import};
use assay_work::{Work, WorkCommand};
use sqlx::PgPool;

/// A command instead of running Assay.
#[derive(Clone, clap::Subcommand)]
pub(crate) enum Command {
    /// Rotate the signing keys: sign tokens with a new key after two minutes
    RotateKeys,
    /// Compare stored execution data with the recorded results, what the catalog shows with both, and
    /// what each service has stored of others; exit with status 1 on a difference
    Verify {
        /// Also list the files in the store (`ASSAY_ARTIFACTS`) that no record has
        #[arg(long)]
        files: bool,
    },
    /// Repair the differences that `verify` finds, as far as their source is known
    Rebuild {
        /// Also remove the files that `verify --files` lists
        #[arg(long)]
        files: bool,
    },
    /// List customers with what their clients have left behind: artifacts, requests of launches,
    /// idempotency keys and executions that have not ended
    Usage,
    /// Re-encrypt all stored secrets with the first encryption key, so that the others can be
    /// removed
    Reseal,
    Replay(Replay),
    Export(Export),
    Import(Import),
    #[command(flatten)]
    Work(WorkCommand),
    #[command(flatten)]
    Nats(NatsCommand),
}

impl Command {
    /// Runs the command with the backends and the store of the running Assay.
    pub(crate) async fn run(self, backends: &BackendConfig, store: &FileStoreConfig) -> Result<()> {
        let open = |files: bool| files.then(|| open_store(backends, store)).transpose();
        match self {
            Self::RotateKeys => rotate_keys(backends).await,
            Self::Verify { files } => verify(backends, open(files)?).await,
            Self::Rebuild { files } => rebuild(backends, open(files)?).await,
            Self::Usage => usage(backends).await,
            Self::Reseal => reseal(backends).await,
            Self::Replay(replay) => replay_all(backends, replay).await,
            Self::Export(export) => export.run().await,
            Self::Import(import) => import.run().await,
            Self::Work(command) => {
                println!("{}", on_work(backends, command).await?);
                Ok(())
            }
            Self::Nats(command) => {
                println!("{}", command.run(&backends.running_nats()?).await?);
                Ok(())
            }
        }
    }
}

async fn rotate_keys(backends: &BackendConfig) -> Result<()> {
    let [identity, ..] = backends.running_databases()?;
    let kid = assay_identity::rotate_keys(&identity, &backends.running_keys()?).await?;
    println!("Tokens will be signed with the key {kid} in two minutes");
    Ok(())
}

/// Opens the store of files and artifacts.
fn open_store(backends: &BackendConfig, config: &FileStoreConfig) -> Result<FileStore> {
    let mut config = config.clone();
    let in_data = || backends.data_dir.join("artifacts").to_string_lossy().into_owned();
    config.artifacts.get_or_insert_with(in_data);
    FileStore::open(&config)
}

async fn verify(backends: &BackendConfig, store: Option<FileStore>) -> Result<()> {
    let databases = backends.compared_databases()?;
    let report = |difference: &dyn Display| println!("{difference}");
    let Compared { executions, projects, customers, differences } =
        assay::verify(databases.each_ref(), report).await?;
    let mut unrecorded = 0;
    if let Some(store) = store {
        let [_, catalog, execution, _] = &databases;
        let files = StoredFiles::compare(execution, catalog, &store).await?;
        for file in &files.unrecorded {
            println!("file {file}: no record has it");
        }
        println!(
            "Files in the store: {} with a record, {} ({} bytes) without one",
            files.recorded,
            files.unrecorded.len(),
            files.unrecorded_bytes()
        );
        if files.is_empty {
            println!("The store is empty: check ASSAY_ARTIFACTS if the services have files in it");
        }
        unrecorded = files.unrecorded.len();
    }
    if differences > 0 {
        bail!("{differences} differences; run `rebuild` to repair those that name no other remedy");
    }
    if unrecorded > 0 {
        bail!("{unrecorded} files without a record; run `rebuild --files` to remove them");
    }
    println!(
        "No differences. Compared executions: {executions}, projects: {projects}, customers: \
         {customers}"
    );
    Ok(())
}

async fn rebuild(backends: &BackendConfig, store: Option<FileStore>) -> Result<()> {
    let databases = backends.compared_databases()?;
    let repaired = assay::rebuild(databases.each_ref()).await?;
    println!("Repaired {repaired} records and published all executions again");
    if let Some(store) = store {
        let [_, catalog, execution, _] = &databases;
        let files = StoredFiles::compare(execution, catalog, &store).await?;
        files.remove_unrecorded(&store).await?;
        let (number, bytes) = (files.unrecorded.len(), files.unrecorded_bytes());
        println!("Removed {number} files ({bytes} bytes) without a record from the store");
    }
    Ok(())
}

async fn usage(backends: &BackendConfig) -> Result<()> {
    let [_, _, execution, _] = backends.running_databases()?;
    let db = PgPool::connect_with(connect_options(&execution)?).await?;
    assay_execution::list_usage(&db, |usage| println!("{usage}")).await?;
    Ok(())
}

async fn reseal(backends: &BackendConfig) -> Result<()> {
    let [identity, catalog, execution, notification] = backends.running_databases()?;
    let seal = backends.running_keys()?;
    let count = assay_identity::reseal(&identity, &seal).await?
        + assay_catalog::reseal(&catalog, &seal).await?
        + assay_execution::reseal(&execution, &seal).await?
        + assay_notification::reseal(&notification, &seal).await?;
    println!("Re-encrypted {count} records");
    Ok(())
}

async fn replay_all(backends: &BackendConfig, replay: Replay) -> Result<()> {
    for (service, database) in SERVICES.iter().zip(backends.running_databases()?) {
        println!("{service}: {}", replay.run(&database).await.context(*service)?);
    }
    Ok(())
}

async fn on_work(backends: &BackendConfig, command: WorkCommand) -> Result<String> {
    const WORK: [&[Work]; 4] = [
        assay_identity::WORK,
        assay_catalog::WORK,
        assay_execution::WORK,
        assay_notification::WORK,
    ];
    let databases = backends.running_databases()?;
    let services = SERVICES.iter().zip(WORK).zip(&databases);
    let services: Vec<_> = services.map(|((name, works), url)| (*name, works, url)).collect();
    command.run(&services).await
}
