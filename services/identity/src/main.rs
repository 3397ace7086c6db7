//! The program `assay-identity`: the identity service, and commands for its operators.

use std::process::ExitCode;

use assay_auth::SealConfig;
use assay_database::{DatabaseConfig, Migrate};
use assay_events::command::Replay;
use assay_identity::{FirstLogin, FirstSecret};
use assay_runtime::{CommandLine, Runtime, run_with_commands};
use assay_work::WorkCommand;
use clap::Subcommand;
use secrecy::ExposeSecret;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Commands for operators.
#[derive(Subcommand)]
enum Command {
    Migrate(Migrate),
    Replay(Replay),
    #[command(flatten)]
    Work(WorkCommand),
    /// Rotate the signing keys: sign tokens with a new key after two minutes
    RotateKeys,
    /// Re-encrypt all stored secrets with the first encryption key, so that the others can be removed
    Reseal,
}

fn main() -> ExitCode {
    run_with_commands("assay-identity", start, run)
}

async fn start(runtime: &Runtime, config: assay_identity::Config) -> anyhow::Result<()> {
    let started = assay_identity::start(runtime, config).await?;
    runtime.spawn("first login", async {
        match started.first_login.await {
            Ok(FirstLogin { email, secret: FirstSecret::Link(link) }) => {
                let link = link.expose_secret();
                println!("Choose the password of {email} within seven days: {link}");
            }
            Ok(FirstLogin { email, secret: FirstSecret::Password(password) }) => {
                let password = password.expose_secret();
                println!("Log in as {email} with the password {password} (it is not shown again)");
            }
            Err(_) => {}
        }
        Ok(())
    });
    Ok(())
}

async fn run(command: Command, command_line: &CommandLine) -> anyhow::Result<()> {
    let database = command_line.read::<DatabaseConfig>();
    let url = &database.database_url;
    match command {
        Command::Migrate(migrate) => {
            println!("{}", migrate.run(&database, &assay_identity::migrations()).await?);
        }
        Command::Replay(replay) => println!("{}", replay.run(url).await?),
        Command::Work(command) => {
            println!("{}", command.run(&[("identity", assay_identity::WORK, url)]).await?);
        }
        Command::RotateKeys => {
            let kid = assay_identity::rotate_keys(url, &command_line.read::<SealConfig>()).await?;
            println!("Tokens will be signed with the key {kid} in two minutes");
        }
        Command::Reseal => {
            let count = assay_identity::reseal(url, &command_line.read::<SealConfig>()).await?;
            println!("Re-encrypted {count} records");
        }
    }
    Ok(())
}
