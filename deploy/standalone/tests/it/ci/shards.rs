//! Shards of one test run, which report while their tests run.

use std::{fs, path::Path, process::Stdio};

use assay_testkit::eventually;
use serde_json::Value;
use tokio::process::{Child, Command};

use super::{Job, executions};
use crate::customer::Customer;

/// The tests of each shard. In the shard `stuck`, the second test does not end.
const TESTS: &str = r#"
import os, time

def test_first(): pass

def test_second():
    while os.environ["ASSAY_REPORTER"] == "stuck":
        time.sleep(0.1)

def test_third(): assert os.environ["ASSAY_REPORTER"] != "failing", "the third test fails"
"#;

/// Runs the tests of a shard in the folder of a job.
fn pytest(job: &Job, shard: &str) -> Child {
    let tests = format!("test_{shard}.py");
    with_plugin(job, &tests, TESTS).env("ASSAY_REPORTER", shard).spawn().unwrap()
}

/// Returns pytest with the example plugin, for a file with tests in the folder of a job.
fn with_plugin(job: &Job, tests: &str, text: &str) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::write(job.folder.join(tests), text).unwrap();
    let plugin = job.folder.join("assay_reporter.py");
    fs::copy(root.join("docs/ci/assay_reporter.py"), plugin).unwrap();
    let mut command = Command::new(root.join("target/tools/python/bin/python"));
    command
        .args(["-m", "pytest", "-q", "-p", "assay_reporter", "-p", "no:cacheprovider"])
        .arg(tests)
        .current_dir(&job.folder)
        .envs(job.variables.iter().map(|(name, value)| (name, value)))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_of_a_killed_shard_are_aborted_after_the_grace_period() {
    let customer = Customer::new().await;
    let shared = [
        ("ASSAY_PROJECT", "shop"),
        ("ASSAY_TEST_SET", "nightly"),
        ("ASSAY_KEY", "run-1"),
        ("ASSAY_REPORTERS", "4"),
        ("ASSAY_GRACE_SECONDS", "10"),
    ];
    let job = Job::new(&customer).await.with(&shared);
    let mut stuck = pytest(&job, "stuck");
    let shards = ["one", "two", "failing"].map(|shard| pytest(&job, shard));
    for (shard, code) in shards.into_iter().zip([0, 0, 1]) {
        let output = shard.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:#?}");
    }
    eventually("the first result of the stuck shard", || async {
        let reports = executions(&customer.api).await.remove(0)["TestReports"].clone();
        of_shard(&reports, "stuck").first().is_some_and(|first| *first == "Passed").then_some(())
    })
    .await;
    stuck.kill().await.unwrap();
    let ended = eventually("the end of the grace period", || async {
        let all = executions(&customer.api).await;
        assert_eq!(all.len(), 1, "all shards report to one execution");
        let execution = all.into_iter().next().unwrap();
        (execution["Status"] == "Completed").then_some(execution)
    })
    .await;

    let reports = &ended["TestReports"];
    assert_eq!(of_shard(reports, "one"), ["Passed", "Passed", "Passed"]);
    assert_eq!(of_shard(reports, "failing"), ["Passed", "Passed", "Failed"]);
    assert_eq!(of_shard(reports, "stuck"), ["Passed", "Aborted", "Aborted"]);
    let statistic = &ended["Statistic"];
    let count = |name: &str| statistic[format!("TestCases{name}")].as_i64().unwrap();
    assert_eq!(["Total", "Passed", "Failed", "Aborted", "Pending"].map(count), [12, 9, 1, 2, 0]);
}

/// Returns the results of the tests of a shard in the order of its file.
fn of_shard<'r>(reports: &'r Value, shard: &str) -> Vec<&'r str> {
    let result = |test: &str| {
        let identifier = format!("test_{shard}.test_{test}");
        let mut reports = reports.as_array().unwrap().iter();
        let report = reports.find(|report| report["TestCaseIdentifier"] == identifier)?;
        report["Result"].as_str()
    };
    ["first", "second", "third"].into_iter().filter_map(result).collect()
}

const ONE: &str = "def test_pays(): pass\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_key_is_an_execution_that_ends_with_it() {
    let customer = Customer::new().await;
    let names = [("ASSAY_PROJECT", "shop"), ("ASSAY_TEST_SET", "nightly")];
    let job = Job::new(&customer).await.with(&names);
    for count in 1..=2 {
        let output = with_plugin(&job, "test_shop.py", ONE).output().await.unwrap();
        assert!(output.status.success(), "{output:#?}");
        let executions = executions(&customer.api).await;
        assert_eq!(executions.len(), count);
        assert_eq!(executions[0]["Status"], "Completed", "{:#}", executions[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_with_some_of_its_variables_fails_and_names_the_others() {
    let customer = Customer::new().await;
    let job = Job::new(&customer).await;
    let names = [("ASSAY_PROJECT", "shop"), ("ASSAY_TEST_SET", "nightly")];
    let shard = Job::new(&customer).await.with(&names).with(&[("ASSAY_REPORTERS", "2")]);
    for (job, missing) in
        [(&job, "ASSAY_PROJECT, ASSAY_TEST_SET"), (&shard, "ASSAY_KEY, ASSAY_REPORTER")]
    {
        let output = with_plugin(job, "test_shop.py", ONE).output().await.unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{errors}");
        assert!(errors.contains(&format!("assay_reporter: set {missing}")), "{errors}");
    }

    let mut unset = with_plugin(&job, "test_shop.py", ONE);
    let output = unset.env_remove("ASSAY_URL").env_remove("ASSAY_TOKEN").output().await.unwrap();
    assert!(output.status.success(), "{output:#?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("assay_reporter reports nothing"), "{errors}");
}
