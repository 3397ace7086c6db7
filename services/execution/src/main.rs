//! The execution service as a program of its own; `assay-execution verify` tells of what is stored
//! of executions that is not as their results say, `assay-execution rebuild` mends it.

use std::{env, process::ExitCode};

use anyhow::Result;
use assay_runtime::{DatabaseConfig, connect_options};
use clap::Parser;
use sqlx::PgPool;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// No documentation comment: `--help` would begin with it.
#[derive(Parser)]
#[command(about = "Compares what is stored of executions with their results, or mends it.")]
struct Upkeep {
    #[arg(value_parser = ["verify", "rebuild"])]
    command: String,
    #[command(flatten)]
    database: DatabaseConfig,
}

fn main() -> ExitCode {
    let command = env::args_os().nth(1);
    if command.is_some_and(|command| command == "verify" || command == "rebuild") {
        return keep_up();
    }
    assay_runtime::run("assay-execution", async |runtime, config| {
        assay_execution::start(runtime, config).await.map(drop)
    })
}

fn keep_up() -> ExitCode {
    let options = assay_runtime::parse::<Upkeep>();
    assay_runtime::install_crypto();
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|tokio| tokio.block_on(carry_out(&options)));
    match done {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("assay-execution: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn carry_out(options: &Upkeep) -> Result<String> {
    let db = PgPool::connect_with(connect_options(&options.database.database_url)?).await?;
    if options.command == "rebuild" {
        let mended = assay_execution::rebuild(&db).await?;
        return Ok(format!("Mended {mended} records; others hear of all executions again"));
    }
    let differences = assay_execution::verify(&db, |difference| println!("{difference}")).await?;
    anyhow::ensure!(differences == 0, "{differences} differences; `rebuild` mends them");
    Ok("All is as the results say".to_owned())
}
