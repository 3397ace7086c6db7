//! Agents of ReportPortal as their users run them: with a URL, a token and nothing else. Executions are
//! compared with the output of the test tools. `make test-agents` runs all of them; that of pytest is
//! part of the other tests.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use assay_testkit::{eventually, test_dir};
use serde_json::Value;
use tokio::process::Command;
use uuid::Uuid;

use crate::{
    ci::executions,
    customer::Customer,
    documents::{at, node},
    reportportal::agent_token,
    reports::report_path,
    world::id,
};

/// A run of a tool with its agent.
struct Run {
    customer: Customer,
    token: String,
    folder: PathBuf,
}

impl Run {
    /// Copies the tests of a tool into a folder.
    async fn of(tool: &str) -> Self {
        let customer = Customer::new().await;
        let token = agent_token(&customer.api).await;
        let folder = test_dir().unwrap().join(Uuid::now_v7().to_string());
        copy(&at("deploy/agents").join(tool), &folder);
        Self { customer, token, folder }
    }

    /// Returns a command of a Python environment.
    fn python(&self, environment: &str, module: &str) -> Command {
        // Not canonical: the link makes it the Python of the environment.
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/agents");
        let mut command = Command::new(tools.join(environment).join("bin/python"));
        command.args(["-m", module]).current_dir(&self.folder).kill_on_drop(true);
        command
    }

    /// Returns a command of a program of a Node package, in a folder of the tests.
    fn node(&self, folder: &str, program: &str) -> Command {
        let modules = at("target/tools/agents/node/node_modules");
        let link = self.folder.join("node_modules");
        if !link.exists() {
            symlink(&modules, link).unwrap();
        }
        let mut command = node(&self.folder.join(folder));
        command.arg(modules.join(program));
        command.env("RP_URL", self.customer.url()).env("RP_TOKEN", &self.token);
        command.env("RP_LAUNCH", folder);
        command
    }

    /// Runs the tests, of which one fails, and checks that the execution of the launch has the counts
    /// that the tool prints, on lines with `marker` if there are others, and these texts in the
    /// instances of test cases.
    async fn check(&self, mut command: Command, marker: &str, texts: &[(&str, &str)]) {
        command.env("NO_COLOR", "1").env("FORCE_COLOR", "0").env("AGENT_NO_ANALYTICS", "1");
        command.env("REPORTPORTAL_CLIENT_JS_NO_ANALYTICS", "1");
        let ran = command.output().await.unwrap();
        let output = [ran.stdout, ran.stderr].concat();
        let output = String::from_utf8_lossy(&output);
        let api = &self.customer.api;
        let execution = eventually("the results of the launch", || async {
            let execution = executions(api).await.into_iter().next()?;
            (execution["Status"] == "Completed").then_some(execution)
        })
        .await;

        let statistic = &execution["Statistic"];
        let count = |name: &str| statistic[format!("TestCases{name}")].as_u64().unwrap();
        let counts = [count("Passed"), count("Failed") + count("WithError"), count("Canceled")];
        assert_eq!(counts, printed(&output, marker), "{output}\n{execution:#}");
        assert_eq!((counts.iter().sum(), counts[1]), (count("Total"), 1), "{output}");
        assert_eq!(executions(api).await.len(), 1);
        let project = format!("/api/projects/{}", execution["ProjectId"].as_str().unwrap());
        for (case, text) in texts {
            let named = |report: &&Value| report["TestCaseName"].as_str().unwrap().contains(case);
            let reports = execution["TestReports"].as_array().unwrap();
            let report = reports.iter().find(named);
            let report = report.unwrap_or_else(|| panic!("no {case}: {reports:#?}"));
            let report = report_path(&project, report);
            let instances = api.get(&format!("{report}/instances")).await.ok();
            let instance = format!("{report}/instances/{}", id(&instances[0]));
            let instance = api.get(&instance).await.ok();
            assert!(instance.to_string().contains(text), "no {text:?} in {case}: {instance:#}");
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Returns the numbers of tests that have passed, failed and were skipped, as a tool prints them: each
/// number before its word.
fn printed(output: &str, marker: &str) -> [u64; 3] {
    let mut counts = [0; 3];
    for line in output.lines().filter(|line| line.contains(marker)) {
        let mut number = None;
        for word in line.split(|c: char| c.is_whitespace() || ",|()".contains(c)) {
            let states = [&["pass"][..], &["fail"], &["skip", "pend"]];
            let is_state = |names: &&[&str]| names.iter().any(|name| word.starts_with(name));
            match (states.iter().position(is_state), number) {
                (Some(state), Some(count)) => counts[state] = count,
                _ => number = word.parse().ok().or(number),
            }
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn pytest_reports_to_assay_unchanged() {
    let run = Run::of("pytest").await;
    let mut pytest = run.python("pytest", "pytest");
    pytest.args(["--reportportal", "-p", "no:cacheprovider"]);
    for setting in [
        &format!("rp_endpoint={}", run.customer.url()),
        &format!("rp_api_key={}", run.token),
        "rp_project=agents",
        "rp_launch=pytest",
    ] {
        pytest.args(["-o", setting]);
    }
    let texts = [
        ("test_pay[card]", "paying by card"),
        ("test_ship", "lost"),
        ("test_ship", "-parcel.txt?"),
    ];
    run.check(pytest, " in ", &texts).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make test-agents"]
async fn robot_framework_reports_to_assay_unchanged() {
    let run = Run::of("robot").await;
    let mut robot = run.python("robot", "robot");
    robot.args(["--listener", "robotframework_reportportal.listener"]);
    for variable in [
        &format!("RP_ENDPOINT:{}", run.customer.url()),
        &format!("RP_API_KEY:{}", run.token),
        "RP_PROJECT:agents",
        "RP_LAUNCH:robot",
    ] {
        robot.args(["--variable", variable]);
    }
    robot.arg("shop.robot");
    let texts = [("Pays By Card", "paying by card"), ("Ships", "lost")];
    run.check(robot, "4 tests", &texts).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make test-agents"]
async fn behave_reports_to_assay_unchanged() {
    let run = Run::of("behave").await;
    let settings = format!(
        "[report_portal]\nendpoint = {}\napi_key = {}\nproject = agents\nlaunch_name = behave\n\
         log_layout = STEP\n",
        run.customer.url(),
        run.token
    );
    fs::write(run.folder.join("behave.ini"), settings).unwrap();
    let texts = [("Pays by card", "it is paid by card"), ("Ships", "lost")];
    run.check(run.python("behave", "behave"), " scenario", &texts).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make test-agents"]
async fn jest_reports_to_assay_unchanged() {
    let run = Run::of("node").await;
    let jest = run.node("jest", "jest/bin/jest.js");
    run.check(jest, "Tests:", &[("pays by card", ""), ("ships", "lost")]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make test-agents"]
async fn mocha_reports_to_assay_unchanged() {
    let run = Run::of("node").await;
    let mocha = run.node("mocha", "mocha/bin/mocha.js");
    run.check(mocha, "", &[("pays by card", ""), ("ships", "lost")]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make test-agents"]
async fn vitest_reports_to_assay_unchanged() {
    let run = Run::of("node").await;
    let mut vitest = run.node("vitest", "vitest/vitest.mjs");
    vitest.arg("run");
    run.check(vitest, "Tests ", &[("pays by card", ""), ("ships", "lost")]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make test-agents"]
async fn playwright_reports_to_assay_unchanged() {
    let run = Run::of("node").await;
    let mut playwright = run.node("playwright", "@playwright/test/cli.js");
    playwright.arg("test");
    let texts = [("pays by card", "opens the cart"), ("ships", "lost"), ("ships", "ships_parcel?")];
    run.check(playwright, "", &texts).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make test-agents"]
async fn cucumber_reports_to_assay_unchanged() {
    let run = Run::of("node").await;
    let cucumber = run.node("cucumber", "@cucumber/cucumber/bin/cucumber.js");
    let texts = [("Pays by card", "it is paid by card"), ("Ships", "lost")];
    run.check(cucumber, "scenarios (", &texts).await;
}
