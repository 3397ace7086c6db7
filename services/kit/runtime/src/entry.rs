//! Start and end of a program: configuration, signals, exit code.

use std::{io, process::ExitCode, time::Duration};

use assay_program::{install_tls, matches, parse, read, stop_signal};
use clap::{
    Arg, ArgMatches, Args, Command, CommandFactory as _, Parser, Subcommand, error::ErrorKind,
};

use crate::{
    Runtime,
    admin::{AdminConfig, check_readiness, serve_admin},
    files::raise_file_limit,
    telemetry::{Telemetry, TelemetryConfig},
    tls::{Tls, TlsConfig},
};

/// Maximum time until the tasks of a program have ended after a signal.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(25);

/// The first line of `--help`.
const ABOUT: &str = "A program of Assay. X_FILE names a file with the value of the variable X.";

// A doc comment would be the first line of `--help`.
#[derive(Parser)]
#[command(
    version,
    about = ABOUT
)]
struct Options<C: Args> {
    #[command(flatten)]
    program: C,
    #[command(flatten)]
    telemetry: TelemetryConfig,
    #[command(flatten)]
    admin: AdminConfig,
    #[command(flatten)]
    tls: TlsConfig,
}

/// Runs one program until SIGTERM or Ctrl-C, or until one of its tasks fails.
pub fn run<C: Args>(
    name: &'static str,
    start: impl AsyncFnOnce(&Runtime, C) -> anyhow::Result<()>,
) -> ExitCode {
    serve(name, parse::<Options<C>>(), start)
}

/// Runs the program as [`run`] does, or one of its commands for operators, such as
/// `assay-identity rotate-keys`. Options of the program precede the command, which requires only
/// those that it reads.
pub fn run_with_commands<C: Args, D: Subcommand>(
    name: &'static str,
    start: impl AsyncFnOnce(&Runtime, C) -> anyhow::Result<()>,
    run_command: impl AsyncFnOnce(D, &CommandLine) -> anyhow::Result<()>,
) -> ExitCode {
    let program = Options::<C>::command().name(name).subcommand_negates_reqs(true);
    let mut program = D::augment_subcommands(program).subcommand_required(false).about(ABOUT);
    let given = CommandLine { matches: matches(&program), program: program.clone() };
    if given.matches.subcommand_name().is_none() {
        return serve(name, read(&mut program, &given.matches), start);
    }
    let command = read(&mut program, &given.matches);
    install_crypto();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = tokio.map_err(anyhow::Error::from);
    exit_code(name, done.and_then(|tokio| tokio.block_on(run_command(command, &given))))
}

/// The command line of a program, from which a command reads the options that it needs.
pub struct CommandLine {
    program: Command,
    matches: ArgMatches,
}

impl CommandLine {
    /// Reads options of the program. Exits with code 2, and lists what is missing, if required
    /// options are missing.
    pub fn read<A: Args>(&self) -> A {
        let options = A::augment_args(Command::new(""));
        let is_missing = |option: &&Arg| {
            option.is_required_set() && !self.matches.contains_id(option.get_id().as_str())
        };
        let missing = options.get_arguments().filter(is_missing).map(|option| {
            let variable = option.get_env().unwrap_or_default().display();
            format!("--{} ({variable})", option.get_long().unwrap_or_default())
        });
        let missing: Vec<_> = missing.collect();
        let mut program = self.program.clone();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let problem = format!("the command needs options before it: {missing}");
            program.error(ErrorKind::MissingRequiredArgument, problem).exit();
        }
        A::from_arg_matches(&self.matches).unwrap_or_else(|error| error.format(&mut program).exit())
    }
}

/// Number of tasks that a thread runs before it looks for new input.
const TASKS_BETWEEN_INPUT: u32 = 8;

/// Time after which a thread for blocking work ends if there is none. The allocator then gives back
/// memory that was freed more than a second ago.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// Starts the threads of a program.
///
/// A busy thread looks for input every [`TASKS_BETWEEN_INPUT`] tasks. By tokio's default of 61,
/// each message of one customer's request would wait for dozens of tasks of another customer, such
/// as parts of lists, and a request consists of a dozen messages.
pub fn threads() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .event_interval(TASKS_BETWEEN_INPUT)
        .global_queue_interval(TASKS_BETWEEN_INPUT)
        .thread_keep_alive(KEEP_ALIVE)
        .build()
}

fn serve<C: Args>(
    name: &'static str,
    options: Options<C>,
    start: impl AsyncFnOnce(&Runtime, C) -> anyhow::Result<()>,
) -> ExitCode {
    install_crypto();
    let served = threads().map_err(anyhow::Error::from).and_then(|tokio| {
        tokio.block_on(async {
            let admin_listen = options.admin.address.admin_listen;
            if options.admin.is_ready {
                return check_readiness(admin_listen).await;
            }
            let telemetry = Telemetry::install(name, &options.telemetry)?;
            raise_file_limit();
            let runtime = Runtime::with_tls(name, Tls::open(&options.tls)?);
            if options.admin.grpc_reflection {
                runtime.reflect();
            }
            telemetry.spawn_upkeep(&runtime);
            serve_admin(&runtime, admin_listen, telemetry.metrics()).await?;
            start(&runtime, options.program).await?;
            tokio::select! {
                () = stop_signal() => {}
                () = runtime.stopping().cancelled_owned() => {}
            }
            let stopped = tokio::select! {
                stopped = runtime.stop(SHUTDOWN_TIMEOUT) => stopped,
                () = stop_signal() => Err(anyhow::anyhow!("stopped by a second signal")),
            };
            telemetry.flush().await;
            stopped
        })
    });
    exit_code(name, served)
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

/// Selects the cryptographic library for TLS and tokens in this process. Calling it again has no
/// effect.
pub fn install_crypto() {
    install_tls();
    // It fails only if the library was selected before.
    let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
}
