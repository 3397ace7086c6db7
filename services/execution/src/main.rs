//! The execution service as a separate program, with commands for operators.

use std::process::ExitCode;

use assay_events::command::Replay;
use assay_runtime::{CommandLine, DatabaseConfig, Migrate, connect_options, run_with_commands};
use clap::Subcommand;
use sqlx::PgPool;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Commands that run instead of the service.
#[derive(Subcommand)]
enum Command {
    Migrate(Migrate),
    Replay(Replay),
    /// Compare the stored executions with their results. Fails if they differ
    Verify,
    /// Repair the differences that `verify` reports
    Rebuild,
}

fn main() -> ExitCode {
    run_with_commands(
        "assay-execution",
        async |runtime, config| assay_execution::start(runtime, config).await.map(drop),
        carry_out,
    )
}

async fn carry_out(command: Command, command_line: &CommandLine) -> anyhow::Result<()> {
    let database = command_line.read::<DatabaseConfig>();
    let url = &database.database_url;
    let connect = async || anyhow::Ok(PgPool::connect_with(connect_options(url)?).await?);
    match command {
        Command::Migrate(migrate) => {
            println!("{}", migrate.carry_out(&database, &assay_execution::migrations()).await?);
        }
        Command::Replay(replay) => println!("{}", replay.carry_out(url).await?),
        Command::Verify => {
            let report = |difference: &dyn std::fmt::Display| println!("{difference}");
            let differences = assay_execution::verify(&connect().await?, report).await?;
            anyhow::ensure!(differences == 0, "{differences} differences; `rebuild` repairs them");
            println!("No differences");
        }
        Command::Rebuild => {
            let repaired = assay_execution::rebuild(&connect().await?).await?;
            println!("Repaired {repaired} records and published the state of all executions again");
        }
    }
    Ok(())
}
