//! Tests that are skipped in Assay are left out by runners.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use super::{Job, executions};
use crate::{
    customer::Customer,
    documents::{at, tool},
    world::in_days,
};

const PYTEST: &str = "
import pytest

class TestPay:
    @pytest.mark.parametrize('method', ['card', 'in.voice [1]'])
    def test_pay(self, method): pass

def test_ship(): pass
";

const PLAYWRIGHT: &str = "
import { test } from '@playwright/test';
test.describe('cart (new)', () => {
  test('pays $5', async () => {});
  test('pays $50', { tag: '@fast' }, async () => {});
});
test('ships', { tag: '@fast' }, async () => {});
";

/// Skips the test cases of a job's last execution whose names are these.
async fn skip(customer: &Customer, names: &[&str]) {
    let execution = executions(&customer.api).await.remove(0);
    let project = format!("/api/projects/{}", execution["ProjectId"].as_str().unwrap());
    for report in execution["TestReports"].as_array().unwrap() {
        if names.contains(&report["TestCaseName"].as_str().unwrap()) {
            let case = report["TestCaseId"].as_str().unwrap();
            let state = json!({"State": "Skipped", "Until": in_days(3)});
            let path = format!("{project}/testcases/{case}/state");
            customer.api.put(&path, state).await.ok();
        }
    }
}

/// Returns the names of the tests of the latest execution.
async fn ran(customer: &Customer) -> Vec<String> {
    let execution = executions(&customer.api).await.remove(0);
    let name = |report: &Value| report["TestCaseName"].as_str().unwrap().to_owned();
    execution["TestReports"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pytest_leaves_out_what_is_skipped_in_assay() {
    let customer = Customer::new().await;
    let job = Job::new(&customer).await;
    fs::create_dir_all(job.folder.join("tests")).unwrap();
    fs::write(job.folder.join("tests/test_shop.py"), PYTEST).unwrap();
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/python/bin/python");
    let run = format!(
        "export ASSAY_PROJECT=shop
         assay-ci skipped --format pytest > skipped.txt
         {} -m pytest -q -p no:cacheprovider --junitxml=reports/junit.xml @skipped.txt",
        python.display()
    );

    let first = job.run(&run).await;
    assert!(first.status.success(), "no such project yet: {first:#?}");
    job.assay_ci("upload 'reports/*'").await;
    assert_eq!(ran(&customer).await.len(), 3);
    skip(&customer, &["test_pay[in.voice [1]]", "test_ship"]).await;
    let second = job.run(&run).await;
    assert!(second.status.success(), "{second:#?}");
    job.assay_ci("upload 'reports/*'").await;

    assert_eq!(ran(&customer).await, ["test_pay[card]"]);
    let (code, names) = job.assay_ci("skipped").await;
    assert!(code == 0 && names.contains("tests.test_shop.test_ship\n"), "{names}");
}

#[tokio::test(flavor = "multi_thread")]
async fn playwright_leaves_out_what_is_skipped_in_assay() {
    let customer = Customer::new().await;
    let job = Job::new(&customer).await;
    fs::write(job.folder.join("shop.spec.mjs"), PLAYWRIGHT).unwrap();
    symlink(at("target/tools/node/node_modules"), job.folder.join("node_modules")).unwrap();
    let run = async |skipped: &str| {
        let mut tests = tool("@playwright/test/cli.js", &job.folder);
        tests.args(["test", "--reporter=junit"]);
        if !skipped.is_empty() {
            tests.args(["--grep-invert", skipped]);
        }
        tests.env("PLAYWRIGHT_JUNIT_OUTPUT_FILE", job.folder.join("reports/report.xml"));
        let done = tests.output().await.unwrap();
        assert!(done.status.success(), "{done:#?}");
        job.assay_ci("upload 'reports/*'").await;
    };

    run("").await;
    assert_eq!(ran(&customer).await.len(), 3);
    skip(&customer, &["cart (new) › pays $5", "ships"]).await;
    let script = "assay-ci skipped --project shop --format playwright";
    let skipped = job.run(script).await;
    let skipped = String::from_utf8(skipped.stdout).unwrap();
    run(skipped.trim_end()).await;

    assert_eq!(ran(&customer).await, ["cart (new) › pays $50"], "{skipped}");
}
