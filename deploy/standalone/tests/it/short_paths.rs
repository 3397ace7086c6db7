//! Short paths: those that begin with the record that an id is of.

use reqwest::Method;
use serde_json::json;

use crate::{
    customer::Customer,
    junit::{report, upload},
    matrix::operation::operations,
    world::{create_project, id},
};

/// Everything that can be read below an execution and a test report can be read by short paths.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_alone_leads_to_its_record() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let sets = format!("{project}/testsets");
    let set = api.post(&sets, json!({"Name": "All"})).await.created();
    let execution = upload(api, &format!("{sets}/{}", id(&set)), report(3)).await.created();
    let test = &execution["TestReports"][0];
    let field = |name: &str| test[name].as_str().unwrap().to_owned();
    let long_report = format!(
        "{project}/testcases/{}/testplans/{}/testreports/{}",
        field("TestCaseId"),
        field("TestPlanId"),
        id(test)
    );
    let instances = api.get(&format!("{long_report}/instances")).await.ok();
    let of = |name: &str| match name {
        "projectId" => project.rsplit('/').next().unwrap().to_owned(),
        "executionId" | "completedExecutionId" => id(&execution).to_owned(),
        "testCaseId" => field("TestCaseId"),
        "testPlanId" => field("TestPlanId"),
        "testReportId" => id(test).to_owned(),
        "instanceId" => id(&instances[0]).to_owned(),
        "testSetId" => id(&set).to_owned(),
        other => panic!("{other}"),
    };
    let stranger = Customer::new().await;

    let all = operations();
    let read = |short: bool| {
        all.iter().filter(move |operation| {
            let id = operation.definition["operationId"].as_str().unwrap();
            operation.method == Method::GET && id.ends_with("_by_id") == short
        })
    };
    let mut compared = 0;
    for short in read(true) {
        let path = short.path(|_, name| of(name));
        let answer = api.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {answer}");
        let foreign = stranger.api.get(&path).await.status;
        assert_eq!(foreign, 404, "{path} of another customer");
        // Links of artifacts and the times of the debug record change.
        if let Some(long) = read(false).find(|long| long.name == short.name)
            && !["list_artifacts", "get_debug_record"].contains(&short.name.as_str())
        {
            let long = api.get(&long.path(|_, name| of(name))).await;
            assert!(long.body == answer.body, "{path}: {answer}");
            compared += 1;
        }
    }
    assert!(compared > 12, "{compared}");

    let reviewed = format!("/api/testreports/{}", id(test));
    let change = json!({"Status": "Accepted", "Comment": "As it should be"});
    assert_eq!(api.put(&reviewed, change).await.ok()["Status"], "Accepted");
    stranger.api.put(&reviewed, json!({"Status": "Rejected"})).await.expect(404);
    let at = format!("/api/executions/{}", id(&execution));
    api.put(&at, json!({"Archived": true})).await.expect(204);
    assert_eq!(api.get(&at).await.ok()["Archived"], true);
    let share = api.post(&format!("{at}/shares"), json!({})).await;
    share.created();
    let location = share.headers["location"].to_str().unwrap().to_owned();
    api.delete(&location).await.expect(204);
}
