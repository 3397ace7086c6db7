//! Metrics of a project, scraped by Prometheus with the configuration in `docs/verdicts.md`.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use assay_testkit::{Api, eventually, test_dir};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use uuid::Uuid;

use crate::{
    customer::Customer,
    junit::upload,
    world::{create_project, id},
};

const GUIDE: &str = include_str!("../../../../docs/verdicts.md");

/// The name of the test set, which a page has to escape.
const NAME: &str = "night\\ly \"full\"\nrun";

/// A Prometheus server, which is stopped with the test.
struct Prometheus {
    api: Api,
    folder: PathBuf,
    _process: Child,
}

impl Prometheus {
    /// Starts a server that scrapes a project of this customer.
    async fn start(customer: &Customer, project: &str) -> Result<Self> {
        let folder = test_dir()?.join(Uuid::now_v7().to_string());
        fs::create_dir_all(&folder)?;
        let token = json!({"Name": "Prometheus", "UsagePermission": "Read"});
        let token = customer.api.post("/api/users/current/tokens", token).await.created();
        fs::write(folder.join("token"), token["Secret"].as_str().context("a secret")?)?;
        let config = GUIDE.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
        let mut config = config.context("docs/verdicts.md has no configuration")?.to_owned();
        let token = folder.join("token").display().to_string();
        let host = customer.url().replace("http://", "");
        for (documented, actual) in [
            ("scheme: https", "scheme: http"),
            ("scrape_interval: 1m", "scrape_interval: 1s"),
            ("/etc/prometheus/assay-token", &token),
            ("assay.example.com", &host),
            ("/api/projects/019cade2-11c0-7b21-8d4f-0a96c3e15f72", project),
        ] {
            assert!(config.contains(documented), "the configuration has no {documented}");
            config = config.replace(documented, actual);
        }
        fs::write(folder.join("prometheus.yml"), config)?;
        let log = folder.join("log");
        let process = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(&folder)
            .stderr(fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .context("run deploy/local/install test")?;
        let url = eventually("the address of Prometheus", || async {
            let log = fs::read_to_string(&log).ok()?;
            // The line has the port that the system chose.
            let line = log.lines().find(|line| line.contains("Listening on"))?;
            Some(format!("http://{}", line.split("address=").nth(1)?.trim()))
        })
        .await;
        Ok(Self { api: Api::new(url), folder, _process: process })
    }

    /// Returns the labels and values of the series that a query selects.
    async fn query(&self, query: &str) -> Vec<Value> {
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let answer = self.api.get(&format!("/api/v1/query?query={query}")).await.ok();
        answer["data"]["result"].as_array().expect("a vector").clone()
    }

    /// Waits until a query selects one series with this value. Returns its labels.
    async fn wait_for(&self, query: &str, value: &str) -> Value {
        eventually(query, || async {
            let found = self.query(query).await;
            let is_it = found.len() == 1 && found[0]["value"][1] == value;
            if !is_it {
                println!("{query}: {found:?}");
            }
            is_it.then(|| found[0]["metric"].clone())
        })
        .await
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns a report of two tests, of which this number failed.
fn report(failed: usize) -> String {
    let failure = |case: usize| if case < failed { "<failure message='lost'/>" } else { "" };
    let case = |case| format!("<testcase name='t{case}' time='2'>{}</testcase>", failure(case));
    format!("<testsuite name='shop'>{}{}</testsuite>", case(0), case(1))
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_the_outcomes_of_test_sets() -> Result<()> {
    let customer = Customer::new().await;
    let project = create_project(&customer.api).await;
    let sets = format!("{project}/testsets");
    let set = customer.api.post(&sets, json!({"Name": NAME})).await.created();
    let set = format!("{sets}/{}", id(&set));
    upload(&customer.api, &set, report(0)).await.expect(201);
    let metrics = format!("{project}/metrics");
    let problem = customer.api.get(&metrics).await.expect(403).body.clone();
    let problem: Value = serde_json::from_slice(&problem)?;
    assert!(problem.to_string().contains("ServesMetrics of the project is false"), "{problem}");
    customer.api.put(&project, json!({"ServesMetrics": true})).await.ok();
    customer.anonymous().get(&metrics).await.expect(401);

    let prometheus = Prometheus::start(&customer, &project).await?;

    let passed = prometheus.wait_for(r#"assay_test_cases{result="Passed"}"#, "2").await;
    assert_eq!(passed["test_set"], NAME);
    assert_eq!(passed["project"], "Rocket");
    assert_eq!(passed["job"], "shop-tests");
    prometheus.wait_for("assay_execution_passed", "1").await;
    prometheus.wait_for("assay_execution_duration_seconds", "4").await;
    upload(&customer.api, &set, report(1)).await.expect(201);
    prometheus.wait_for(r#"assay_test_cases{result="Failed"}"#, "1").await;
    prometheus.wait_for(r#"assay_test_case_changes{change="New"}"#, "1").await;
    prometheus.wait_for("assay_execution_passed", "0").await;
    prometheus.wait_for("assay_outcomes_omitted", "0").await;
    let age = prometheus.query("time() - assay_execution_end_timestamp_seconds < bool 3600").await;
    assert_eq!(age[0]["value"][1], "1", "{age:?}");
    Ok(())
}
