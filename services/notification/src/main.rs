//! The notification service as a program of its own, and what an operator does besides.

use std::process::ExitCode;

use assay_events::command::{AtNats, Replay};
use assay_runtime::{DatabaseConfig, Given, nats::NatsServers, run_or};
use clap::Subcommand;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What to do instead of serving.
#[derive(Subcommand)]
enum Command {
    Replay(Replay),
    #[command(flatten)]
    AtNats(AtNats),
}

fn main() -> ExitCode {
    run_or(
        "assay-notification",
        async |runtime, config| assay_notification::start(runtime, config).await.map(drop),
        carry_out,
    )
}

async fn carry_out(command: Command, given: &Given) -> anyhow::Result<()> {
    let said = match command {
        Command::Replay(replay) => {
            replay.carry_out(&given.read::<DatabaseConfig>().database_url).await?
        }
        Command::AtNats(command) => command.carry_out(&given.read::<NatsServers>()).await?,
    };
    println!("{said}");
    Ok(())
}
