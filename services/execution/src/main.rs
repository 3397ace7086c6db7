//! The program `assay-execution`: the execution service, and commands for its operators.

use std::process::ExitCode;

use assay_auth::SealConfig;
use assay_database::{DatabaseConfig, Migrate, command_options};
use assay_events::command::Replay;
use assay_runtime::{CommandLine, run_with_commands};
use assay_work::WorkCommand;
use clap::Subcommand;
use sqlx::PgPool;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Commands for operators.
#[derive(Subcommand)]
enum Command {
    Migrate(Migrate),
    Replay(Replay),
    #[command(flatten)]
    Work(WorkCommand),
    /// Check stored execution data against the recorded results; exit with status 1 on a difference
    Verify,
    /// Repair the differences that `verify` finds
    Rebuild,
    /// List customers with what their clients have left behind: artifacts, requests of launches,
    /// idempotency keys and executions that have not ended
    Usage,
    /// Re-encrypt the secrets of pools with the first encryption key, so that the others can be removed
    Reseal,
}

fn main() -> ExitCode {
    run_with_commands(
        "assay-execution",
        async |runtime, config| assay_execution::start(runtime, config).await.map(drop),
        run,
    )
}

async fn run(command: Command, command_line: &CommandLine) -> anyhow::Result<()> {
    let database = command_line.read::<DatabaseConfig>();
    let url = &database.database_url;
    let connect = async || anyhow::Ok(PgPool::connect_with(command_options(url)?).await?);
    match command {
        Command::Migrate(migrate) => {
            println!("{}", migrate.run(&database, &assay_execution::migrations()).await?);
        }
        Command::Replay(replay) => println!("{}", replay.run(url).await?),
        Command::Work(command) => {
            println!("{}", command.run(&[("execution", assay_execution::WORK, url)]).await?);
        }
        Command::Verify => {
            let report = |difference: &dyn std::fmt::Display| println!("{difference}");
            let (executions, differences) =
                assay_execution::verify(&connect().await?, report).await?;
            anyhow::ensure!(
                differences == 0,
                "{differences} differences; run `rebuild` to repair them"
            );
            println!("No differences. Compared executions: {executions}");
        }
        Command::Usage => {
            assay_execution::list_usage(&connect().await?, |usage| println!("{usage}")).await?;
        }
        Command::Reseal => {
            let count = assay_execution::reseal(url, &command_line.read::<SealConfig>()).await?;
            println!("Re-encrypted {count} pools");
        }
        Command::Rebuild => {
            let repaired = assay_execution::rebuild(&connect().await?).await?;
            println!("Repaired {repaired} records and published all executions again");
        }
    }
    Ok(())
}
