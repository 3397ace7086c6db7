//! Commands for operators of a running Assay.

use anyhow::{Context, Result, bail};
use assay::backends;
use assay_auth::SealConfig;
use assay_events::command::{AtNats, Replay};
use assay_runtime::nats::NatsServers;
use secrecy::SecretString;

use crate::{keys::stored_seal_config, options::Options};

/// A command instead of running Assay.
#[derive(Clone, clap::Subcommand)]
pub(crate) enum Command {
    /// Rotate the signing keys: sign tokens with a new key after two minutes
    RotateKeys,
    /// Check stored execution data against the recorded results; exit with status 1 on a difference
    Verify,
    /// Repair the differences that `verify` finds
    Rebuild,
    /// Encrypt all stored secrets with the first encryption key, so that the others can be removed
    Reseal,
    Replay(Replay),
    #[command(flatten)]
    AtNats(AtNats),
}

impl Command {
    pub(crate) async fn run(self, options: &Options) -> Result<()> {
        match self {
            Self::RotateKeys => rotate_keys(options).await,
            Self::Verify => verify(options).await,
            Self::Rebuild => rebuild(options).await,
            Self::Reseal => reseal(options).await,
            Self::Replay(replay) => replay_all(options, replay).await,
            Self::AtNats(command) => {
                println!("{}", command.carry_out(&nats(options)?).await?);
                Ok(())
            }
        }
    }
}

async fn rotate_keys(options: &Options) -> Result<()> {
    let ([identity, ..], seal) = (databases(options)?, seal(options)?);
    let kid = assay_identity::rotate_keys(&identity, &seal).await?;
    println!("Tokens will be signed with the key {kid} in two minutes");
    Ok(())
}

async fn verify(options: &Options) -> Result<()> {
    let [_, catalog, execution, _] = databases(options)?;
    let differences =
        assay::verify(&execution, &catalog, |difference| println!("{difference}")).await?;
    if differences > 0 {
        bail!("{differences} differences; run `assay rebuild` to repair them");
    }
    println!("No differences");
    Ok(())
}

async fn rebuild(options: &Options) -> Result<()> {
    let [_, _, execution, _] = databases(options)?;
    let repaired = assay::rebuild(&execution).await?;
    println!("Repaired {repaired} records and published all executions again for the catalog");
    Ok(())
}

async fn reseal(options: &Options) -> Result<()> {
    let ([identity, catalog, _, notification], seal) = (databases(options)?, seal(options)?);
    let count = assay_identity::reseal(&identity, &seal).await?
        + assay_catalog::reseal(&catalog, &seal).await?
        + assay_notification::reseal(&notification, &seal).await?;
    println!("Encrypted {count} records with the first encryption key");
    Ok(())
}

async fn replay_all(options: &Options, replay: Replay) -> Result<()> {
    for (service, database) in backends::SERVICES.iter().zip(databases(options)?) {
        println!("{service}: {}", replay.carry_out(&database).await.context(*service)?);
    }
    Ok(())
}

/// Returns the database URLs of the running Assay.
fn databases(options: &Options) -> Result<[SecretString; 4]> {
    backends::database_urls_of_running(&options.data_dir, options.database_url.as_ref())
}

/// Returns the NATS server of the running Assay.
fn nats(options: &Options) -> Result<NatsServers> {
    let nats_url = backends::nats_url_of_running(&options.data_dir, options.nats_url.as_ref())?;
    Ok(NatsServers::at(nats_url))
}

/// Returns the encryption keys of the running Assay.
fn seal(options: &Options) -> Result<SealConfig> {
    let data = &options.data_dir;
    let seal = stored_seal_config(data, options.encryption_keys.clone())?;
    seal.with_context(|| {
        format!("no encryption keys in {}; set ASSAY_ENCRYPTION_KEYS", data.display())
    })
}
