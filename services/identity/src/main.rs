//! The identity service as a program of its own, and what an operator does besides.

use std::{env, process::ExitCode};

use assay_auth::SealConfig;
use assay_runtime::{DatabaseConfig, run_command};
use clap::Parser;
use secrecy::ExposeSecret;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// No documentation comments: `--help` would begin with them.
#[derive(Parser)]
#[command(about = "Makes a new key that tokens are signed with from a few minutes on.")]
struct RotateKeys {
    #[arg(value_parser = ["rotate-keys"])]
    _command: String,
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    seal: SealConfig,
}

#[derive(Parser)]
#[command(about = "Stores all keys under the first of the encryption keys.")]
struct Reseal {
    #[arg(value_parser = ["reseal"])]
    _command: String,
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    seal: SealConfig,
}

fn main() -> ExitCode {
    let command = env::args_os().nth(1).unwrap_or_default();
    match command.to_str() {
        Some("rotate-keys") => run_command("assay-identity", async |options: RotateKeys| {
            let url = &options.database.database_url;
            let kid = assay_identity::rotate_keys(url, &options.seal).await?;
            println!("Tokens are signed with the key {kid} from two minutes on");
            Ok(())
        }),
        Some("reseal") => run_command("assay-identity", async |options: Reseal| {
            let url = &options.database.database_url;
            let count = assay_identity::reseal(url, &options.seal).await?;
            println!("{count} keys are stored under another encryption key than before");
            Ok(())
        }),
        _ => serve(),
    }
}

fn serve() -> ExitCode {
    assay_runtime::run("assay-identity", async |runtime, config| {
        let started = assay_identity::start(runtime, config).await?;
        runtime.spawn("first login", async {
            if let Ok(login) = started.first_login.await {
                let password = login.password.expose_secret();
                println!("Log in as {} with the password {password}, shown only now", login.email);
            }
            Ok(())
        });
        Ok(())
    })
}
