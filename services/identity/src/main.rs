//! The identity service as a program of its own, and what an operator does besides.

use std::process::ExitCode;

use assay_auth::SealConfig;
use assay_events::command::Replay;
use assay_identity::{FirstLogin, FirstSecret};
use assay_runtime::{DatabaseConfig, Given, Migrate, Runtime, run_or};
use clap::Subcommand;
use secrecy::ExposeSecret;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What to do instead of serving.
#[derive(Subcommand)]
enum Command {
    Migrate(Migrate),
    Replay(Replay),
    /// Makes a new key that tokens are signed with from a few minutes on
    RotateKeys,
    /// Stores all keys under the first of the encryption keys
    Reseal,
}

fn main() -> ExitCode {
    run_or("assay-identity", start, carry_out)
}

async fn start(runtime: &Runtime, config: assay_identity::Config) -> anyhow::Result<()> {
    let started = assay_identity::start(runtime, config).await?;
    runtime.spawn("first login", async {
        match started.first_login.await {
            Ok(FirstLogin { email, secret: FirstSecret::Link(link) }) => {
                let link = link.expose_secret();
                println!("Choose the password of {email}, once and within seven days: {link}");
            }
            Ok(FirstLogin { email, secret: FirstSecret::Password(password) }) => {
                let password = password.expose_secret();
                println!("Log in as {email} with the password {password}, shown only now");
            }
            Err(_) => {}
        }
        Ok(())
    });
    Ok(())
}

async fn carry_out(command: Command, given: &Given) -> anyhow::Result<()> {
    let database = given.read::<DatabaseConfig>();
    let url = &database.database_url;
    match command {
        Command::Migrate(migrate) => {
            println!("{}", migrate.carry_out(&database, &assay_identity::migrations()).await?);
        }
        Command::Replay(replay) => println!("{}", replay.carry_out(url).await?),
        Command::RotateKeys => {
            let kid = assay_identity::rotate_keys(url, &given.read::<SealConfig>()).await?;
            println!("Tokens are signed with the key {kid} from two minutes on");
        }
        Command::Reseal => {
            let count = assay_identity::reseal(url, &given.read::<SealConfig>()).await?;
            println!("{count} keys are stored under another encryption key than before");
        }
    }
    Ok(())
}
