//! Installed clients of TestRail, which report the files that test tools have just written.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use assay_testkit::{Authority, test_dir};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};
use uuid::Uuid;

use super::{
    add_cases,
    client::{Client, counts},
};
use crate::{
    customer::Customer,
    documents::{at, node, tool},
};

const PYTEST: &str = "
import pytest

@pytest.mark.parametrize('method', ['card', 'invoice'])
def test_pay(method): pass

def test_ship(record_property):
    record_property('testrail_attachment', 'shot.txt')
    record_property('testrail_result_step', 'passed:Open the page')
    record_property('testrail_result_step', 'failed:Ship')
    assert False, 'lost'

@pytest.mark.skip(reason='no printer')
def test_print(): pass
";

/// The numbers that pytest counts: all, passed, failed and skipped.
const COUNTED: [u64; 4] = [4, 2, 1, 1];

const PLAYWRIGHT: &str = "
import { test, expect } from '@playwright/test';
test('NUMBER pays', async () => {});
test('C101 ships', async () => { expect(1).toBe(2); });
test('refunds', async () => {});
";

/// Forwards requests to the gateway, and prints its own port.
const TLS_PROXY: &str = "
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
const [key, cert] = ['tls.key', 'tls.crt'].map(file => readFileSync(file));
const server = https.createServer({ key, cert }, (request, response) => {
  const { method, headers, url } = request;
  const forwarded = http.request(process.env.GATEWAY + url, { method, headers }, answer => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  request.pipe(forwarded);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
";

/// A project, and a folder with reports.
struct Job {
    customer: Customer,
    client: Client,
    folder: PathBuf,
}

impl Job {
    async fn new() -> Self {
        let customer = Customer::new().await;
        let client = Client::new(&customer, "Shop").await;
        let folder = test_dir().unwrap().join(Uuid::now_v7().to_string());
        fs::create_dir_all(folder.join(".trcli")).unwrap();
        // It looks for newer versions once a day.
        let cache = json!({"last_check": "2999-01-01T00:00:00", "latest_version": "1.15.3"});
        fs::write(folder.join(".trcli/version_cache.json"), cache.to_string()).unwrap();
        Self { customer, client, folder }
    }

    /// Runs the tests with pytest, which writes `junit.xml`.
    async fn pytest(&self) {
        fs::write(self.folder.join("test_shop.py"), PYTEST).unwrap();
        fs::write(self.folder.join("shot.txt"), "a picture").unwrap();
        let python = tools().join("python/bin/python");
        let mut pytest = Command::new(python);
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=junit.xml"]);
        pytest.args(["-o", "junit_family=xunit1"]);
        let ran = pytest.current_dir(&self.folder).output().await.unwrap();
        assert_eq!(ran.status.code(), Some(1), "{ran:#?}");
    }

    /// Runs trcli with these arguments.
    async fn trcli(&self, arguments: &[&str]) -> String {
        let mut trcli = Command::new(tools().join("agents/trcli/bin/trcli"));
        trcli.args(["-y", "--host", &self.customer.url(), "--project", "Shop"]);
        trcli.args(["--username", "ada@example.org", "--key", &self.client.token]);
        trcli.args(arguments).current_dir(&self.folder).env("HOME", &self.folder);
        let ran = trcli.kill_on_drop(true).output().await.unwrap();
        let text = text_of(&ran);
        assert!(ran.status.success(), "{text}");
        text
    }

    /// Returns the latest execution of the project, with its test reports.
    async fn latest(&self) -> Value {
        let latest = self.client.executions().await.remove(0);
        self.client.execution(&latest["Id"]).await
    }
}

fn tools() -> PathBuf {
    // Not canonical: the link makes Python that of its environment.
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools")
}

fn text_of(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_trcli_reports_junit_twice_without_further_test_cases() {
    let job = Job::new().await;
    job.pytest().await;
    let report = ["parse_junit", "--title", "Nightly", "--file", "junit.xml"];
    let output = job.trcli(&[&report[..], &["--close-run"]].concat()).await;
    assert!(output.contains("4 test results"), "{output}");
    let first = job.latest().await;
    assert_eq!((counts(&first), &first["Status"]), (COUNTED, &json!("Completed")));
    let cases = job.client.identifiers().await;
    assert_eq!(cases.len(), 4, "{cases:?}");

    job.trcli(&report).await;
    let second = job.latest().await;
    assert_ne!(second["Id"], first["Id"]);
    assert_eq!((counts(&second), &second["Status"]), (COUNTED, &json!("Running")));
    assert_eq!(second["TestSetId"], first["TestSetId"]);
    assert_eq!(job.client.identifiers().await, cases);

    let failed = job.client.instance(&second, "test_ship").await;
    assert_eq!(failed["Result"], "Failed");
    let steps = failed["Steps"].as_array().unwrap();
    let inputs: Vec<_> = steps.iter().map(|step| step["TestInput"].as_str().unwrap()).collect();
    assert_eq!(&inputs[..2], ["Open the page", "Ship"], "{failed:#}");
    assert!(steps[2]["ActualResult"].as_str().unwrap().contains("lost"), "{failed:#}");
    let link = steps[2]["Screenshots"][0].as_str().unwrap();
    let path = format!("/api/{}", link.split_once("/api/").unwrap().1);
    assert_eq!(job.customer.anonymous().get(&path).await.body, b"a picture");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_trcli_identifies_test_cases_like_uploads_of_the_same_report() {
    let job = Job::new().await;
    job.pytest().await;
    job.trcli(&["parse_junit", "--title", "Nightly", "--file", "junit.xml"]).await;
    let cases = job.client.identifiers().await;
    let set = job.latest().await["TestSetId"].as_str().unwrap().to_owned();
    let path = format!("/api/projects/{}/testsets/{set}/results", job.client.project_id);
    let report = fs::read(job.folder.join("junit.xml")).unwrap();
    let request = job.client.assay.request(reqwest::Method::POST, &path);
    let request = request.header("Content-Type", "application/xml").body(report);
    let uploaded = assay_testkit::Answer::of(request).await.created();
    assert_eq!(counts(&uploaded), COUNTED);
    assert_eq!(job.client.identifiers().await, cases);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_trcli_adds_a_run_and_reports_to_it_later() {
    let job = Job::new().await;
    job.pytest().await;
    let add = ["add_run", "--title", "Made first", "--run-include-all", "-f", "run.yml"];
    job.trcli(&add).await;
    let run = job.latest().await;
    assert_eq!((&run["Status"], &run["TestSetName"]), (&json!("Running"), &json!("Made first")));

    job.trcli(&["-c", "run.yml", "parse_junit", "--file", "junit.xml"]).await;
    let reported = job.latest().await;
    assert_eq!((&reported["Id"], counts(&reported)), (&run["Id"], COUNTED));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_trcli_reports_robot_framework() {
    let job = Job::new().await;
    let output = at("services/kit/formats/tests/files/robot/output.xml");
    let text = fs::read_to_string(&output).unwrap();
    let file = output.to_str().unwrap();
    let robot = ["parse_robot", "--title", "Robot", "--file", file, "--close-run"];
    job.trcli(&robot).await;
    job.trcli(&robot).await;

    let execution = job.latest().await;
    let tests = text.matches("<test ").count() as u64;
    assert_eq!(counts(&execution)[0], tests, "{execution:#}");
    assert_eq!(job.client.identifiers().await.len() as u64, tests);
    assert_eq!(job.client.executions().await.len(), 2);
}

/// Starts a proxy with a certificate of `authority`, and returns its port.
async fn tls_proxy(job: &Job, authority: &Authority) -> (Child, u16) {
    authority.issue("127.0.0.1", &job.folder);
    fs::write(job.folder.join("proxy.mjs"), TLS_PROXY).unwrap();
    let mut proxy = node(&job.folder);
    proxy.arg("proxy.mjs").env("GATEWAY", job.customer.url()).stdout(Stdio::piped());
    let mut proxy = proxy.spawn().unwrap();
    let mut lines = BufReader::new(proxy.stdout.take().unwrap()).lines();
    let port = lines.next_line().await.unwrap().unwrap().parse().unwrap();
    (proxy, port)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_reporter_of_playwright_reports_over_https() {
    let job = Job::new().await;
    let number = add_cases(&job.client, &["cart.pays", "C101"]).await[0];
    let (_proxy, port) = tls_proxy(&job, &Authority::default()).await;
    let tests = PLAYWRIGHT.replace("NUMBER", &format!("C{number}"));
    fs::write(job.folder.join("shop.spec.mjs"), tests).unwrap();
    symlink(at("target/tools/node/node_modules"), job.folder.join("node_modules")).unwrap();

    let mut playwright = tool("@playwright/test/cli.js", &job.folder);
    playwright.args(["test", "--reporter=playwright-testrail-reporter"]);
    playwright.env("NODE_EXTRA_CA_CERTS", job.folder.join("ca.crt"));
    for (variable, value) in [
        ("TESTRAIL_HOST", format!("https://127.0.0.1:{port}")),
        ("TESTRAIL_USERNAME", "ada@example.org".to_owned()),
        ("TESTRAIL_API_KEY", job.client.token.clone()),
        ("TESTRAIL_PROJECT_ID", job.client.project.to_string()),
        ("TESTRAIL_SUITE_ID", job.client.project.to_string()),
        ("TESTRAIL_RUN_NAME", "Smoke".to_owned()),
    ] {
        playwright.env(variable, value);
    }
    let ran = playwright.output().await.unwrap();
    assert_eq!(ran.status.code(), Some(1), "{}", text_of(&ran));

    let execution = job.latest().await;
    assert_eq!(counts(&execution), [2, 1, 1, 0], "{}", text_of(&ran));
    assert_eq!(execution["TestSetName"], "Smoke - Created On");
    let failed = job.client.instance(&execution, "C101").await;
    assert!(failed["Steps"].to_string().contains("Test Status: failed"), "{failed:#}");
    assert_eq!(job.client.identifiers().await, ["C101", "cart.pays"]);
}
