//! Entity tags change with the body, even if the record itself is unchanged.

use assay_testkit::{Answer, Api, eventually};
use reqwest::{Method, header::HeaderValue};
use serde_json::{Value, json};

use crate::{customer::unique, installation::Installation, tenant::Tenant, world::id};

/// A body that a client has read, with its tag.
struct Seen {
    path: String,
    tag: HeaderValue,
    body: Value,
}

impl Seen {
    /// Reads until pending events no longer change the body.
    async fn of(api: &Api, path: &str) -> Self {
        eventually("an unchanged body", async || {
            let answer = api.get(path).await;
            let tag = answer.headers["etag"].clone();
            let seen = Self { path: path.to_owned(), tag, body: answer.ok() };
            let read_again = seen.read_again(api).await;
            (read_again.status == 304).then_some(seen)
        })
        .await
    }

    async fn read_again(&self, api: &Api) -> Answer {
        let request = api.request(Method::GET, &self.path).header("If-None-Match", &self.tag);
        Answer::of(request).await
    }

    /// Waits until the answer has another body.
    async fn wait_for_change(self, api: &Api) {
        let what = format!("a new body of {}", self.path);
        let body = eventually(&what, async || {
            let read_again = self.read_again(api).await;
            (read_again.status == 200).then(|| read_again.json())
        })
        .await;
        assert_ne!(body, self.body);
    }
}

async fn all_of(api: &Api, paths: &[&str]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for path in paths {
        seen.push(Seen::of(api, path).await);
    }
    seen
}

async fn wait_for_changes(seen: Vec<Seen>, api: &Api) {
    for seen in seen {
        seen.wait_for_change(api).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_any_part_of_a_body_changes_its_tag() {
    let assay = Installation::shared().await;
    let name = unique("tags");
    let tenant = Tenant::new(&assay, &name).await;
    let api = &tenant.api;
    let project = format!("/api/projects/{}", tenant.id("projectId"));
    let at = |noun: &str, name: &str| format!("{project}/{noun}/{}", tenant.id(name));
    let (case, set) = (at("testcases", "testCaseId"), at("testsets", "testSetId"));
    let plan = format!("{case}/testplans/{}", tenant.id("testPlanId"));
    let subject = at("subjects", "subjectId");

    let seen = Seen::of(api, &case).await;
    api.post(&format!("{case}/testplans"), json!({"Instances": 2})).await.created();
    seen.wait_for_change(api).await;

    let seen = Seen::of(api, &set).await;
    api.put(&case, json!({"Name": "Sign in"})).await.ok();
    seen.wait_for_change(api).await;

    let seen = all_of(api, &[&project, &case, &plan, &set, &subject]).await;
    let started = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
    let execution = format!("{project}/executions/{}", id(&started.created()));
    let failed = json!([{"TestCaseId": tenant.id("testCaseId"), "Result": "Failed"}]);
    api.post(&format!("{execution}/results"), failed).await.ok();
    let ended = api.post(&format!("{execution}/complete"), json!({})).await.ok();
    wait_for_changes(seen, api).await;

    let seen = all_of(api, &[&execution, &case]).await;
    let report = format!("{plan}/testreports/{}", id(&ended["TestReports"][0]));
    api.put(&report, json!({"Status": "Rejected"})).await.ok();
    wait_for_changes(seen, api).await;

    let seen = Seen::of(api, "/api/management/customers/current").await;
    let group = json!({"Name": "Guests", "UsagePermission": "Login, Read"});
    api.post("/api/management/customers/current/groups", group).await.created();
    seen.wait_for_change(api).await;

    let seen = Seen::of(api, "/api/users/current").await;
    assay.log_in(&format!("{name}@example.org")).await;
    seen.wait_for_change(api).await;
}
