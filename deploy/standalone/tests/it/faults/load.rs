//! What clients of a customer write, and what others are to hear of it.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use assay_testkit::Api;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::watcher::notifications;
use crate::{
    junit::upload,
    world::{id, project},
};

/// Two test cases, which an upload makes.
const CASES: &str = r#"<testsuite name="pump">
    <testcase classname="pump" name="starts" time="1"/>
    <testcase classname="pump" name="stops" time="1"/>
</testsuite>"#;

/// Source, its id, target's id, action and state of a notification.
type Said = [String; 5];

/// Clients of one customer, who write one thing after the other. No call of theirs may fail.
pub(super) struct Load {
    pub(super) api: Api,
    project: String,
    set: String,
    environment: String,
    rounds: AtomicUsize,
}

impl Load {
    pub(super) async fn new(api: &Api) -> Self {
        let project = project(api).await;
        let set = api.post(&format!("{project}/testsets"), json!({"Name": "Pump"})).await;
        let set = format!("{project}/testsets/{}", id(&set.created()));
        upload(api, &set, CASES).await.created();
        let environment = json!({"Name": "Launch pad", "Password": "sesame"});
        let environment = api.post(&format!("{project}/environments"), environment).await;
        let environment = format!("{project}/environments/{}", id(&environment.created()));
        Self { api: api.clone(), project, set, environment, rounds: AtomicUsize::new(0) }
    }

    /// How often all was written.
    pub(super) fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Writes so many rounds; says what others are to hear.
    pub(super) async fn run(&self, rounds: usize) -> Vec<Said> {
        let mut said = Vec::new();
        for _ in 0..rounds {
            said.extend(self.round().await);
        }
        said
    }

    /// Writes until it is enough.
    pub(super) async fn run_until(&self, enough: &CancellationToken) -> Vec<Said> {
        let mut said = Vec::new();
        while !enough.is_cancelled() {
            said.extend(self.round().await);
        }
        said
    }

    async fn round(&self) -> Vec<Said> {
        let Self { api, project, set, .. } = self;
        let number = self.rounds();
        let words = |words: [&str; 5]| words.map(str::to_owned);
        let mut said = Vec::new();

        let case = json!({"Name": format!("Case {number}"), "Description": ""});
        let case = api.post(&format!("{project}/testcases"), case).await.created();
        let owner = project.rsplit('/').next().unwrap();
        said.push(words(["TestCase", id(&case), owner, "Created", "None"]));

        let told = json!({
            "Source": "Deployment", "SourceId": number.to_string(), "Target": "Cluster",
            "TargetId": "1", "Action": "Done", "State": "Green",
        });
        api.post("/api/notifications", told).await.created();
        said.push(words(["Deployment", &number.to_string(), "1", "Done", "Green"]));

        // Secrets in clear, which the audit is told of.
        api.get(&self.environment).await.ok();

        let set_id = set.rsplit('/').next().unwrap();
        let started = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
        let started = started.created();
        said.push(words(["TestSet", set_id, id(&started), "Requested", "Running"]));
        let at = format!("{project}/executions/{}", id(&started));
        let results = json!([
            {"Identifier": "pump.starts", "Result": "Passed", "DurationInSec": 1},
            {"Identifier": "pump.stops", "Result": "Failed", "DurationInSec": number},
        ]);
        api.post(&format!("{at}/results"), results).await.ok();
        for report in started["TestReports"].as_array().unwrap() {
            let case = report["TestCaseId"].as_str().unwrap();
            said.push(words(["TestCase", case, id(report), "Finished", "InReview"]));
        }
        api.post(&format!("{at}/complete"), json!({})).await.ok();
        said.push(words(["TestSet", set_id, id(&started), "Completed", "Completed"]));
        self.rounds.fetch_add(1, Ordering::Relaxed);
        said
    }

    /// Fails unless the customer has exactly these notifications, after so many others.
    pub(super) async fn is_told(&self, before: usize, said: &[Said]) {
        let there = notifications(&self.api).await;
        let mut counts = BTreeMap::<Said, i32>::new();
        for one in there.iter().take(there.len() - before) {
            let field = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let words = ["Source", "SourceId", "TargetId", "Action", "State"].map(field);
            *counts.entry(words).or_default() += 1;
        }
        for one in said {
            *counts.entry(one.clone()).or_default() -= 1;
        }
        counts.retain(|_, count| *count != 0);
        assert!(counts.is_empty(), "missing (below 0) or there twice: {counts:#?}");
    }

    /// What the test set shows of its latest execution.
    pub(super) async fn shown(&self) -> Value {
        self.api.get(&self.set).await.ok()
    }
}
