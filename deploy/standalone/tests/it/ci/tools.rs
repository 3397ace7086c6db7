//! Reports that test tools have just written.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use super::{Job, executions};
use crate::{
    customer::Customer,
    documents::{at, node, tool},
    reports::report_path,
    world::id,
};

const PYTEST: &str = "
import pytest

@pytest.mark.parametrize('method', ['card', 'invoice'])
def test_pay(method): pass

def test_ship(): assert False, 'lost'

@pytest.mark.skip(reason='no printer')
def test_print(): pass
";

const NODE: &str = "
import { test, describe } from 'node:test';
import assert from 'node:assert';
describe('cart', () => {
  test('adds up', () => {});
  test('ships', () => assert.equal(1, 2));
  test('prints', { skip: true }, () => {});
});
";

const PLAYWRIGHT: &str = "
import { writeFileSync } from 'node:fs';
import { test, expect } from '@playwright/test';
test('pays', async () => {});
test('ships', async ({}, testInfo) => {
  const path = testInfo.outputPath('page.png');
  writeFileSync(path, 'a picture');
  await testInfo.attach('page', { path, contentType: 'image/png' });
  expect(testInfo.retry).toBe(1);
});
test('refunds', async () => { expect(1).toBe(2); });
test.skip('prints', async () => {});
";

/// Uploads the only report of a job, and checks the numbers of test cases: all, passed, failed and
/// skipped.
async fn check(customer: &Customer, job: &Job, counts: [i64; 4]) {
    let (code, output) = job.assay_ci("upload 'reports/*'").await;
    assert_eq!(code, 0, "{output}");
    let execution = executions(&customer.api).await.remove(0);
    let statistic = &execution["Statistic"];
    let counted = ["Total", "Passed", "Failed", "Canceled"]
        .map(|name| statistic[format!("TestCases{name}")].as_i64().unwrap());
    assert_eq!(counted, counts, "{execution:#}");
    assert_eq!(execution["Status"], json!("Completed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_an_installed_pytest_are_uploaded() {
    let customer = Customer::new().await;
    let job = Job::new(&customer).await;
    fs::write(job.folder.join("test_shop.py"), PYTEST).unwrap();
    // Not canonical: the link makes it the Python of the environment.
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/python/bin/python");

    let tests = format!(
        "{} -m pytest -q -p no:cacheprovider --junitxml=reports/junit.xml || [ $? = 1 ]",
        python.display()
    );
    let ran = job.run(&tests).await;

    assert!(ran.status.success(), "{ran:#?}");
    check(&customer, &job, [4, 2, 1, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_an_installed_node_are_uploaded() {
    let customer = Customer::new().await;
    for reporter in ["junit", "tap"] {
        let job = Job::new(&customer).await;
        fs::write(job.folder.join("shop.test.mjs"), NODE).unwrap();
        let report = format!("reports/report.{reporter}");

        let mut tests = node(&job.folder);
        tests.args(["--test", &format!("--test-reporter={reporter}")]);
        tests.args([&format!("--test-reporter-destination={report}"), "shop.test.mjs"]);
        let ran = tests.output().await.unwrap();

        assert_eq!(ran.status.code(), Some(1), "{ran:#?}");
        check(&customer, &job, [3, 1, 1, 1]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_an_installed_playwright_are_uploaded_with_attachments() {
    let customer = Customer::new().await;
    for (reporter, variable) in
        [("junit", "PLAYWRIGHT_JUNIT_OUTPUT_FILE"), ("json", "PLAYWRIGHT_JSON_OUTPUT_FILE")]
    {
        let job = Job::new(&customer).await;
        fs::write(job.folder.join("shop.spec.mjs"), PLAYWRIGHT).unwrap();
        symlink(at("target/tools/node/node_modules"), job.folder.join("node_modules")).unwrap();

        let mut tests = tool("@playwright/test/cli.js", &job.folder);
        tests.args(["test", "--retries=1", &format!("--reporter={reporter}")]);
        tests.env(variable, job.folder.join(format!("reports/report.{reporter}")));
        let ran = tests.output().await.unwrap();

        assert_eq!(ran.status.code(), Some(1), "{ran:#?}");
        check(&customer, &job, [4, 2, 1, 1]).await;
        let execution = executions(&customer.api).await.remove(0);
        let ships = |report: &&Value| report["TestCaseName"].as_str().unwrap().contains("ships");
        let report = execution["TestReports"].as_array().unwrap().iter().find(ships).unwrap();
        let project = format!("/api/projects/{}", execution["ProjectId"].as_str().unwrap());
        let report = report_path(&project, report);
        let instances = customer.api.get(&format!("{report}/instances")).await.ok();
        let instance = format!("{report}/instances/{}", id(&instances[0]));
        let instance = customer.api.get(&instance).await.ok();
        assert!(instance.to_string().contains("-page-"), "{reporter}: {instance:#}");
    }
}
