//! The reference engine with real commands.

mod clients;
mod files;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use assay_client::Account;
use assay_execution::TimeLimits;
use assay_testkit::{Api, eventually, test_dir};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    customer::Customer,
    world::{World, create_project, id},
};

/// The example of `docs/engines.md`.
const SMOKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/engines/smoke");

/// A JUnit report by cargo-nextest of a run of Assay's own tests.
const JUNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/first-session/junit.xml");

/// A running engine.
struct Engine {
    running: JoinSet<anyhow::Result<()>>,
    stop: CancellationToken,
}

impl Engine {
    async fn start(api: &Api, url: String, command: &[&str]) -> Self {
        Self::start_with(api, url, command, |_| {}).await
    }

    /// Starts an engine with other settings.
    async fn start_with(
        api: &Api,
        url: String,
        command: &[&str],
        change: impl FnOnce(&mut assay_engine::Config),
    ) -> Self {
        let token = json!({"Name": "Engine", "UsagePermission": "Automation"});
        let token = api.post("/api/users/current/tokens", token).await.created();
        let mut config = assay_engine::Config {
            account: Account {
                url: url.parse().unwrap(),
                token: SecretString::from(token["Secret"].as_str().unwrap()),
            },
            target_group: String::new(),
            needs_public_ip: None,
            labels: Vec::new(),
            projects: Vec::new(),
            cache: None,
            cache_gib: 1,
            name: "engine".to_owned(),
            parallel: 2,
            // Engines do not poll: a heartbeat waits for the end of the execution.
            heartbeat_seconds: 30,
            grace_seconds: 0,
            live_log: true,
            command: command.iter().map(OsString::from).collect(),
        };
        change(&mut config);
        let (mut running, stop) = (JoinSet::new(), CancellationToken::new());
        running.spawn(assay_engine::run(config, stop.clone()));
        Self { running, stop }
    }

    async fn stop(mut self) {
        self.stop.cancel();
        self.running.join_next().await.unwrap().unwrap().unwrap();
    }
}

/// Creates a set with test cases of these identifiers and numbers of instances, with a variable
/// `COLOUR`, for a subject at `uri`. Returns the paths of the project and the set.
async fn create_set(api: &Api, uri: &str, cases: &[(&str, i32)]) -> (String, String) {
    create_limited_set(api, uri, cases, 0.0).await
}

/// Creates a set whose tests may take this number of minutes.
async fn create_limited_set(
    api: &Api,
    uri: &str,
    cases: &[(&str, i32)],
    minutes: f64,
) -> (String, String) {
    let project = create_project(api).await;
    let subject = json!({"Name": "Assay", "Identifier": "1.0", "SubjectType": "Webpage",
        "Uri": uri});
    let subject = api.post(&format!("{project}/subjects"), subject).await.created();
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Smoke"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    api.put(&set, json!({"SelectedSubjectId": subject["Id"]})).await.ok();
    for (identifier, instances) in cases {
        let case = json!({"Name": "A test", "Description": "", "Identifier": identifier});
        let case = api.post(&format!("{project}/testcases"), case).await.created();
        let plans = format!("{project}/testcases/{}/testplans", id(&case));
        let colour = json!({"Name": "COLOUR", "DisplayName": "", "PoolName": "",
            "IsSecured": true, "ValidationRule": "", "Content": "green"});
        let plan = json!({"Instances": instances, "Variables": [colour],
            "MaximumDurationInMin": minutes});
        let plan = api.post(&plans, plan).await.created();
        let ready = json!({"Status": "ReadyForExecution"});
        api.put(&format!("{plans}/{}", id(&plan)), ready).await.ok();
        api.put(&format!("{set}/testcases"), json!({"Id": case["Id"]})).await.ok();
    }
    (project, set)
}

async fn start_execution(api: &Api, project: &str, set: &str) -> String {
    let execution = api.post(&format!("{set}/executions"), json!({})).await.created();
    format!("{project}/executions/{}", id(&execution))
}

/// Waits until the execution has ended; returns it.
async fn wait_for_end(api: &Api, execution: &str) -> Value {
    eventually("the end of the execution", || async {
        let execution = api.get(execution).await.ok();
        execution["CompletionDateTime"].is_string().then_some(execution)
    })
    .await
}

/// The only instance of a report.
async fn instance(api: &Api, project: &str, report: &Value) -> Value {
    let at = |field: &str| report[field].as_str().unwrap();
    let (case, plan) = (at("TestCaseId"), at("TestPlanId"));
    let report = format!("{project}/testcases/{case}/testplans/{plan}/testreports/{}", id(report));
    let instances = api.get(&format!("{report}/instances")).await.ok();
    api.get(&format!("{report}/instances/{}", id(&instances[0]))).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_runs_tests_and_reports_their_results() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let cases = [("SMOKE-1", 1), ("SMOKE-2", 2), ("SMOKE-3", 1), ("SMOKE-4", 1)];
    let (project, set) = create_set(api, &customer.url(), &cases).await;
    let engine = Engine::start(api, customer.url(), &[SMOKE]).await;

    let done = wait_for_end(api, &start_execution(api, &project, &set).await).await;

    let reports = done["TestReports"].as_array().unwrap();
    let results: Vec<_> = reports.iter().map(|report| report["Result"].clone()).collect();
    assert_eq!(results, ["Passed", "Passed", "Passed", "Failed"], "{done:#}");
    let secured = instance(api, &project, &reports[2]).await;
    assert_eq!(secured["Steps"][0]["ExpectedResult"], "401");
    assert_eq!(secured["Steps"][0]["ActualResult"], "401");
    let unknown = instance(api, &project, &reports[3]).await;
    let message = unknown["Steps"][0]["ActualResult"].as_str().unwrap();
    assert!(
        message.contains("exit status: 1") && message.contains("unknown test SMOKE-4"),
        "{message}"
    );
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_passes_the_lease_to_the_command_and_reads_its_junit_file() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let (project, set) = create_set(api, "https://example.org/", &[("A-1", 1)]).await;
    let dir = test_directory();
    let script = format!(
        "cat >{dir}/lease; env >{dir}/environment; cp {JUNIT} \"$ASSAY_JUNIT_FILE\"; exit 1",
        dir = dir.display()
    );
    let engine = Engine::start(api, customer.url(), &["sh", "-c", &script]).await;

    let done = wait_for_end(api, &start_execution(api, &project, &set).await).await;

    assert_eq!(done["Result"], "Failed");
    let instance = instance(api, &project, &done["TestReports"][0]).await;
    let steps = instance["Steps"].as_array().unwrap();
    let junit = std::fs::read_to_string(JUNIT).unwrap();
    assert!(steps.len() >= junit.matches("<testcase ").count());
    assert!(steps.iter().any(|step| step["Result"] == "Failed"));
    let lease: Value = serde_json::from_str(&read(&dir, "lease")).unwrap();
    assert_eq!(lease["TestCase"]["Identifier"], "A-1");
    assert_eq!(lease["TestPlan"]["Variables"][0]["Content"], "green");
    let environment = read(&dir, "environment");
    for line in ["COLOUR=green", "ASSAY_TEST_CASE=A-1", "ASSAY_SUBJECT=1.0"] {
        assert!(environment.lines().any(|variable| variable == line), "{line}:\n{environment}");
    }
    assert!(!environment.contains("ASSAY_TOKEN"), "{environment}");
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_that_hangs_is_stopped_with_its_children_and_is_an_error() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let (project, set) = create_limited_set(api, "https://example.org/", &[("A-1", 1)], 0.02).await;
    let dir = test_directory();
    let command = format!("echo begun; {}", command_with_child(&dir));
    let engine = Engine::start(api, customer.url(), &["sh", "-c", &command]).await;
    let execution = start_execution(api, &project, &set).await;
    let child = wait_for_child(&dir).await;

    let done = wait_for_end(api, &execution).await;

    wait_for_exit(child).await;
    let report = &done["TestReports"][0];
    assert_eq!((&report["Result"], &done["Result"]), (&json!("Error"), &json!("Error")));
    let instance = instance(api, &project, report).await;
    let text = instance["Steps"][0]["ActualResult"].as_str().unwrap();
    assert!(text.starts_with("Timed out: ") && text.ends_with("begun"), "{text}");
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_stops_the_command_and_its_children_when_the_execution_is_canceled() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let (project, set) = create_set(api, "https://example.org/", &[("A-1", 1)]).await;
    let dir = test_directory();
    let engine = Engine::start(api, customer.url(), &["sh", "-c", &command_with_child(&dir)]).await;
    let execution = start_execution(api, &project, &set).await;
    let child = wait_for_child(&dir).await;

    let begun = Instant::now();
    api.delete(&execution).await.expect(204);

    wait_for_exit(child).await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(api.get(&execution).await.ok()["Result"], "Canceled");
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_releases_unfinished_leases_when_it_stops() {
    let world = World::start_with(|settings| {
        settings.leases = TimeLimits {
            lease_seconds: 3600,
            lease_losses: 1,
            test_minutes: 360,
            execution_hours: 168,
            grace_seconds: 900,
            queue_seconds: 300,
        };
    })
    .await;
    let (project, set) = create_set(&world.api, "https://example.org/", &[("A-1", 1)]).await;
    let dir = test_directory();
    let engine =
        Engine::start(&world.api, world.url(), &["sh", "-c", &command_with_child(&dir)]).await;
    let execution = start_execution(&world.api, &project, &set).await;
    let child = wait_for_child(&dir).await;

    engine.stop().await;

    wait_for_exit(child).await;
    let engine = Engine::start(&world.api, world.url(), &["true"]).await;
    assert_eq!(wait_for_end(&world.api, &execution).await["Result"], "Passed");
    engine.stop().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_cannot_be_started_is_an_engine_failure() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let (project, set) = create_set(api, "https://example.org/", &[("A-1", 1)]).await;
    let engine = Engine::start(api, customer.url(), &["/no/such/command"]).await;
    let done = wait_for_end(api, &start_execution(api, &project, &set).await).await;
    let report = &done["TestReports"][0];
    assert_eq!(report["Status"], "EngineExecutionFailure");
    assert!(report["Comment"].as_str().unwrap().contains("/no/such/command"), "{report}");
    engine.stop().await;
}

fn test_directory() -> PathBuf {
    let dir = test_dir().unwrap().join(Uuid::now_v7().to_string());
    std::fs::create_dir(&dir).unwrap();
    dir
}

fn read(dir: &Path, file: &str) -> String {
    std::fs::read_to_string(dir.join(file)).unwrap()
}

/// A command with a child process that survives unless both are stopped.
fn command_with_child(dir: &Path) -> String {
    format!("sleep 300 & echo $! >{dir}/new; mv {dir}/new {dir}/child; wait", dir = dir.display())
}

/// Waits for the child; returns its process id.
async fn wait_for_child(dir: &Path) -> u32 {
    let child =
        eventually("the child", || async { std::fs::read_to_string(dir.join("child")).ok() }).await;
    child.trim().parse().unwrap()
}

/// Waits until a process has ended; a zombie has ended, too.
async fn wait_for_exit(process: u32) {
    eventually("the end of the child", || async {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
        status.map_or(true, |status| status.contains(") Z ")).then_some(())
    })
    .await;
}
