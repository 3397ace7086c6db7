//! A database is down: one incident, and one notification, instead of a failure of each test.

use assay_testkit::{Api, eventually};
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    junit::upload,
    world::{create_project, id},
};

fn report(message: &str) -> String {
    let failure = format!("<failure message='{message}'>{message}</failure>");
    let failure = if message.is_empty() { String::new() } else { failure };
    let test = |nr| format!("<testcase classname='shop' name='t{nr}'>{failure}</testcase>");
    format!("<testsuite>{}</testsuite>", (0..12).map(test).collect::<String>())
}

/// Waits until the notifications of incidents have these actions, the latest first.
async fn notified(api: &Api, actions: &[&str]) -> Value {
    eventually("the notifications of the incident", || async {
        let notifications = api.get("/api/notifications?source=Incident").await.ok();
        let found = notifications.as_array()?.iter().map(|one| one["Action"].clone());
        (found.eq(actions.iter().map(|action| json!(action)))).then_some(notifications)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_one_incident_with_one_notification_until_it_is_over() {
    let api = Customer::new().await.api;
    let project = create_project(&api).await;
    let sets = format!("{project}/testsets");
    let set = api.post(&sets, json!({"Name": "Nightly"})).await.created();
    let set = format!("{sets}/{}", id(&set));
    upload(&api, &set, report("")).await.created();
    let red = upload(&api, &set, report("10.0.0.7:5432 refused")).await.created();
    let again = upload(&api, &set, report("10.0.0.7:5432 refused")).await.created();

    let notifications = notified(&api, &["Created"]).await;
    let incident = notifications[0]["SourceId"].as_str().unwrap();
    let list = format!("{project}/incidents");
    let listed = eventually("the second execution", || async {
        let listed = api.get(&list).await.ok();
        (listed[0]["Executions"] == 2).then_some(listed)
    });
    let listed = listed.await;
    assert_eq!((&listed[0]["Id"], &listed[1]), (&json!(incident), &Value::Null), "{listed}");
    assert_eq!(listed[0]["Headline"], "10.0.0.7:5432 refused");
    assert_eq!(listed[0]["EndedAt"], Value::Null);
    let execution = format!("{project}/executions/{}", id(&red));
    assert_eq!(api.get(&format!("{execution}/summary")).await.ok()["IncidentId"], incident);
    assert_eq!(api.get(&format!("{execution}/verdict")).await.ok()["State"], "Failed");
    let failures = api.get(&format!("{execution}/reports?result=Failed")).await.ok();
    assert_eq!(failures.as_array().unwrap().len(), 12, "nothing is hidden");

    let green = upload(&api, &set, report("")).await.created();
    notified(&api, &["Ended", "Created"]).await;
    let ended = api.get(&format!("{list}/{incident}")).await.ok();
    assert_eq!(ended["EndedByExecutionId"], id(&green));
    let affected = ended["Affected"].as_array().unwrap().iter().map(|one| &one["ExecutionId"]);
    assert!(affected.eq([&json!(id(&again)), &json!(id(&red))]), "{ended}");
    api.get(&format!("{list}/{}", id(&green))).await.is_problem(404, "not_found");
}
