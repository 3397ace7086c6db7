//! The notification service as a program of its own, and what an operator does besides.

use std::process::ExitCode;

use assay_auth::SealConfig;
use assay_events::command::{AtNats, Replay};
use assay_runtime::{DatabaseConfig, Given, Migrate, nats::NatsServers, run_or};
use clap::Subcommand;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What to do instead of serving.
#[derive(Subcommand)]
enum Command {
    Migrate(Migrate),
    Replay(Replay),
    /// Stores all secrets under the first of the encryption keys
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
    let said = match command {
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
            format!("{count} records are stored under another encryption key than before")
        }
        Command::AtNats(command) => command.carry_out(&given.read::<NatsServers>()).await?,
    };
    println!("{said}");
    Ok(())
}
