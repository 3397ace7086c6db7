//! The catalog service as a program of its own, and what an operator does besides.

use std::{env, process::ExitCode};

use assay_auth::SealConfig;
use assay_runtime::{DatabaseConfig, run_command};
use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// No documentation comment: `--help` would begin with it.
#[derive(Parser)]
#[command(about = "Stores all secrets under the first of the encryption keys.")]
struct Reseal {
    #[arg(value_parser = ["reseal"])]
    _command: String,
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    seal: SealConfig,
}

fn main() -> ExitCode {
    if env::args_os().nth(1).is_some_and(|command| command == "reseal") {
        return run_command("assay-catalog", async |options: Reseal| {
            let url = &options.database.database_url;
            let count = assay_catalog::reseal(url, &options.seal).await?;
            println!("{count} records are stored under another encryption key than before");
            Ok(())
        });
    }
    assay_runtime::run("assay-catalog", async |runtime, config| {
        assay_catalog::start(runtime, config).await.map(drop)
    })
}
