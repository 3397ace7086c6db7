//! A session that causes all published events.

use assay_testkit::{Api, eventually};
use async_nats::{Client, jetstream};
use serde_json::{Value, json};

use crate::{
    junit::{report, upload},
    people::{create_group, create_user},
    world::{World, create_project, id, in_days, in_seconds},
};

/// Makes every documented event happen.
pub(super) async fn of(world: &World, nats: &Client) {
    let api = &world.api;
    people(api).await;
    let project = create_project(api).await;
    records(api, &project).await;
    executions(api, &project).await;
    api.put(&project, json!({"RetentionInDays": 30})).await.ok();
    life(api, &project, json!({"Description": "Flies far"})).await;
    for (source, action) in [("Deployment", "Begun"), ("Build4", "Failed")] {
        let notification = json!({"Source": source, "SourceId": "4711", "Target": "Cluster",
                          "TargetId": "eu.1", "Action": action, "State": "Late"});
        api.post("/api/notifications", notification).await.created();
    }
    // An event that no service can apply.
    let jetstream = jetstream::new(nats.clone());
    let customer = api.get("/api/management/customers/current").await.ok();
    let subject = format!("assay.execution.{}.execution.completed", id(&customer));
    let stored = jetstream.get_stream("ASSAY_EXECUTION").await.unwrap().get_info().await.unwrap();
    jetstream.publish(subject, "{".into()).await.unwrap().await.unwrap();
    let stream = jetstream.get_stream("ASSAY_EXECUTION").await.unwrap();
    eventually("acknowledged deliveries", || async {
        let consumer = stream.consumer_info("notification").await.ok()?;
        (consumer.ack_floor.stream_sequence > stored.state.last_sequence).then_some(())
    })
    .await;
    // The message belongs to no service, so it is not documented.
    stream.delete_message(stored.state.last_sequence + 1).await.unwrap();
}

/// Changes, archives, unarchives and deletes a record.
async fn life(api: &Api, path: &str, change: Value) {
    api.put(path, change).await.ok();
    api.put(path, json!({"Archived": true})).await.ok();
    api.put(path, json!({"Archived": false})).await.ok();
    api.delete(path).await.expect(204);
}

async fn people(api: &Api) {
    let customers = "/api/management/customers";
    let acme = api
        .post(customers, json!({"Name": "Acme", "Subdomain": "acme", "Appliances": "linux"}))
        .await
        .created();
    life(api, &format!("{customers}/{}", id(&acme)), json!({"Name": "Acme Ltd"})).await;
    let groups = "/api/management/customers/current/groups";
    let testers = create_group(api, "Night shift", "Login, Read").await;
    let grace = create_user(api, "grace@example.org", id(&testers)).await.created();
    let grace = format!("/api/users/{}", id(&grace));
    api.put(&grace, json!({"DisplayName": "Grace H."})).await.ok();
    api.delete(&grace).await.expect(204);
    let testers = format!("{groups}/{}", id(&testers));
    api.put(&testers, json!({"UsagePermission": "Login, Read, Write"})).await.ok();
    api.delete(&testers).await.expect(204);
}

async fn records(api: &Api, project: &str) {
    let secret = json!([{"PoolName": "", "IsSecured": true, "ValidationRule": "", "Name": "token",
                         "DisplayName": "", "Content": "hush"}]);
    for (list, body) in [
        ("testcases", json!({"Name": "Log in"})),
        ("testsets", json!({"Name": "Nightly"})),
        ("environments", json!({"Name": "Lab"})),
        (
            "subjects",
            json!({"Name": "Shop", "Identifier": "1.0", "SubjectType": "Webpage",
                   "Uri": "https://shop.test", "Variables": secret}),
        ),
    ] {
        let list = format!("{project}/{list}");
        let path = format!("{list}/{}", id(&api.post(&list, body).await.created()));
        api.get(&path).await.ok();
        if list.ends_with("testcases") {
            let plans = format!("{path}/testplans");
            let plan = api.post(&plans, json!({"Instances": 1})).await.created();
            let ready = json!({"Status": "ReadyForExecution"});
            api.put(&format!("{plans}/{}", id(&plan)), ready).await.ok();
        }
        life(api, &path, json!({"Name": "Renamed"})).await;
    }
    for name in ["Imported", "Renamed"] {
        let rows = json!([{"Identifier": "imported", "Name": name}]);
        api.post(&format!("{project}/testcases/import"), rows).await.ok();
    }
}

async fn executions(api: &Api, project: &str) {
    let sets = format!("{project}/testsets");
    let set = format!("{sets}/{}", id(&api.post(&sets, json!({"Name": "All"})).await.created()));
    let uploaded = upload(api, &set, report(2)).await.created();
    let at = format!("{project}/executions/{}", id(&uploaded));
    for change in [json!({}), json!({"Archived": true}), json!({"Archived": false})] {
        api.put(&at, change).await.expect(204);
    }
    let report = &uploaded["TestReports"][0];
    let text = |field: &str| report[field].as_str().unwrap();
    let report = format!(
        "{project}/testcases/{}/testplans/{}/testreports/{}",
        text("TestCaseId"),
        text("TestPlanId"),
        text("Id")
    );
    api.put(&report, json!({"Status": "Accepted"})).await.ok();

    // One execution with several reports of results, and one that is canceled.
    let started = format!("{set}/executions");
    let start = || api.post(&started, json!({"Mode": "External"}));
    let at = format!("{project}/executions/{}", id(&start().await.created()));
    let result = json!([{"Identifier": "suite.test 0", "Result": "Failed", "DurationInSec": 0.5}]);
    api.post(&format!("{at}/results"), result).await.ok();
    api.post(&format!("{at}/complete"), json!({})).await.ok();
    known_failure(api, project, &at).await;
    test_case_state(api, project, text("TestCaseId")).await;
    monitor(api, project, &set).await;
    incident(api, project, &set).await;
    let at = format!("{project}/executions/{}", id(&start().await.created()));
    share_link(api, &at).await;
    api.delete(&at).await.expect(204);
    waiting(api, &started).await;
}

/// Creates a share link, and deletes it.
async fn share_link(api: &Api, execution: &str) {
    let links = format!("{execution}/shares");
    let link = api.post(&links, json!({})).await.created();
    api.delete(&format!("{links}/{}", id(&link))).await.expect(204);
}

/// Starts an execution that no engine begins.
async fn waiting(api: &Api, started: &str) {
    api.post(started, json!({})).await.created();
    eventually("the execution to wait", || async {
        let waiting = api.get("/api/notifications?event=Execution.Waiting").await.ok();
        waiting.as_array().filter(|list| !list.is_empty()).map(|_| ())
    })
    .await;
}

/// Begins an incident, and ends it.
async fn incident(api: &Api, project: &str, set: &str) {
    for (outcome, number) in [("<failure message='refused'/>", 1), ("", 2)] {
        let test = |nr| format!("<testcase classname='suite' name='t{nr}'>{outcome}</testcase>");
        let tests: String = (0..12).map(test).collect();
        upload(api, set, format!("<testsuite>{tests}</testsuite>")).await.created();
        eventually("an event of the incident", || async {
            let notifications = api.get("/api/notifications?source=Incident").await.ok();
            let notifications = notifications.as_array()?;
            let of_project = notifications
                .iter()
                .filter(|one| project.ends_with(one["TargetId"].as_str().unwrap_or_default()));
            (of_project.count() == number).then_some(())
        })
        .await;
    }
}

/// Makes a failure of an execution known, ends it and deletes it.
async fn known_failure(api: &Api, project: &str, execution: &str) {
    let causes = api.get(&format!("{execution}/failures")).await.ok();
    let known = json!({
        "Fingerprint": causes[0]["Fingerprint"], "EveryCase": true,
        "MutedUntil": in_days(30),
    });
    let list = format!("{project}/knownfailures");
    let path = format!("{list}/{}", id(&api.post(&list, known).await.created()));
    api.put(&path, json!({"MutedUntil": in_days(1)})).await.ok();
    eventually("the notice of the end", || async {
        let notice = api.get("/api/notifications?event=KnownFailure.Expiring").await.ok();
        notice.as_array().filter(|list| !list.is_empty()).map(|_| ())
    })
    .await;
    let ended = json!({"Ticket": "SHOP-4711", "MutedUntil": in_days(-1)});
    api.put(&path, ended).await.ok();
    eventually("the end of the known failure", || async {
        let notifications = api.get("/api/notifications?source=KnownFailure").await.ok();
        (notifications[0]["Action"] == "Expired").then_some(())
    })
    .await;
    api.delete(&path).await.expect(204);
    let rules = format!("{project}/causerules");
    let rule = api.post(&rules, json!({"Pattern": "for customer [A-Z]+"})).await.created();
    api.delete(&format!("{rules}/{}", id(&rule))).await.expect(204);
}

/// Mutes, skips and enables a test case, and mutes it until its end.
async fn test_case_state(api: &Api, project: &str, case: &str) {
    let path = format!("{project}/testcases/{case}/state");
    for state in ["Muted", "Skipped", "Enabled"] {
        api.put(&path, json!({"State": state, "Until": in_days(30)})).await.ok();
    }
    api.put(&path, json!({"State": "Muted", "Until": in_seconds(3)})).await.ok();
    eventually("the end of the state", || async {
        let notifications = api.get("/api/notifications?source=TestCaseState").await.ok();
        (notifications[0]["Action"] == "Expired").then_some(())
    })
    .await;
}

/// Creates a monitor, lets it raise and end an alarm, and deletes it.
async fn monitor(api: &Api, project: &str, set: &str) {
    let retries = json!({
        "Name": "Retries", "Measure": "PassOnRetry", "Threshold": 1, "Action": "Notify",
        "RecoverAfter": 1,
    });
    let list = format!("{project}/monitors");
    let path = format!("{list}/{}", id(&api.post(&list, retries).await.created()));
    api.put(&path, json!({"Name": "Retried tests"})).await.ok();
    for retry in ["<flakyFailure message='lost'/>", ""] {
        let test = format!("<testcase classname='suite' name='retried'>{retry}</testcase>");
        let report = format!("<testsuite name='s'>{test}</testsuite>");
        upload(api, set, report).await.created();
    }
    eventually("the end of the alarm", || async {
        let notifications = api.get("/api/notifications?source=Monitor").await.ok();
        (notifications[0]["Action"] == "Recovered").then_some(())
    })
    .await;
    api.delete(&path).await.expect(204);
}
