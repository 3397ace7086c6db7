//! The engine as a program.

use std::process::ExitCode;

use assay_engine::Config;
use assay_runtime::{
    install_crypto, parse, stop_signal,
    telemetry::{LogFormat, Telemetry, TelemetryConfig},
};
use clap::Parser;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the command is told and what it tells, for `--help`.
const PROTOCOL: &str = "\
For each instance of a test the command is run once, in a process group of its own. It finds the
lease as JSON on its standard input, and in its environment the variables of the subject and of the
test plan under their names, and:

  ASSAY_TEST_CASE, ASSAY_TEST_NAME     the identifier and the name of the test case
  ASSAY_INSTANCE_NR                    which instance it is
  ASSAY_EXECUTION_ID, ASSAY_REPORT_ID  what it is run for
  ASSAY_SUBJECT, ASSAY_SUBJECT_URI     the identifier and the address of the subject
  ASSAY_ENVIRONMENT, ASSAY_USERNAME, ASSAY_PASSWORD
                                       the environment, and how to log in there
  ASSAY_RESULT_FILE, ASSAY_JUNIT_FILE  where the command may write what came of it

What came of it is, of these, the first that there is:

  the result file   a JSON object with Result (Passed, Failed, Error, Aborted or Canceled), and if
                    you like Steps, DurationInSec and links, as in the body of
                    POST /api/automation/leases/{leaseId}/instances
  the JUnit file    of which every test becomes a step, and the worst result counts
  the exit code     0 for Passed, another one for Failed; Error if a signal has ended it

A command that is not to go on gets SIGTERM, with all that it has started, and five seconds later
SIGKILL.";

/// Runs the tests that Assay has queued, by a command of yours
#[derive(Parser)]
#[command(name = "assay-engine", version, after_long_help = PROTOCOL)]
struct Options {
    #[command(flatten)]
    engine: Config,
    /// What is logged, as tracing directives
    #[arg(long, env = "ASSAY_LOG", default_value = "info")]
    log: String,
    /// How log lines are written
    #[arg(long, env = "ASSAY_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
}

fn main() -> ExitCode {
    let options = parse::<Options>();
    install_crypto();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = tokio.map_err(anyhow::Error::from).and_then(|tokio| {
        tokio.block_on(async {
            let telemetry = TelemetryConfig {
                log: options.log,
                log_format: options.log_format,
                otlp_endpoint: None,
            };
            let _telemetry = Telemetry::install("assay-engine", &telemetry)?;
            let stop = CancellationToken::new();
            let told = stop.clone();
            tokio::select! {
                done = assay_engine::run(options.engine, stop) => done,
                never = async {
                    stop_signal().await;
                    tracing::info!("stopping: running tests may end, others are given back");
                    told.cancel();
                    stop_signal().await;
                    Err(anyhow::anyhow!("stopped by a second signal"))
                } => never,
            }
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay-engine: {error:#}");
            ExitCode::FAILURE
        }
    }
}
