//! Options of the program.

use assay_client::Account;
use secrecy::SecretString;

/// Task of the program.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Upload reports, and complete the part of this job.
    Upload,
    /// Complete the whole execution, after the jobs that uploaded reports.
    Complete,
    /// Print the tests that are skipped in Assay, for the runner.
    Skipped,
}

/// Form of the tests that a runner leaves out.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
pub enum Format {
    /// Identifiers in Assay, one on each line.
    Names,
    /// Options of pytest, one on each line: `pytest @skipped.txt`.
    Pytest,
    /// Regular expression for `playwright test --grep-invert`.
    Playwright,
    /// Regular expression of all other tests, for `jest --testNamePattern` and `vitest --testNamePattern`.
    Jest,
    /// Tests for `mvn test -Dtest=…`, of Surefire.
    Surefire,
    /// Regular expression for `go test -skip`.
    Go,
}

/// Options of the program.
#[derive(clap::Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "these are flags of the program")]
pub struct Config {
    /// Action
    #[arg(value_enum)]
    pub action: Action,
    /// Reports to upload, as paths or patterns such as 'reports/**/*.xml'. Quote patterns, so that
    /// the shell does not expand them
    #[arg(required_if_eq("action", "upload"))]
    pub files: Vec<String>,
    #[command(flatten)]
    pub account: Account,
    /// Name or id of the project; created if there is none with this name
    #[arg(long, env = "ASSAY_PROJECT")]
    pub project: String,
    /// Name or id of the test set; created if there is none with this name. `skipped` does not need it
    #[arg(long, env = "ASSAY_TEST_SET", required_if_eq_any([("action", "upload"), ("action", "complete")]))]
    pub set: Option<String>,
    /// Key of the test run. Jobs with the same key report to one execution. Default: from the CI
    /// system
    #[arg(long, env = "ASSAY_KEY")]
    pub key: Option<String>,
    /// Use the key of the whole run of the CI system, so that all of its jobs report to one execution. It
    /// ends when a last job runs `assay-ci complete --whole-run`, or after --reporters jobs. --key replaces
    /// the key
    #[arg(long, env = "ASSAY_WHOLE_RUN")]
    pub whole_run: bool,
    /// Name of this job among those that report to the execution, such as the number of a shard.
    /// Default: from the CI system
    #[arg(long, env = "ASSAY_REPORTER")]
    pub reporter: Option<String>,
    /// Number of jobs that report to the execution; it ends after the last one. Default: from the
    /// CI system
    #[arg(long, env = "ASSAY_REPORTERS")]
    pub reporters: Option<i32>,
    /// Parameters of all tests of the reports, such as OS=linux
    #[arg(long, env = "ASSAY_VARIANT")]
    pub variant: Option<String>,
    /// Branch of the tested software. Default: from the CI system
    #[arg(long)]
    pub branch: Option<String>,
    /// Commit of the tested software. Default: from the CI system
    #[arg(long)]
    pub commit: Option<String>,
    /// Build of the tested software, or the run of the CI system. Default: from the CI system
    #[arg(long)]
    pub build: Option<String>,
    /// Link to the run of the CI system. Default: from the CI system
    #[arg(long)]
    pub ci_url: Option<String>,
    /// Tags of the execution, separated by commas. Default: those of the test set
    #[arg(long, env = "ASSAY_TAGS")]
    pub tags: Option<String>,
    /// Id of the subject that was tested. Default: the one selected in the test set
    #[arg(long, env = "ASSAY_SUBJECT_ID")]
    pub subject_id: Option<String>,
    /// Id of the environment of the tests. Default: the one selected in the test set
    #[arg(long, env = "ASSAY_ENVIRONMENT_ID")]
    pub environment_id: Option<String>,
    /// Time from the last result until the execution ends, in seconds, if a job never completes.
    /// Default: that of the installation
    #[arg(long, env = "ASSAY_GRACE_SECONDS")]
    pub grace_seconds: Option<i32>,
    /// Do not upload the files that reports refer to by their paths, such as screenshots. Only files
    /// below the current folder or that of the report are uploaded
    #[arg(long, env = "ASSAY_NO_ATTACHMENTS")]
    pub no_attachments: bool,
    /// Keep the sound tests of a report that is broken or ends early. The execution does not pass then
    #[arg(long, env = "ASSAY_PARTIAL")]
    pub partial: bool,
    /// Do not complete the part of this job after the upload
    #[arg(long)]
    pub keep_open: bool,
    /// Wait until the execution has ended, and exit with 1 unless it passed
    #[arg(long)]
    pub wait: bool,
    /// Wait until the execution has ended, and exit with 1 unless it meets the rules of its test set
    #[arg(long)]
    pub gate: bool,
    /// Wait until the execution has ended, and write the verdict as a comment on the pull or merge
    /// request and as a status of its commit, on GitHub or GitLab. Later runs change the comment. A
    /// failure is logged, and does not fail the job
    #[arg(long)]
    pub comment: bool,
    /// Token for comments and statuses. Default: `GITHUB_TOKEN` or `GITLAB_TOKEN`
    #[arg(long, env = "ASSAY_COMMENT_TOKEN", hide_env_values = true)]
    pub comment_token: Option<SecretString>,
    /// Maximum time to wait for the end of the execution, in minutes
    #[arg(long, default_value_t = 60)]
    pub wait_minutes: u16,
    /// Succeed if no file matches
    #[arg(long)]
    pub allow_empty: bool,
    /// With `skipped`, form of the tests
    #[arg(long, value_enum, default_value_t = Format::Names)]
    pub format: Format,
}
