//! The program `assay-ci`.

use std::process::ExitCode;

use assay_ci::Config;
use assay_client::{install_logs, visible};
use assay_program::{LogConfig, install_tls, parse};
use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code if the upload failed.
const NOT_REPORTED: u8 = 3;

/// Description of keys, reporters and exit codes, for `--help`.
const DETAILS: &str = "\
Formats are recognized by the contents of a file: JUnit XML, CTRF, Playwright JSON and blobs,
Jest, Vitest, Mocha, Mochawesome and pytest JSON, Cucumber JSON and messages, go test -json, TAP, Robot
Framework, NUnit 2 and 3, Open Test Reporting, xUnit.net, TRX, TestNG, and zip archives of Allure
results.

In jobs of CI systems, the key, branch, commit, build and link come from the environment of the
system, and the shard and the number of shards if it names them: GitHub Actions, GitLab CI, Jenkins,
Azure Pipelines, Buildkite, CircleCI, Bitbucket Pipelines, TeamCity, Bamboo, AWS CodeBuild, Drone,
Woodpecker, Argo Workflows, Semaphore, AppVeyor, Travis CI, Cirrus CI, GoCD, Bitrise, Codefresh,
Buddy and Prow. Branch and commit are those of the change, not of a merge for the build.

Several jobs of a run that have neither names (--reporter) nor --whole-run would end the execution
for each other. The second one is refused, unless it repeats the first: its reports belong to a new
execution then.

The token needs the permission Execute, and Write if the project or the test set does not exist yet.

Exit codes:

  0  the reports were uploaded; with --wait, the execution passed; with --gate, it meets the rules
  1  with --wait, the execution did not pass; with --gate, it does not meet the rules of its test
     set
  2  an option is missing or not valid
  3  the reports were not uploaded, no file matches, the execution has not ended within --wait-minutes,
     or its verdict or the skipped tests cannot be read

The command skipped prints the tests of a project that are skipped in Assay in the form of a runner, and
nothing if there are none. The token needs the permission Read.

Example:

  ASSAY_URL=https://assay.example.org ASSAY_TOKEN_FILE=token \\
      assay-ci upload 'reports/**/*.xml' --project shop --set nightly --wait";

/// Upload the reports of a CI job to Assay
#[derive(Parser)]
#[command(name = "assay-ci", version, after_long_help = DETAILS)]
#[command(mut_arg("log", |log| log.default_value("info")))]
#[command(mut_arg("log_format", |format| format.default_value("text")))]
struct Options {
    #[command(flatten)]
    ci: Config,
    #[command(flatten)]
    logs: LogConfig,
}

fn main() -> ExitCode {
    let options = parse::<Options>();
    install_tls();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = tokio.map_err(anyhow::Error::from).and_then(|tokio| {
        tokio.block_on(async {
            install_logs(&options.logs)?;
            assay_ci::run(options.ci).await
        })
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("assay-ci: {}", visible(&format!("{error:#}")));
            ExitCode::from(NOT_REPORTED)
        }
    }
}
