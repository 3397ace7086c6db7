//! Executions from the past, whose times their clients state.

use assay_testkit::eventually;
use serde_json::json;

use crate::{customer::Customer, world::id};

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_of_the_past_has_its_place_in_history_and_causes_no_messages() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let run = async |body: serde_json::Value, result: &str| {
        let open = api.post("/api/executions", body).await.created();
        let project = open["ProjectId"].as_str().unwrap();
        let at = format!("/api/projects/{project}/executions/{}", id(&open));
        let results = json!([{
            "Identifier": "PAY", "Result": result,
            "Steps": [{"StepNr": 1, "Result": result, "ActualResult": "no bank"}],
        }]);
        api.post(&format!("{at}/results"), results).await.ok();
        api.post(&format!("{at}/complete"), json!({})).await.ok()
    };
    let latest = run(json!({"Project": "shop", "TestSet": "nightly"}), "Passed").await;
    let past = |day: &str| {
        json!({
            "Project": "shop", "TestSet": "nightly", "RequestTime": format!("{day}T09:00:00Z"),
            "CompletionDateTime": format!("{day}T10:00:00Z"),
        })
    };
    let first = run(past("2025-01-01"), "Failed").await;
    let second = run(past("2025-01-02"), "Failed").await;

    assert_eq!(first["RequestTime"], "2025-01-01T09:00:00.000000Z");
    assert_eq!(first["CompletionDateTime"], "2025-01-01T10:00:00.000000Z");
    assert_eq!(first["TestReports"][0]["Change"], "New");
    assert_eq!(second["TestReports"][0]["Change"], "Still");
    let project = format!("/api/projects/{}", latest["ProjectId"].as_str().unwrap());
    let list = api.get(&format!("{project}/executions")).await.ok();
    let list: Vec<_> = list.as_array().unwrap().iter().map(|one| one["Id"].clone()).collect();
    assert_eq!(list, [latest["Id"].clone(), second["Id"].clone(), first["Id"].clone()]);
    let days = "fromDate=2025-01-01&toDate=2025-01-01";
    let list = api.get(&format!("{project}/executions?{days}")).await.ok();
    assert_eq!(list.as_array().unwrap().len(), 1);

    let set = format!("{project}/testsets/{}", latest["TestSetId"].as_str().unwrap());
    eventually("the results of the latest execution in the catalog", || async {
        let set = api.get(&set).await.ok();
        (set["LastExecutionStatistic"]["ExecutionId"] == latest["Id"]).then_some(())
    })
    .await;
    let completed = async || {
        let messages = api.get("/api/notifications?source=TestSet&action=Completed").await.ok();
        messages.as_array().unwrap().iter().map(|one| one["TargetId"].clone()).collect::<Vec<_>>()
    };
    eventually("a notification", async || (!completed().await.is_empty()).then_some(())).await;
    assert_eq!(completed().await, [latest["Id"].clone()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_the_past_are_checked_and_require_the_permission_to_write() {
    let customer = Customer::new().await;
    let open = |request: &str, end: Option<&str>| {
        json!({
            "Project": "shop", "TestSet": "nightly", "RequestTime": request, "CompletionDateTime": end,
        })
    };
    for (body, field) in [
        (open("2999-01-01T00:00:00Z", None), "CompletionDateTime"),
        (open("2025-01-02T00:00:00Z", Some("2025-01-01T00:00:00Z")), "CompletionDateTime"),
        (open("1969-01-02T00:00:00Z", None), "RequestTime"),
    ] {
        let problem = customer.api.post("/api/executions", body).await;
        let problem = problem.is_problem(422, "invalid");
        assert!(problem.to_string().contains(field), "{problem}");
    }
    customer
        .api
        .post("/api/executions", json!({"Project": "shop", "TestSet": "nightly"}))
        .await
        .created();
    let member = customer.create_member("eve", "Login, Read, Execute").await;
    let refused = member.api.post("/api/executions", open("2025-01-01T00:00:00Z", None)).await;
    refused.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_returned_as_they_are_reported() {
    let customer = Customer::new().await;
    let api = &customer.api;
    super::fixture::create(api).await;
    let projects = api.get("/api/projects").await.ok();
    let project = format!("/api/projects/{}", id(&projects[0]));
    let executions = api.get(&format!("{project}/executions")).await.ok();
    let executions = executions.as_array().unwrap();
    let first = executions.iter().find(|execution| execution["Build"] == "12").unwrap();
    let at = format!("{project}/executions/{}", id(first));

    let answer = api.get(&format!("{at}/results")).await;

    assert_eq!(answer.expect(200).headers["content-type"], "application/x-ndjson");
    let text = String::from_utf8(answer.body.clone()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let attempts: Vec<_> = lines.iter().filter(|line| line["Identifier"] == "PAY").collect();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0]["Steps"][0]["ActualResult"], "no bank");
    assert_eq!(
        (&attempts[1]["Attempt"], &attempts[1]["ExecutionLogUri"]),
        (&json!(2), &json!("pay.log"))
    );
    let files = api.get(&format!("{at}/results/artifacts")).await.ok();
    assert_eq!((&files[0]["Name"], &files[0]["Size"]), (&json!("pay.log"), &json!(5)));
    let link = files[0]["Uri"].as_str().unwrap();
    let link = &link[link.find("/api/").unwrap()..];
    assert_eq!(customer.anonymous().get(link).await.expect(200).body, b"a log");
}
