//! Reports that test tools have just written.

use std::{fs, path::Path};

use serde_json::json;

use super::{Job, executions};
use crate::{customer::Customer, documents::node};

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
