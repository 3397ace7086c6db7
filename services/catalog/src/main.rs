//! The catalog service as a program, and the commands for its operators.

use std::process::ExitCode;

use assay_auth::SealConfig;
use assay_events::command::Replay;
use assay_runtime::{CommandLine, DatabaseConfig, Migrate, run_with_commands};
use clap::Subcommand;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A command that runs instead of the service.
#[derive(Subcommand)]
enum Command {
    Migrate(Migrate),
    Replay(Replay),
    /// Re-encrypt all secrets with the first of the encryption keys
    Reseal,
}

fn main() -> ExitCode {
    run_with_commands(
        "assay-catalog",
        async |runtime, config| assay_catalog::start(runtime, config).await.map(drop),
        carry_out,
    )
}

async fn carry_out(command: Command, command_line: &CommandLine) -> anyhow::Result<()> {
    let database = command_line.read::<DatabaseConfig>();
    let url = &database.database_url;
    match command {
        Command::Migrate(migrate) => {
            println!("{}", migrate.carry_out(&database, &assay_catalog::migrations()).await?);
        }
        Command::Replay(replay) => println!("{}", replay.carry_out(url).await?),
        Command::Reseal => {
            let count = assay_catalog::reseal(url, &command_line.read::<SealConfig>()).await?;
            println!("re-encrypted the secrets of {count} records");
        }
    }
    Ok(())
}
