//! A customer with one record of each kind.

use std::collections::BTreeMap;

use assay_testkit::{Answer, Api, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    installation::Installation,
    people::Member,
    world::{create_project, id, in_days},
};

/// All permissions of a customer's users except `AccessSecrets`, whose use is audited.
const ALL: &str = "Login, Read, Write, Execute, Accept, Reject, UserSettings, UserManagement, \
                   Automation, ExecutionTimes, Invoicing";

/// How many of the tenant's executions have ended.
const ENDED_EXECUTIONS: u64 = 3;

/// A customer and a user with all its permissions.
pub(crate) struct Tenant {
    pub(crate) api: Api,
    /// Ids of records by the names of path parameters.
    pub(crate) ids: BTreeMap<&'static str, String>,
}

impl Tenant {
    pub(crate) async fn new(assay: &Installation, name: &str) -> Self {
        let customer = assay.create_customer(name).await;
        let admin = assay.act_for(&customer).await;
        let member = assay.create_member(&admin, &format!("{name}@example.org"), ALL).await;
        let Member { api, id: user, group, .. } = member;
        let mut this = Self { api, ids: BTreeMap::new() };
        this.ids.extend([
            ("customerId", id(&customer).to_owned()),
            ("membershipId", user.clone()),
            ("requestUserId", user.clone()),
            ("userId", user),
            ("userGroupId", group),
            ("newType", "Performance".to_owned()),
            ("name", "log.txt".to_owned()),
        ]);
        this.fill_catalog().await;
        this.fail().await;
        this.break_down().await;
        this.execute().await;
        this.fill_rest().await;
        this
    }

    pub(crate) fn id(&self, name: &str) -> &str {
        self.ids.get(name).unwrap_or_else(|| panic!("tenant.rs creates no record for {{{name}}}"))
    }

    fn remember(&mut self, name: &'static str, record: &Value) {
        self.ids.insert(name, id(record).to_owned());
    }

    async fn create(&mut self, name: &'static str, path: &str, body: Value) {
        let record = self.api.post(path, body).await.created();
        self.remember(name, &record);
    }

    fn project(&self) -> String {
        format!("/api/projects/{}", self.id("projectId"))
    }

    fn set(&self) -> String {
        format!("{}/testsets/{}", self.project(), self.id("testSetId"))
    }

    async fn fill_catalog(&mut self) {
        let at = create_project(&self.api).await;
        self.ids.insert("projectId", at.rsplit('/').next().unwrap().to_owned());
        self.api.put(&at, json!({"ServesMetrics": true})).await.ok();
        let subject = json!({
            "Name": "Rocket OS", "Identifier": "1.2.3", "SubjectType": "Webpage",
            "Uri": "https://rocket.example.org/",
        });
        self.create("baseSubjectId", &format!("{at}/subjects"), subject.clone()).await;
        self.create("subjectId", &format!("{at}/subjects"), subject).await;
        let environment = json!({"Name": "Pad 1", "TargetGroup": "pads", "Password": "sesame"});
        self.create("environmentId", &format!("{at}/environments"), environment).await;
        let case = json!({"Name": "Log in", "Description": "", "Identifier": "LOGIN-1"});
        self.create("testCaseId", &format!("{at}/testcases"), case).await;
        let plans = format!("{at}/testcases/{}/testplans", self.id("testCaseId"));
        self.create("testPlanId", &plans, json!({"Instances": 1})).await;
        let ready = json!({"Status": "ReadyForExecution"});
        self.api.put(&format!("{plans}/{}", self.id("testPlanId")), ready).await.ok();
        let file = self.api.request(Method::POST, &format!("{at}/files"));
        let file = Answer::of(file.header("X-File-Name", "rocket.img").body("an image")).await;
        self.remember("fileId", &file.created());
        let upload = self.api.request(Method::POST, &format!("{at}/uploads"));
        let upload = upload.header("Tus-Resumable", "1.0.0").header("Upload-Length", 8);
        let upload = upload.header("Upload-Metadata", "filename cm9ja2V0LmltZw==");
        self.remember("uploadId", &Answer::of(upload).await.created());
        self.create("testSetId", &format!("{at}/testsets"), json!({"Name": "Smoke"})).await;
        let chosen = json!({
            "SelectedSubjectId": self.id("subjectId"),
            "SelectedEnvironmentId": self.id("environmentId"),
            "TestCases": [{"Id": self.id("testCaseId")}],
        });
        self.api.put(&self.set(), chosen).await.ok();
    }

    /// Reports a failure and makes it known.
    async fn fail(&mut self) {
        let project = self.project();
        let open = json!({"Project": self.id("projectId"), "TestSet": self.id("testSetId")});
        let open = self.api.post("/api/executions", open).await.created();
        let at = format!("{project}/executions/{}", id(&open));
        let failed = json!([{
            "Identifier": "LOGIN-1", "Result": "Failed",
            "Steps": [{"StepNr": 1, "Result": "Failed", "ActualResult": "no answer"}],
        }]);
        self.api.post(&format!("{at}/results"), failed).await.ok();
        self.api.post(&format!("{at}/complete"), json!({})).await.expect(200);
        let causes = self.api.get(&format!("{at}/failures")).await.ok();
        let fingerprint = causes[0]["Fingerprint"].as_str().unwrap().to_owned();
        let known = json!({
            "Fingerprint": fingerprint, "EveryCase": true, "MutedUntil": in_days(30),
        });
        self.create("knownFailureId", &format!("{project}/knownfailures"), known).await;
        self.ids.insert("fingerprint", fingerprint);
        let noise = json!({"Pattern": "for customer [A-Z]+"});
        self.create("causeRuleId", &format!("{project}/causerules"), noise).await;
        let monitor = json!({
            "Name": "Flaky", "Measure": "Recoveries", "Threshold": 3, "Action": "Mute",
        });
        self.create("monitorId", &format!("{project}/monitors"), monitor).await;
        let pool = json!({"Name": "accounts", "Values": [{"Contents": [{"Content": "ada"}]}]});
        self.create("poolId", &format!("{project}/pools"), pool).await;
    }

    /// Has an outage in another test set, and waits for its incident.
    async fn break_down(&mut self) {
        let open = json!({"Project": self.id("projectId"), "TestSet": "Outage"});
        let open = self.api.post("/api/executions", open).await.created();
        let at = format!("{}/executions/{}", self.project(), id(&open));
        let failed = |nr| json!({"Identifier": format!("outage-{nr}"), "Result": "Failed"});
        let failed: Value = (0..10).map(failed).collect();
        self.api.post(&format!("{at}/results"), failed).await.ok();
        self.api.post(&format!("{at}/complete"), json!({})).await.expect(200);
        let incidents = format!("{}/incidents", self.project());
        let incident = eventually("the incident", || async {
            let incidents = self.api.get(&incidents).await.ok();
            Some(incidents[0].clone()).filter(Value::is_object)
        });
        let incident = incident.await;
        self.remember("incidentId", &incident);
    }

    /// Creates three executions: a completed one with a report, a running external one, and one that an
    /// engine has leased.
    async fn execute(&mut self) {
        let executions = format!("{}/executions", self.set());
        let done = self.api.post(&executions, json!({"Mode": "External"})).await.created();
        self.remember("testReportId", &done["TestReports"][0]);
        self.remember("completedExecutionId", &done);
        let at = format!("{}/executions/{}", self.project(), id(&done));
        let log = format!("{at}/results/artifacts/log.txt");
        Answer::of(self.api.request(Method::PUT, &log).body("a log")).await.ok();
        let result = json!([{
            "TestCaseId": self.id("testCaseId"), "Result": "Passed", "DurationInSec": 1,
            "ExecutionLogUri": "log.txt",
        }]);
        self.api.post(&format!("{at}/results"), result).await.ok();
        self.api.post(&format!("{at}/complete"), json!({})).await.expect(200);
        let review = json!({"Reports": [self.id("testReportId")], "Status": "Accepted"});
        let review = self.api.put(&format!("{at}/reviews"), review).await.ok();
        self.ids.insert("reviewId", review["ReviewId"].as_str().unwrap().to_owned());
        let instances = format!(
            "{}/testcases/{}/testplans/{}/testreports/{}/instances",
            self.project(),
            self.id("testCaseId"),
            self.id("testPlanId"),
            self.id("testReportId"),
        );
        let instance = self.api.get(&instances).await.ok()[0].clone();
        let whole = self.api.get(&format!("{instances}/{}", id(&instance))).await.ok();
        let link = whole["ExecutionLogUri"].as_str().unwrap();
        let artifact = link.split("/artifacts/").nth(1).and_then(|rest| rest.split('/').next());
        self.ids.insert("artifactId", artifact.unwrap().to_owned());
        self.remember("instanceId", &instance);
        let share = self.api.post(&format!("{at}/shares"), json!({})).await.created();
        self.remember("shareLinkId", &share);
        self.ids.insert("token", share["Token"].as_str().unwrap().to_owned());

        // Results can be reported for the external execution; the other one has a lease.
        let open = self.api.post(&executions, json!({"Mode": "External"})).await.created();
        self.remember("executionId", &open);
        let latest = self.api.post(&executions, json!({})).await.created();
        self.remember("latestExecutionId", &latest);
        self.remember("otherExecutionId", &latest);
        let request = json!({"TargetGroup": "pads", "MaxSchedules": 1});
        let leases = self.api.post("/api/automation/leases", request).await.ok();
        self.remember("leaseId", &leases[0]);
    }

    async fn fill_rest(&mut self) {
        let token = json!({"Name": "Nightly", "UsagePermission": "Read"});
        self.create("apiTokenId", "/api/users/current/tokens", token).await;
        let hook = json!({"Url": "https://ci.example.org/", "Events": ["Client.Odd.Created"]});
        self.create("webhookId", "/api/webhooks", hook).await;
        let odd = json!({"Source": "Odd", "SourceId": "1", "Target": "Odd", "Action": "Created"});
        self.create("deliveryId", "/api/notifications", odd).await;
        let plain = json!({"Source": "Build", "SourceId": "1", "Target": "B", "Action": "Done"});
        self.create("notificationId", "/api/notifications", plain).await;
        // Archived, because failing deliveries would change it.
        let hook = format!("/api/webhooks/{}", self.id("webhookId"));
        self.api.put(&hook, json!({"Archived": true})).await.ok();
        self.wait_until_applied().await;
    }

    /// Waits until all events have taken effect.
    async fn wait_until_applied(&self) {
        eventually("all notifications", || async {
            let case = format!("{}/testcases/{}", self.project(), self.id("testCaseId"));
            let case = self.api.get(&case).await.ok();
            let notifications = self.api.get("/api/notifications?source=TestSet").await.ok();
            let mut notifications = notifications.as_array().unwrap().iter();
            let known = self.api.get("/api/notifications?source=KnownFailure").await.ok();
            let of_executions = notifications.clone().filter(|it| it["Target"] == "Execution");
            let is_changed = |it: &Value| it["Target"] == "Project" && it["Action"] == "Changed";
            let set = self.api.get(&self.set()).await.ok();
            let latest = &set["LastExecutionStatistic"]["ExecutionId"];
            let times = self.api.get("/api/executiontimes").await.ok();
            let times = times.as_array().unwrap().iter();
            let counted = times.filter_map(|time| time["Executions"].as_u64()).sum::<u64>();
            (case["LastResult"] == "Passed"
                && of_executions.count() >= 4
                && known[0]["Action"] == "Created"
                && notifications.any(is_changed)
                && latest == self.id("latestExecutionId")
                && counted == ENDED_EXECUTIONS)
                .then_some(())
        })
        .await;
    }
}
