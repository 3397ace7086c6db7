//! Clients that write records, and the notifications that they expect.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use assay_testkit::Api;
use serde_json::{Value, json};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::watcher::notifications;
use crate::{
    junit::upload,
    world::{create_project, id},
};

/// Two test cases that an upload creates.
const CASES: &str = r#"<testsuite name="pump">
    <testcase classname="pump" name="starts" time="1"/>
    <testcase classname="pump" name="stops" time="1"/>
</testsuite>"#;

/// Source, source id, target id, action and state of a notification.
type Expected = [String; 5];

/// A client that writes records one after another. No request may fail.
pub(super) struct Load {
    pub(super) api: Api,
    project: String,
    set: String,
    environment: String,
    rounds: AtomicUsize,
}

impl Load {
    pub(super) async fn new(api: &Api) -> Self {
        let project = create_project(api).await;
        let set = api.post(&format!("{project}/testsets"), json!({"Name": "Pump"})).await;
        let set = format!("{project}/testsets/{}", id(&set.created()));
        upload(api, &set, CASES).await.created();
        let environment = json!({"Name": "Launch pad", "Password": "sesame"});
        let environment = api.post(&format!("{project}/environments"), environment).await;
        let environment = format!("{project}/environments/{}", id(&environment.created()));
        Self { api: api.clone(), project, set, environment, rounds: AtomicUsize::new(0) }
    }

    /// Number of completed rounds.
    pub(super) fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Writes this number of rounds; returns the expected notifications.
    pub(super) async fn run(&self, rounds: usize) -> Vec<Expected> {
        let mut expected = Vec::new();
        for _ in 0..rounds {
            expected.extend(self.round().await);
        }
        expected
    }

    /// Writes rounds at this interval until canceled; returns the expected notifications.
    pub(super) async fn run_until(
        &self,
        stop: &CancellationToken,
        pace: Duration,
    ) -> Vec<Expected> {
        let (mut expected, mut ticks) = (Vec::new(), interval(pace));
        while !stop.is_cancelled() {
            ticks.tick().await;
            expected.extend(self.round().await);
        }
        expected
    }

    async fn round(&self) -> Vec<Expected> {
        let Self { api, project, set, .. } = self;
        let number = self.rounds();
        let words = |words: [&str; 5]| words.map(str::to_owned);
        let mut expected = Vec::new();

        let case = json!({"Name": format!("Case {number}"), "Description": ""});
        let case = api.post(&format!("{project}/testcases"), case).await.created();
        let owner = project.rsplit('/').next().unwrap();
        expected.push(words(["TestCase", id(&case), owner, "Created", "None"]));

        let notification = json!({
            "Source": "Deployment", "SourceId": number.to_string(), "Target": "Cluster",
            "TargetId": "1", "Action": "Done", "State": "Green",
        });
        api.post("/api/notifications", notification).await.created();
        expected.push(words(["Deployment", &number.to_string(), "1", "Done", "Green"]));

        // Reading a secret adds an audit entry.
        api.get(&self.environment).await.ok();

        let set_id = set.rsplit('/').next().unwrap();
        let started = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
        let started = started.created();
        expected.push(words(["TestSet", set_id, id(&started), "Requested", "Running"]));
        let at = format!("{project}/executions/{}", id(&started));
        let results = json!([
            {"Identifier": "pump.starts", "Result": "Passed", "DurationInSec": 1},
            {"Identifier": "pump.stops", "Result": "Failed", "DurationInSec": number},
        ]);
        api.post(&format!("{at}/results"), results).await.ok();
        let about = |action, state| words(["Execution", id(&started), set_id, action, state]);
        expected.push(about("Failing", "Running"));
        for report in started["TestReports"].as_array().unwrap() {
            let case = report["TestCaseId"].as_str().unwrap();
            expected.push(words(["TestCase", case, id(report), "Finished", "InReview"]));
        }
        api.post(&format!("{at}/complete"), json!({})).await.ok();
        expected.push(words(["TestSet", set_id, id(&started), "Completed", "Completed"]));
        expected.push(about("Judged", ""));
        self.rounds.fetch_add(1, Ordering::Relaxed);
        expected
    }

    /// Asserts that the customer has exactly these notifications after the first `before`.
    pub(super) async fn assert_notified(&self, before: usize, expected: &[Expected]) {
        let there = notifications(&self.api).await;
        let mut counts = BTreeMap::<Expected, i32>::new();
        for one in there.iter().take(there.len() - before) {
            let field = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            let mut words = ["Source", "SourceId", "TargetId", "Action", "State"].map(field);
            // Only the first failures of a test are new, so that verdicts differ.
            if words[3] == "Judged" {
                words[4].clear();
            }
            *counts.entry(words).or_default() += 1;
        }
        for one in expected {
            *counts.entry(one.clone()).or_default() -= 1;
        }
        counts.retain(|_, count| *count != 0);
        assert!(counts.is_empty(), "missing (negative) or duplicate notifications: {counts:#?}");
    }

    /// The test set with its latest execution.
    pub(super) async fn test_set(&self) -> Value {
        self.api.get(&self.set).await.ok()
    }
}
