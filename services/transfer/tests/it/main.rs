//! Exports of hostile servers, and imports of hostile exports.

mod export;
mod import;
mod repeated;
mod server;
mod stored_file;
mod tool;

use std::{path::Path, time::Duration};

use assay_transfer::{Export, Import};
use clap::Parser;
use tokio::time::timeout;

/// Time that a command may take.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Parser)]
enum Command {
    Export(Export),
    Import(Import),
}

/// Runs a command with a token. Returns its failure, with all causes.
async fn run(url: &str, arguments: &[&str]) -> Result<(), String> {
    let account = ["--url", url, "--token", "secret-token"];
    let words = ["assay"].iter().chain(&arguments[..1]).chain(&account).chain(&arguments[1..]);
    let command = Command::try_parse_from(words).unwrap();
    let run = async {
        match command {
            Command::Export(export) => export.run().await,
            Command::Import(import) => import.run().await,
        }
    };
    let ended = timeout(PATIENCE, run).await.expect("the command ends");
    ended.map_err(|error| format!("{error:#}"))
}

async fn export(url: &str, to: &Path) -> Result<(), String> {
    run(url, &["export", "--project", "shop", "--to", to.to_str().unwrap()]).await
}

async fn import(url: &str, from: &Path) -> Result<(), String> {
    run(url, &["import", "--project", "shop", "--from", from.to_str().unwrap()]).await
}
