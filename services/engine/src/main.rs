//! The program `assay-engine`.

use std::process::ExitCode;

use assay_client::{install_logs, visible};
use assay_engine::Config;
use assay_program::{LogConfig, install_tls, parse, stop_signal};
use clap::Parser;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Description of the interface to the command and of the signals, for `--help`.
const PROTOCOL: &str = "\
The engine runs the command once for each instance of a test, in a process group of its own.

Input:

  standard input  the lease as JSON
  environment     the variables of the subject and the test plan under their own names, except PATH,
                  those that shells start with (BASH_ENV, BASHOPTS, SHELLOPTS, IFS, PS4), and names
                  that begin with ASSAY_, LD_ or DYLD_; and:

    ASSAY_TEST_CASE, ASSAY_TEST_NAME     identifier and name of the test case
    ASSAY_INSTANCE_NR                    number of the instance
    ASSAY_EXECUTION_ID, ASSAY_REPORT_ID  ids of the execution and the test report
    ASSAY_SUBJECT, ASSAY_SUBJECT_URI     identifier and URI of the subject
    ASSAY_ENVIRONMENT, ASSAY_USERNAME, ASSAY_PASSWORD
                                         name and credentials of the environment
    ASSAY_FILES                          folder with the files of the test under their names
    ASSAY_INPUT_FILE, ASSAY_SUPPORTING_FILES, ASSAY_AUTOMATION_SUPPORTING_FILES
                                         paths of the files of the test plan
    ASSAY_AUTOMATED_TEST_CONTAINER       path of the archive with the container of the test plan; the
                                         reference of an image is in the lease
    ASSAY_SOFTWARE_FILE, ASSAY_INSTALLATION_FILE, ASSAY_INSTRUCTION_FILE, ASSAY_FRAMEWORK_FILE
                                         paths of the files of the subject
    ASSAY_IMAGE_FILE                     path of the image of the environment
    ASSAY_RESULT_FILE, ASSAY_JUNIT_FILE  paths to which the command can write its result

The engine downloads the files of the test from Assay, and checks their SHA-256. Variables for files that the
test does not have are empty. The files are read-only, and other tests may share them. They are kept for
later tests, up to ASSAY_ENGINE_CACHE_GIB. The result of a test that does not get its files is Error.

Output, the first of these that exists:

  result file  a JSON object with Result (Passed, Failed, Error, Aborted or Canceled) and optionally
               Steps, DurationInSec and links, as in the body of
               POST /api/automation/leases/{leaseId}/instances
  JUnit file   each test becomes a step, and the worst result counts; Error if no test failed but
               the command did. Of more than 1,000 tests, or 768 KiB of steps, failures come first
  exit code    0 is Passed, any other is Failed; Error if a signal ended the command

While the command runs, its output is sent to Assay, where the page of the test shows it. It becomes the
artifact live.log, unless ASSAY_ENGINE_LIVE_LOG is false.

If the plan has a minimum duration, the engine repeats the command while it passes, and reports the
last run with the total duration.

A command that takes longer than the maximum duration of the plan, or than ASSAY_TEST_MINUTES of the
Assay (six hours), is stopped with its process group. Its result is Error, with the end of its output.

If the execution is canceled, the process group of the command receives SIGTERM, and SIGKILL five
seconds later.

If the lease of a test cannot be renewed, because Assay does not answer, the command is stopped in the
same way before the lease is lost, and the test returns to the queue.

The engine stops on SIGTERM and SIGINT. It leases no further tests, lets running tests finish within
the grace period, and returns the others to the queue, for which it takes up to ten seconds. A second
signal stops it immediately. If Assay rejects its requests, for example because the token was revoked,
the engine exits with code 1.

Example:

  ASSAY_TOKEN_FILE=token assay-engine --target-group browsers --parallel 4 -- ./run-test";

/// Run queued tests of Assay with your own command
#[derive(Parser)]
#[command(name = "assay-engine", version, after_long_help = PROTOCOL)]
#[command(mut_arg("log", |log| log.default_value("info")))]
#[command(mut_arg("log_format", |format| format.default_value("text")))]
struct Options {
    #[command(flatten)]
    engine: Config,
    #[command(flatten)]
    logs: LogConfig,
}

fn main() -> ExitCode {
    let options = parse::<Options>();
    install_tls();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = tokio.map_err(anyhow::Error::from).and_then(|tokio| {
        tokio.block_on(async {
            install_logs(&options.logs)?;
            let stop = CancellationToken::new();
            let stopping = stop.clone();
            tokio::select! {
                done = assay_engine::run(options.engine, stop) => done,
                second = async {
                    stop_signal().await;
                    tracing::info!("stopping after the running tests; a second signal stops immediately");
                    stopping.cancel();
                    stop_signal().await;
                    Err(anyhow::anyhow!("stopped by a second signal"))
                } => second,
            }
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay-engine: {}", visible(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}
