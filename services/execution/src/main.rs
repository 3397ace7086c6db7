//! The execution service as a program of its own, and what an operator does besides.

use std::process::ExitCode;

use assay_events::command::Replay;
use assay_runtime::{DatabaseConfig, CommandLine, Migrate, connect_options, run_with_commands};
use clap::Subcommand;
use sqlx::PgPool;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What to do instead of serving.
#[derive(Subcommand)]
enum Command {
    Migrate(Migrate),
    Replay(Replay),
    /// Tells what is stored of executions that is not as their results say, and fails if there is
    /// anything
    Verify,
    /// Mends what `verify` tells of
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
            let tell = |difference: &dyn std::fmt::Display| println!("{difference}");
            let differences = assay_execution::verify(&connect().await?, tell).await?;
            anyhow::ensure!(differences == 0, "{differences} differences; `rebuild` mends them");
            println!("All is as the results say");
        }
        Command::Rebuild => {
            let mended = assay_execution::rebuild(&connect().await?).await?;
            println!("Mended {mended} records; others hear of all executions again");
        }
    }
    Ok(())
}
