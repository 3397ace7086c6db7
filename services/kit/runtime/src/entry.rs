//! How a program begins and ends: configuration, signals, exit code.

use std::{ffi::OsString, process::ExitCode, time::Duration};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    AdminConfig, Runtime, serve_admin,
    telemetry::{Telemetry, TelemetryConfig},
};

/// How long the tasks of a program get to end.
const GRACE: Duration = Duration::from_secs(25);

// No documentation comment: `--help` would begin with it.
#[derive(Parser)]
#[command(
    version,
    about = "A program of Assay. Every variable X can also be given by a file, named in X_FILE."
)]
struct Options<C: clap::Args> {
    #[command(flatten)]
    program: C,
    #[command(flatten)]
    telemetry: TelemetryConfig,
    #[command(flatten)]
    admin: AdminConfig,
}

/// Runs one program until SIGTERM or Ctrl-C, or until one of its tasks fails.
pub fn run<C: clap::Args>(
    name: &'static str,
    start: impl AsyncFnOnce(&Runtime, C) -> anyhow::Result<()>,
) -> ExitCode {
    let options = parse::<Options<C>>();
    install_crypto();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let served = tokio.map_err(anyhow::Error::from).and_then(|tokio| {
        tokio.block_on(async {
            let telemetry = Telemetry::install(name, &options.telemetry)?;
            let runtime = Runtime::new(name);
            telemetry.keep_up(&runtime);
            serve_admin(&runtime, &options.admin, telemetry.metrics()).await?;
            start(&runtime, options.program).await?;
            tokio::select! {
                () = stop_signal() => {}
                () = runtime.stopping().cancelled_owned() => {}
            }
            let stopped = tokio::select! {
                stopped = runtime.stop(GRACE) => stopped,
                () = stop_signal() => Err(anyhow::anyhow!("stopped by a second signal")),
            };
            telemetry.flush().await;
            stopped
        })
    });
    exit_code(name, served)
}

/// Runs a command of a program to its end: something that an operator does besides, such as
/// `assay-identity rotate-keys`.
pub fn run_command<C: Parser>(
    name: &'static str,
    command: impl AsyncFnOnce(C) -> anyhow::Result<()>,
) -> ExitCode {
    let options = parse::<C>();
    install_crypto();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done =
        tokio.map_err(anyhow::Error::from).and_then(|tokio| tokio.block_on(command(options)));
    exit_code(name, done)
}

fn exit_code(name: &'static str, ended: anyhow::Result<()>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Reads a program's configuration from the command line and the environment. For every variable
/// `X` there is `X_FILE`, which names a file holding the value. All problems are reported at once,
/// with exit code 2.
pub fn parse<C: Parser>() -> C {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    for argument in C::command().get_arguments() {
        let (Some(long), Some(variable)) = (argument.get_long(), argument.get_env()) else {
            continue;
        };
        let mut file_variable = variable.to_owned();
        file_variable.push("_FILE");
        let Some(file) = std::env::var_os(&file_variable) else { continue };
        match std::fs::read_to_string(&file) {
            // Before all others: after a command, or after `--`, it would be taken for theirs.
            Ok(value) => arguments.insert(1, format!("--{long}={}", value.trim_end()).into()),
            Err(error) => C::command()
                .error(clap::error::ErrorKind::Io, format!("{}: {error}", file.display()))
                .exit(),
        }
    }
    C::parse_from(arguments)
}

/// Chooses the one cryptographic library that TLS and tokens use in this process. Calling it again
/// changes nothing.
pub fn install_crypto() {
    // Both fail only if a choice was made before, and ours is the only one there is.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
}

/// Resolves when the process is asked to stop.
pub async fn stop_signal() {
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be received");
    let mut interrupt = signal(SignalKind::interrupt()).expect("signals can be received");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
