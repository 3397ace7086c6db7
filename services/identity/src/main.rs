//! The identity service as a program of its own; `assay-identity rotate-keys` makes it sign tokens
//! with a new key.

use std::{env, process::ExitCode};

use assay_auth::SealConfig;
use assay_runtime::DatabaseConfig;
use clap::Parser;
use secrecy::ExposeSecret;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// No documentation comment: `--help` would begin with it.
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

fn main() -> ExitCode {
    if env::args_os().nth(1).is_some_and(|command| command == "rotate-keys") {
        return rotate_keys();
    }
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

fn rotate_keys() -> ExitCode {
    let options = assay_runtime::parse::<RotateKeys>();
    assay_runtime::install_crypto();
    let rotated = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|tokio| {
            let url = &options.database.database_url;
            tokio.block_on(assay_identity::rotate_keys(url, &options.seal))
        });
    match rotated {
        Ok(kid) => {
            println!("Tokens are signed with the key {kid} from two minutes on");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("assay-identity: {error:#}");
            ExitCode::FAILURE
        }
    }
}
