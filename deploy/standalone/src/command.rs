//! What an operator does to an Assay that is running.

use anyhow::{Context, Result, bail};
use assay::backends;
use assay_auth::SealConfig;
use assay_events::command::{AtNats, Replay};
use assay_runtime::nats::NatsServers;
use secrecy::SecretString;

use crate::{keys::stored_seal_config, options::Options};

/// What to do instead of running Assay.
#[derive(Clone, clap::Subcommand)]
pub(crate) enum Command {
    /// Makes the Assay that is running sign tokens with a new key from a few minutes on
    RotateKeys,
    /// Tells what the Assay that is running stores or shows of executions that is not as their
    /// results say, and fails if there is anything
    Verify,
    /// Mends what `verify` tells of
    Rebuild,
    /// Has the Assay that is running store all secrets under the first of its encryption keys, so
    /// that the others can be taken away
    Reseal,
    Replay(Replay),
    #[command(flatten)]
    AtNats(AtNats),
}

impl Command {
    pub(crate) async fn carry_out(self, options: &Options) -> Result<()> {
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
    println!("Tokens are signed with the key {kid} from two minutes on");
    Ok(())
}

async fn verify(options: &Options) -> Result<()> {
    let [_, catalog, execution, _] = databases(options)?;
    let differences =
        assay::verify(&execution, &catalog, |difference| println!("{difference}")).await?;
    if differences > 0 {
        bail!("{differences} differences; `assay rebuild` mends them");
    }
    println!("All is as the results say");
    Ok(())
}

async fn rebuild(options: &Options) -> Result<()> {
    let [_, _, execution, _] = databases(options)?;
    let mended = assay::rebuild(&execution).await?;
    println!("Mended {mended} records; the catalog hears of all executions again");
    Ok(())
}

async fn reseal(options: &Options) -> Result<()> {
    let ([identity, catalog, _, notification], seal) = (databases(options)?, seal(options)?);
    let count = assay_identity::reseal(&identity, &seal).await?
        + assay_catalog::reseal(&catalog, &seal).await?
        + assay_notification::reseal(&notification, &seal).await?;
    println!("{count} records are stored under another encryption key than before");
    Ok(())
}

async fn replay_all(options: &Options, replay: Replay) -> Result<()> {
    for (service, database) in backends::SERVICES.iter().zip(databases(options)?) {
        println!("{service}: {}", replay.carry_out(&database).await.context(*service)?);
    }
    Ok(())
}

/// The databases of the Assay that is running.
fn databases(options: &Options) -> Result<[SecretString; 4]> {
    backends::of_running(&options.data_dir, options.database_url.as_ref())
}

/// The NATS server of the Assay that is running.
fn nats(options: &Options) -> Result<NatsServers> {
    let nats_url = backends::nats_of_running(&options.data_dir, options.nats_url.as_ref())?;
    Ok(NatsServers::at(nats_url))
}

/// What the secrets of the Assay that is running are stored under.
fn seal(options: &Options) -> Result<SealConfig> {
    let data = &options.data_dir;
    let seal = stored_seal_config(data, options.encryption_keys.clone())?;
    seal.with_context(|| format!("{} holds no encryption keys", data.display()))
}
