//! The program `assay-catalog`: the catalog service, and commands for its operators.

use std::process::ExitCode;

use assay_auth::SealConfig;
use assay_database::{DatabaseConfig, Migrate};
use assay_events::command::Replay;
use assay_runtime::{CommandLine, run_with_commands};
use assay_work::WorkCommand;
use clap::Subcommand;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Commands for operators.
#[derive(Subcommand)]
enum Command {
    Migrate(Migrate),
    Replay(Replay),
    #[command(flatten)]
    Work(WorkCommand),
    /// Re-encrypt all stored secrets with the first encryption key, so that the others can be removed
    Reseal,
}

fn main() -> ExitCode {
    run_with_commands(
        "assay-catalog",
        async |runtime, config| assay_catalog::start(runtime, config).await.map(drop),
        run,
    )
}

async fn run(command: Command, command_line: &CommandLine) -> anyhow::Result<()> {
    let database = command_line.read::<DatabaseConfig>();
    let url = &database.database_url;
    match command {
        Command::Migrate(migrate) => {
            println!("{}", migrate.run(&database, &assay_catalog::migrations()).await?);
        }
        Command::Replay(replay) => println!("{}", replay.run(url).await?),
        Command::Work(command) => {
            println!("{}", command.run(&[("catalog", assay_catalog::WORK, url)]).await?);
        }
        Command::Reseal => {
            let count = assay_catalog::reseal(url, &command_line.read::<SealConfig>()).await?;
            println!("Re-encrypted {count} records");
        }
    }
    Ok(())
}
