//! A history of changes in all services, and its effects.

use std::{collections::BTreeMap, fs};

use assay_testkit::{Api, eventually};
use serde_json::{Value, json};

use super::{pipeline::Pipeline, watcher::notifications};
use crate::{
    junit::upload,
    mail::Mail,
    world::{World, create_project, id},
};

/// A JUnit report of tests, given as name and whether the test passed.
fn junit(tests: &[(&str, bool)]) -> String {
    let test = |(name, passed): &(&str, bool)| {
        let failure = if *passed { "" } else { r#"<failure message="lost"/>"# };
        format!(r#"<testcase classname="cart" name="{name}" time="1.5">{failure}</testcase>"#)
    };
    format!(r#"<testsuite name="shop">{}</testsuite>"#, tests.iter().map(test).collect::<String>())
}

/// Makes every service publish an event, so that all streams and consumers exist.
pub(super) async fn warm_up(api: &Api, pipeline: &Pipeline) {
    let mail = json!({"MailWhenExecutionEnds": true});
    api.put("/api/users/current/settings", mail).await.ok();
    let project = create_project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "First"})).await.created();
    upload(api, &format!("{project}/testsets/{}", id(&set)), junit(&[("warm", true)]))
        .await
        .created();
    let group = json!({"Name": "First", "UsagePermission": "Login"});
    api.post("/api/management/customers/current/groups", group).await.created();
    pipeline.settle().await;
}

/// Paths of the records of a history.
pub(super) struct History {
    project: String,
    set: String,
    subject: String,
}

impl History {
    /// Makes all changes of the history.
    pub(super) async fn run(api: &Api) -> Self {
        let project = create_project(api).await;
        for days in [30, 10, 20] {
            api.put(&project, json!({"RetentionInDays": days})).await.ok();
        }
        let subject = json!({
            "Name": "Shop", "Identifier": "1.2.3", "SubjectType": "Webpage",
            "Uri": "https://shop.example.org/",
        });
        let subject = api.post(&format!("{project}/subjects"), subject).await.created();
        let environment = json!({"Name": "Stage", "Password": "sesame"});
        let environment = api.post(&format!("{project}/environments"), environment).await;
        let environment = environment.created();
        for _ in 0..2 {
            api.get(&format!("{project}/environments/{}", id(&environment))).await.ok();
        }
        let set = api.post(&format!("{project}/testsets"), json!({"Name": "Cart"})).await;
        let set = format!("{project}/testsets/{}", id(&set.created()));
        let selection =
            json!({"SelectedSubjectId": id(&subject), "SelectedEnvironmentId": id(&environment)});
        api.put(&set, selection).await.ok();
        let subject = format!("{project}/subjects/{}", id(&subject));
        let history = Self { project, set, subject };
        history.executions(api).await;
        history
    }

    async fn executions(&self, api: &Api) {
        let Self { project, set, .. } = self;
        let first = junit(&[("adds up", true), ("ships", false)]);
        let first = upload(api, set, first).await.created();

        let started = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
        let second = format!("{project}/executions/{}", id(&started.created()));
        for (name, result) in [("adds up", "Passed"), ("ships", "Error")] {
            let result = json!([{
                "Identifier": format!("cart.{name}"), "Result": result, "DurationInSec": 2.5,
            }]);
            api.post(&format!("{second}/results"), result).await.ok();
        }
        api.post(&format!("{second}/complete"), json!({})).await.ok();

        let third = junit(&[("adds up", true), ("ships", true), ("prints", false)]);
        let third = upload(api, set, third).await.created();
        let report = &third["TestReports"][2];
        let at = |field: &str| report[field].as_str().unwrap();
        let report = format!(
            "{project}/testcases/{}/testplans/{}/testreports/{}",
            at("TestCaseId"),
            at("TestPlanId"),
            id(report)
        );
        for status in ["Investigation", "Rejected", "Accepted"] {
            api.put(&report, json!({"Status": status})).await.ok();
        }

        let started = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
        let fourth = format!("{project}/executions/{}", id(&started.created()));
        let result = json!([{"Identifier": "cart.prints", "Result": "Failed", "DurationInSec": 1}]);
        api.post(&format!("{fourth}/results"), result).await.ok();
        api.delete(&fourth).await.expect(204);
        let archived = json!({"Archived": true});
        api.put(&format!("{project}/executions/{}", id(&first)), archived).await.expect(204);

        let group = json!({"Name": "Auditors", "UsagePermission": "Login, Read"});
        let groups = "/api/management/customers/current/groups";
        let group = format!("{groups}/{}", id(&api.post(groups, group).await.created()));
        api.put(&group, json!({"Description": "They look"})).await.ok();
        api.delete(&group).await.expect(204);
    }

    /// The effects in all services, without ids and times.
    pub(super) async fn effects(&self, api: &Api, world: &World, pipeline: &Pipeline) -> Value {
        let mut differences = Vec::new();
        assay::verify(world.databases(), |one| differences.push(one.to_string())).await.unwrap();
        assert!(differences.is_empty(), "the databases differ: {differences:#?}");

        let [set, subject, project] = [
            api.get(&self.set).await.ok(),
            api.get(&self.subject).await.ok(),
            api.get(&self.project).await.ok(),
        ];
        let retention: (i32, i64) =
            sqlx::query_as("select days, revision from retention where project_id::text = $1")
                .bind(id(&project))
                .fetch_one(&pipeline.execution)
                .await
                .unwrap();
        json!({
            "Cases": self.cases(api).await,
            "Set": only(&set, &["LastSwIdentifier", "LastSwName", "LastRunDuration"]),
            "Statistic": only(&set["LastExecutionStatistic"], &[
                "TestCasesTotal", "TestCasesPassed", "TestCasesFailed", "TestCasesAborted",
                "TestCasesCanceled", "TestCasesWithError",
            ]),
            "PassRate": subject["PassRate"],
            "Project": only(&project, &["OverallResult", "OverallStatus"]),
            "Retention": [retention.0, i32::try_from(retention.1).unwrap()],
            "Notifications": notification_counts(api).await,
            "Audit": audit_counts(api).await,
            "Mails": mail_subjects(api, world, pipeline).await,
        })
    }

    async fn cases(&self, api: &Api) -> BTreeMap<String, Value> {
        let cases = api.get(&format!("{}/testcases", self.project)).await.ok();
        let seen = |case: &Value| {
            let statistics = case["ExecutionStatistics"].as_array().unwrap().iter();
            let shown = only(case, &["LastResult", "LastReportStatus", "LastSwIdentifier"]);
            json!([shown, statistics.cloned().collect::<Vec<_>>()])
        };
        let cases = cases.as_array().unwrap().iter();
        cases.map(|case| (case["Identifier"].as_str().unwrap().to_owned(), seen(case))).collect()
    }
}

/// Selected fields of a record.
fn only(record: &Value, fields: &[&str]) -> Value {
    fields.iter().map(|field| ((*field).to_owned(), record[field].clone())).collect()
}

/// Number of notifications of each kind.
async fn notification_counts(api: &Api) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in notifications(api).await {
        let words = ["Source", "Target", "Action", "State"].map(|name| one[name].to_string());
        *counts.entry(words.join(" ")).or_default() += 1;
    }
    counts
}

/// Number of the customer's audit entries for each action.
async fn audit_counts(api: &Api) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in api.get("/api/management/audit").await.ok().as_array().unwrap() {
        *counts.entry(entry["Action"].to_string()).or_default() += 1;
    }
    counts
}

/// The subjects of all mails to the user.
async fn mail_subjects(api: &Api, world: &World, pipeline: &Pipeline) -> Vec<String> {
    eventually("an empty queue of mails", || async {
        let queued = sqlx::query_scalar("select count(*) from mail");
        let queued: i64 = queued.fetch_one(&pipeline.identity).await.unwrap();
        (queued == 0).then_some(())
    })
    .await;
    let user = api.get("/api/users/current").await.ok();
    let to = format!("To: {}", user["Email"].as_str().unwrap());
    let files = fs::read_dir(world.mail_dir()).unwrap().flatten();
    let subject = |file: fs::DirEntry| {
        let mail = Mail::read(&fs::read_to_string(file.path()).unwrap());
        mail.header.lines().find(|line| *line == to)?;
        let found = mail.header.lines().find(|line| line.starts_with("Subject: "));
        Some(found.expect("the mail has a subject").to_owned())
    };
    let mut subjects: Vec<String> = files.filter_map(subject).collect();
    subjects.sort();
    subjects
}
