//! `assay-ci` in jobs of CI systems.

mod attachments;
mod gate;
mod guide;
mod shards;
mod skipped;
mod tools;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use assay_testkit::{Api, test_dir};
use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

use crate::{customer::Customer, world::id};

const PASSED: &str = r#"<testsuite name="s"><testcase classname="shop" name="pays"/></testsuite>"#;
const FAILED: &str = r#"<testsuite name="s"><testcase classname="shop" name="ships">
    <failure message="lost"/></testcase></testsuite>"#;

/// A job with a folder and environment variables of its own.
pub(crate) struct Job {
    pub(crate) folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Job {
    /// Creates a job with a token that may create projects.
    pub(crate) async fn new(customer: &Customer) -> Self {
        let token = json!({"Name": "CI", "UsagePermission": "Execute, Write, Read"});
        let token = customer.api.post("/api/users/current/tokens", token).await.created();
        let folder = test_dir().unwrap().join(Uuid::now_v7().to_string());
        fs::create_dir_all(folder.join("reports")).unwrap();
        let token = token["Secret"].as_str().unwrap();
        let job = Self { folder, variables: Vec::new() };
        job.with(&[("ASSAY_URL", &customer.url()), ("ASSAY_TOKEN", token)])
    }

    fn with(mut self, variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter();
        self.variables.extend(variables.map(|(name, value)| ((*name).into(), (*value).into())));
        self
    }

    pub(crate) fn report(&self, text: &str) {
        fs::write(self.folder.join("reports/junit.xml"), text).unwrap();
    }

    /// Runs a script whose `assay-ci` is the program.
    async fn run(&self, script: &str) -> Output {
        let programs = Path::new(env!("CARGO_BIN_EXE_assay")).parent().unwrap();
        let mut command = Command::new("bash");
        command
            .args(["-euc", script])
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .kill_on_drop(true);
        command.output().await.unwrap()
    }

    /// Runs `assay-ci` for the set "nightly" of the project "shop"; returns its exit code and output.
    pub(crate) async fn assay_ci(&self, arguments: &str) -> (i32, String) {
        let script = format!("assay-ci {arguments} --project shop --set nightly");
        let output = self.run(&script).await;
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the executions of the only project, the latest first.
pub(crate) async fn executions(api: &Api) -> Vec<Value> {
    let projects = api.get("/api/projects").await.ok();
    let project = format!("/api/projects/{}", id(&projects[0]));
    let entries = api.get(&format!("{project}/executions")).await.ok();
    let mut executions = Vec::new();
    for entry in entries.as_array().unwrap() {
        executions.push(api.get(&format!("{project}/executions/{}", id(entry))).await.ok());
    }
    executions
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_uploads_its_reports_and_fails_with_its_execution() {
    let customer = Customer::new().await;
    let job = Job::new(&customer).await;

    let (code, output) = job.assay_ci("upload 'reports/**/*.xml'").await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("no file with contents matches reports/**/*.xml"), "{output}");
    let (code, output) = job.assay_ci("upload 'reports/**/*.xml' --allow-empty").await;
    assert_eq!(code, 0, "{output}");
    job.report(PASSED);
    let (code, output) = job.assay_ci("upload 'reports/**/*.xml' --branch main --wait").await;
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("nightly: Passed, 1 of 1 tests passed, 0 failed"), "{output}");
    job.report(FAILED);
    let (code, output) = job.assay_ci("upload reports/junit.xml").await;
    assert_eq!(code, 0, "{output}");
    let (code, output) = job.assay_ci("upload reports/junit.xml --wait").await;
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("Failed: shop.ships"), "{output}");
    job.report("<testsuite>");
    let (code, output) = job.assay_ci("upload reports/junit.xml").await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("reports/junit.xml: 400 Bad Request malformed"), "{output}");
    let (code, output) = job.assay_ci("upload").await;
    assert_eq!(code, 2, "{output}");

    let first = executions(&customer.api).await.pop().unwrap();
    assert_eq!((&first["Branch"], &first["Result"]), (&json!("main"), &json!("Passed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_https_needs_certificates_of_authorities() {
    let customer = Customer::new().await;
    let job = Job::new(&customer).await;
    let job = job.with(&[("SSL_CERT_FILE", "/missing"), ("SSL_CERT_DIR", "/missing")]);
    job.report(PASSED);
    let (code, output) = job.assay_ci("upload reports/junit.xml").await;
    assert_eq!(code, 0, "{output}");
    let (code, output) = job.assay_ci("upload reports/junit.xml --url https://localhost").await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("install ca-certificates"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_with_one_key_report_to_one_execution_until_it_is_completed() {
    let customer = Customer::new().await;
    let (job, other) = (Job::new(&customer).await, Job::new(&customer).await);
    job.report(PASSED);
    other.report(FAILED);
    let upload = "upload reports/junit.xml --key run-1 --keep-open";

    let reporters = [format!("{upload} --reporter unit"), format!("{upload} --reporter e2e")];
    let ((code, output), (other_code, other_output)) =
        tokio::join!(job.assay_ci(&reporters[0]), other.assay_ci(&reporters[1]));
    assert_eq!((code, other_code), (0, 0), "{output}\n{other_output}");
    assert!(output.contains("still open"), "{output}");
    let (code, output) = job.assay_ci("complete --key run-1 --wait").await;
    assert_eq!(code, 1, "{output}");
    let (code, again) = job.assay_ci("complete --key run-1 --wait").await;
    assert_eq!((code, again), (1, output));
    let (code, output) = job.assay_ci("upload reports/junit.xml --key run-1").await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("has ended; use another key"), "{output}");

    let [execution] = &executions(&customer.api).await[..] else { panic!("several executions") };
    assert_eq!(execution["Statistic"]["TestCasesTotal"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_job_of_a_matrix_without_names_is_refused() {
    let customer = Customer::new().await;
    let variables = [("GITHUB_ACTIONS", "true"), ("GITHUB_RUN_ID", "7"), ("GITHUB_JOB", "test")];
    let first = Job::new(&customer).await.with(&variables);
    first.report(PASSED);
    let (code, output) = first.assay_ci("upload reports/junit.xml").await;
    assert_eq!(code, 0, "{output}");
    let second = Job::new(&customer).await.with(&variables);
    second.report(FAILED);
    let (code, output) = second.assay_ci("upload reports/junit.xml").await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("ASSAY_REPORTERS"), "{output}");
    assert_eq!(executions(&customer.api).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_job_of_a_ci_system_reports_to_a_new_execution() {
    let customer = Customer::new().await;
    for (report, retries) in [(FAILED, "0"), (PASSED, "1")] {
        let job = Job::new(&customer).await.with(&[
            ("BUILDKITE", "true"),
            ("BUILDKITE_BUILD_ID", "b1"),
            ("BUILDKITE_STEP_ID", "s"),
            ("BUILDKITE_RETRY_COUNT", retries),
        ]);
        job.report(report);
        let (code, output) = job.assay_ci("upload reports/junit.xml").await;
        assert_eq!(code, 0, "{output}");
    }

    let executions = executions(&customer.api).await;

    let results: Vec<_> = executions.iter().map(|execution| &execution["Result"]).collect();
    assert_eq!(results, ["Passed", "Failed"]);
    assert_eq!(executions[0]["Key"], "buildkite:::b1:s-2");
}
