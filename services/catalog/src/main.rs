//! The catalog service as a program of its own, and what an operator does besides.

use std::process::ExitCode;

use assay_auth::SealConfig;
use assay_events::command::Replay;
use assay_runtime::{DatabaseConfig, Given, Migrate, run_or};
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
}

fn main() -> ExitCode {
    run_or(
        "assay-catalog",
        async |runtime, config| assay_catalog::start(runtime, config).await.map(drop),
        carry_out,
    )
}

async fn carry_out(command: Command, given: &Given) -> anyhow::Result<()> {
    let database = given.read::<DatabaseConfig>();
    let url = &database.database_url;
    match command {
        Command::Migrate(migrate) => {
            println!("{}", migrate.carry_out(&database, &assay_catalog::migrations()).await?);
        }
        Command::Replay(replay) => println!("{}", replay.carry_out(url).await?),
        Command::Reseal => {
            let count = assay_catalog::reseal(url, &given.read::<SealConfig>()).await?;
            println!("{count} records are stored under another encryption key than before");
        }
    }
    Ok(())
}
