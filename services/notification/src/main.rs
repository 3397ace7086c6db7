//! The program `assay-notification`: the notification service, and commands for its operators.

use std::process::ExitCode;

use assay_auth::SealConfig;
use assay_database::{DatabaseConfig, Migrate};
use assay_events::command::{NatsCommand, Replay};
use assay_runtime::{CommandLine, nats::NatsServers, run_with_commands};
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
    #[command(flatten)]
    Nats(NatsCommand),
}

fn main() -> ExitCode {
    run_with_commands(
        "assay-notification",
        async |runtime, config| assay_notification::start(runtime, config).await.map(drop),
        run,
    )
}

async fn run(command: Command, command_line: &CommandLine) -> anyhow::Result<()> {
    let output = match command {
        Command::Migrate(migrate) => {
            let database = command_line.read::<DatabaseConfig>();
            migrate.run(&database, &assay_notification::migrations()).await?.to_owned()
        }
        Command::Replay(replay) => {
            replay.run(&command_line.read::<DatabaseConfig>().database_url).await?
        }
        Command::Work(command) => {
            let url = command_line.read::<DatabaseConfig>().database_url;
            command.run(&[("notification", assay_notification::WORK, &url)]).await?
        }
        Command::Reseal => {
            let url = command_line.read::<DatabaseConfig>().database_url;
            let count =
                assay_notification::reseal(&url, &command_line.read::<SealConfig>()).await?;
            format!("Re-encrypted {count} records")
        }
        Command::Nats(command) => command.run(&command_line.read::<NatsServers>()).await?,
    };
    println!("{output}");
    Ok(())
}
