//! A project with records of all kinds.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::id;

/// Creates the project "shop".
pub(super) async fn create(api: &Api) {
    let project = json!({
        "Name": "shop", "Description": "Books", "DefaultBranch": "trunk", "RetentionInDays": 3650,
    });
    let project = api.post("/api/projects", project).await.created();
    let at = format!("/api/projects/{}", id(&project));
    let subject = json!({
        "Name": "Web shop", "Identifier": "1.0", "SubjectType": "Webpage",
        "Uri": "https://shop.example.org/",
        "Variables": [{"Name": "TOKEN", "Content": "secret", "IsSecured": true}],
    });
    let base = api.post(&format!("{at}/subjects"), subject).await.created();
    let subject = json!({
        "Name": "Web shop", "Identifier": "1.1", "SubjectType": "Webpage",
        "Uri": "https://shop.example.org/", "BaseSubjectId": id(&base),
    });
    let subject = api.post(&format!("{at}/subjects"), subject).await.created();
    let environment = json!({"Name": "Linux", "TargetGroup": "linux", "Password": "sesame"});
    let environment = api.post(&format!("{at}/environments"), environment).await.created();

    let pay = case(api, &at, "PAY", "Pay by card").await;
    let plan = json!({
        "Instances": 2, "Description": "In the sandbox",
        "Variables": [{"Name": "CARD", "Content": "4242", "IsSecured": true}],
    });
    let plans = format!("{at}/testcases/{pay}/testplans");
    let plan = api.post(&plans, plan).await.created();
    let steps = json!([{"TestInput": "Pay", "ExpectedResult": "Order", "Comment": "sandbox"}]);
    api.put(&format!("{plans}/{}/automationSteps", id(&plan)), steps).await.ok();
    let ready = json!({"Status": "ReadyForExecution"});
    api.put(&format!("{plans}/{}", id(&plan)), ready).await.ok();
    let aliases = json!({"Aliases": ["checkout.pay"]});
    api.put(&format!("{at}/testcases/{pay}/aliases"), aliases).await.ok();
    let ship = case(api, &at, "SHIP", "Ship").await;
    let old = case(api, &at, "OLD", "Fax the order").await;
    api.put(&format!("{at}/testcases/{old}"), json!({"Archived": true})).await.ok();

    let set = json!({
        "Name": "nightly", "Description": "Every night", "Priority": "High", "Tags": "night",
        "TimeOut": 60, "Gate": {"MaxNewFailures": 1, "RequiredTestCases": ["PAY"]},
    });
    let set = api.post(&format!("{at}/testsets"), set).await.created();
    let members = json!({
        "SelectedSubjectId": id(&subject), "SelectedEnvironmentId": id(&environment),
        "TestCases": [{"Id": ship}, {"Id": pay}],
    });
    api.put(&format!("{at}/testsets/{}", id(&set)), members).await.ok();

    report(api, &at, &set).await;
    cancel(api, &at, &set).await;
    let open = json!({
        "Project": "shop", "TestSet": "smoke", "RequestTime": "2025-03-02T09:00:00Z",
        "CompletionDateTime": "2025-03-02T09:10:00Z",
    });
    let open = api.post("/api/executions", open).await.created();
    let execution = format!("{at}/executions/{}", id(&open));
    let result = json!([{
        "Identifier": "SHIP", "Result": "Passed", "StartDateTime": "2025-03-02T09:01:00Z",
        "FinishDateTime": "2025-03-02T09:02:00Z",
    }]);
    api.post(&format!("{execution}/results"), result).await.ok();
    api.post(&format!("{execution}/complete"), json!({})).await.ok();
    api.put(&execution, json!({"Archived": true})).await.expect(204);
}

async fn case(api: &Api, at: &str, identifier: &str, name: &str) -> String {
    let case = json!({"Identifier": identifier, "Name": name, "Description": "As a customer"});
    let case = api.post(&format!("{at}/testcases"), case).await.created();
    id(&case).to_owned()
}

/// Reports attempts, parameters, steps and a file, and reviews a failure.
async fn report(api: &Api, at: &str, set: &Value) {
    let open = json!({
        "Project": "shop", "TestSet": id(set), "Key": "run-1", "Tags": "a, b", "Branch": "trunk",
        "Commit": "3f2c1d0", "Build": "12", "CiUrl": "https://ci.example.org/12",
        "Notes": ["3 characters are not valid text and were replaced by U+FFFD."],
    });
    let open = api.post("/api/executions", open).await.created();
    let execution = format!("{at}/executions/{}", id(&open));
    let log = format!("{execution}/results/artifacts/pay.log");
    let log = api.request(Method::PUT, &log).header("Content-Type", "text/plain").body("a log");
    Answer::of(log).await.ok();
    let results = json!([
        {
            "Identifier": "PAY", "InstanceNr": 1, "Attempt": 1, "Result": "Failed",
            "StartDateTime": "2026-03-02T09:30:00Z", "FinishDateTime": "2026-03-02T09:30:05Z",
            "Steps": [{"StepNr": 1, "Result": "Failed", "TestInput": "Pay", "ActualResult": "no bank"}],
        },
        {
            "Identifier": "PAY", "InstanceNr": 1, "Attempt": 2, "Result": "Failed",
            "StartDateTime": "2026-03-02T09:31:00Z", "DurationInSec": 2.5, "ExecutionLogUri": "pay.log",
            "Steps": [
                {"StepNr": 1, "Result": "Passed", "TestInput": "Log in", "DurationInSec": 1,
                 "Screenshots": ["pay.log"], "SoftVerification": ["The logo is missing"]},
                {"StepNr": 2, "Result": "Failed", "ActualResult": "no bank", "ExpectedResult": "bank"},
            ],
        },
        {"Identifier": "SHIP", "Reporter": "shard-1", "Variant": "Browser=firefox", "Result": "Passed",
         "DurationInSec": 1},
        {"Identifier": "SHIP", "Reporter": "shard-1", "Variant": "Browser=safari", "Result": "Passed",
         "DurationInSec": 1, "Suites": ["Shop", "Depot"],
         "Labels": [{"Name": "tag", "Value": "slow"}],
         "Links": [{"Kind": "issue", "Target": "SHOP-9"}]},
        {"Identifier": "NEW", "Name": "Return a book", "Result": "Error", "DurationInSec": 3},
    ]);
    api.post(&format!("{execution}/results"), results).await.ok();
    let done = api.post(&format!("{execution}/complete"), json!({})).await.ok();
    let pay = done["TestReports"].as_array().unwrap().iter();
    let pay = pay.clone().find(|report| report["TestCaseIdentifier"] == "PAY").unwrap();
    let review = json!({
        "Reports": [id(pay)], "Status": "Rejected", "Comment": "The bank is down", "Ticket": "SHOP-9",
    });
    api.put(&format!("{execution}/reviews"), review).await.ok();
}

/// Cancels an execution with a test case that has not run.
async fn cancel(api: &Api, at: &str, set: &Value) {
    let open = json!({"Project": "shop", "TestSet": id(set)});
    let open = api.post("/api/executions", open).await.created();
    let execution = format!("{at}/executions/{}", id(&open));
    let results = json!([
        {"Identifier": "SHIP", "Result": "Passed", "DurationInSec": 1},
        {"Identifier": "PAY", "Result": "NotExecuted"},
    ]);
    api.post(&format!("{execution}/results"), results).await.ok();
    api.delete(&execution).await.expect(204);
}
