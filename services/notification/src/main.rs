//! The program `assay-notification`: the service, and commands for its operators.

use std::process::ExitCode;

use assay_auth::SealConfig;
use assay_events::command::{AtNats, Replay};
use assay_runtime::{DatabaseConfig, Given, Migrate, nats::NatsServers, run_or};
use clap::Subcommand;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Commands for operators.
#[derive(Subcommand)]
enum Command {
    Migrate(Migrate),
    Replay(Replay),
    /// Re-encrypt all secrets with the first encryption key
    Reseal,
    #[command(flatten)]
    AtNats(AtNats),
}

fn main() -> ExitCode {
    run_or(
        "assay-notification",
        async |runtime, config| assay_notification::start(runtime, config).await.map(drop),
        carry_out,
    )
}

async fn carry_out(command: Command, given: &Given) -> anyhow::Result<()> {
    let output = match command {
        Command::Migrate(migrate) => {
            let database = given.read::<DatabaseConfig>();
            migrate.carry_out(&database, &assay_notification::migrations()).await?.to_owned()
        }
        Command::Replay(replay) => {
            replay.carry_out(&given.read::<DatabaseConfig>().database_url).await?
        }
        Command::Reseal => {
            let url = given.read::<DatabaseConfig>().database_url;
            let count = assay_notification::reseal(&url, &given.read::<SealConfig>()).await?;
            format!("re-encrypted the secrets of {count} records")
        }
        Command::AtNats(command) => command.carry_out(&given.read::<NatsServers>()).await?,
    };
    println!("{output}");
    Ok(())
}
