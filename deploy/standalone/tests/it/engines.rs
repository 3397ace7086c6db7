//! Engines over HTTP: from a queued execution to its reports.

use std::time::{Duration, Instant};

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    world::{create_project, id},
};

const LEASES: &str = "/api/automation/leases";

/// Creates a set with this number of test cases for the target group `pads`, and with secrets in the
/// subject and the environment. Returns its path.
async fn create_set(api: &Api, project: &str, cases: usize) -> String {
    let environment = json!({"Name": "Pad 1", "TargetGroup": "pads", "Password": "sesame"});
    let environment = api.post(&format!("{project}/environments"), environment).await.created();
    let token = json!({"Name": "TOKEN", "DisplayName": "", "PoolName": "", "IsSecured": true,
        "ValidationRule": "", "Content": "s3cret"});
    let subject = json!({"Name": "Rocket OS", "Identifier": "1.2.3", "SubjectType": "Webpage",
        "Uri": "https://rocket.example.org/", "Variables": [token]});
    let subject = api.post(&format!("{project}/subjects"), subject).await.created();
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Smoke"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    let selected =
        json!({"SelectedEnvironmentId": environment["Id"], "SelectedSubjectId": subject["Id"]});
    api.put(&set, selected).await.ok();
    for nr in 1..=cases {
        let case =
            json!({"Name": "Log in", "Description": "", "Identifier": format!("LOGIN-{nr}")});
        let case = api.post(&format!("{project}/testcases"), case).await.created();
        let plans = format!("{project}/testcases/{}/testplans", id(&case));
        let plan = api.post(&plans, json!({"Instances": 2})).await.created();
        let plan = format!("{plans}/{}", id(&plan));
        let steps = json!([{"TestInput": "Open the page", "ExpectedResult": "It opens"}]);
        api.put(&format!("{plan}/automationSteps"), steps).await.ok();
        api.put(&plan, json!({"Status": "ReadyForExecution"})).await.ok();
        api.put(&format!("{set}/testcases"), json!({"Id": case["Id"]})).await.ok();
    }
    set
}

/// Returns a client with an API token that has only the permission `Automation`.
async fn create_engine(customer: &Customer) -> Api {
    let member = customer.create_member("engine", "Login, Automation").await;
    let token = json!({"Name": "Pad 1", "UsagePermission": "Automation"});
    let token = member.api.post("/api/users/current/tokens", token).await.created();
    customer.anonymous().with_token(token["Secret"].as_str().unwrap())
}

async fn lease(engine: &Api, request: Value) -> Vec<Value> {
    engine.post(LEASES, request).await.ok().as_array().unwrap().clone()
}

fn result(nr: i32, result: &str) -> Value {
    json!({"InstanceNr": nr, "Result": result, "DurationInSec": 1.5,
        "Steps": [{"StepNr": 1, "TestInput": "Open the page", "Result": result}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_leases_work_and_reports_results() {
    let customer = Customer::new().await;
    let (api, engine) = (&customer.api, create_engine(&customer).await);
    let project = create_project(api).await;
    let set = create_set(api, &project, 2).await;

    // The request begins before there is work and is answered as soon as there is some.
    let clock = Instant::now();
    let request = json!({"TargetGroup": "pads", "Engine": "pad-1", "MaxSchedules": 5,
        "WaitInSec": 30});
    let waiting = lease(&engine, request.clone());
    let executions = format!("{set}/executions");
    let starts = api.post(&executions, json!({}));
    let (leases, started) = tokio::join!(waiting, starts);
    let execution = started.created();
    assert!(clock.elapsed() < Duration::from_secs(20));
    let at = format!("{project}/executions/{}", id(&execution));
    assert_eq!(api.get(&at).await.ok()["Status"], "Running");

    let [first, second] = &leases[..] else { panic!("{leases:?}") };
    assert_eq!(first["InstanceNumbers"], json!([1, 2]));
    assert_eq!(first["TestCase"]["Identifier"], "LOGIN-1");
    assert_eq!(first["TestPlan"]["AutomationSteps"][0]["TestInput"], "Open the page");
    assert_eq!(first["Subject"]["Variables"][0]["Content"], "s3cret");
    assert_eq!(first["Environment"]["Password"], "sesame");

    let lease = format!("{LEASES}/{}", id(first));
    let beat = engine.post(&format!("{lease}/heartbeat"), json!({})).await.ok();
    assert_eq!(beat["Continue"], true);
    let both = json!([result(1, "Passed"), result(2, "Failed")]);
    let entries = engine.post(&format!("{lease}/instances"), both.clone()).await.ok();
    assert_eq!(entries[1]["Result"], "Failed");
    assert_eq!(engine.post(&format!("{lease}/instances"), both).await.ok(), entries);
    let done = json!({"Comment": "On pad 1", "EngineFailure": false});
    engine.post(&format!("{lease}/complete"), done.clone()).await.expect(204);
    engine.post(&format!("{lease}/complete"), done).await.expect(204);

    // The other lease is released and acquired again.
    engine.delete(&format!("{LEASES}/{}", id(second))).await.expect(204);
    let heartbeat = format!("{LEASES}/{}/heartbeat", id(second));
    engine.post(&heartbeat, json!({})).await.is_problem(409, "lease_lost");
    let again = self::lease(&engine, request).await.remove(0);
    assert_eq!(again["ScheduleId"], second["ScheduleId"]);
    let lease = format!("{LEASES}/{}", id(&again));
    let failure = json!({"Comment": "No fuel", "EngineFailure": true});
    engine.post(&format!("{lease}/complete"), failure).await.expect(204);

    let done = api.get(&at).await.ok();
    assert_eq!((&done["Status"], &done["Result"]), (&json!("Completed"), &json!("Error")));
    let reports = &done["TestReports"];
    assert_eq!(reports[0]["Status"], "InReview");
    assert_eq!(reports[0]["Comment"], "On pad 1");
    assert_eq!(reports[1]["Status"], "EngineExecutionFailure");
    api.delete(&at).await.is_problem(409, "execution_ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_are_notified_of_a_canceled_execution() {
    let customer = Customer::new().await;
    let (api, engine) = (&customer.api, create_engine(&customer).await);
    let project = create_project(api).await;
    let set = create_set(api, &project, 1).await;
    let execution = api.post(&format!("{set}/executions"), json!({})).await.created();
    assert_eq!(execution["Status"], "Queued");
    let at = format!("{project}/executions/{}", id(&execution));
    let lease = lease(&engine, json!({"TargetGroup": "pads"})).await.remove(0);
    let lease = format!("{LEASES}/{}", id(&lease));

    engine.delete(&at).await.is_problem(403, "forbidden");
    api.delete(&at).await.expect(204);
    api.delete(&at).await.expect(204);

    let beat = engine.post(&format!("{lease}/heartbeat"), json!({})).await.ok();
    assert_eq!(beat["Continue"], false);
    let late = engine.post(&format!("{lease}/instances"), json!([result(1, "Passed")])).await;
    late.is_problem(409, "execution_ended");
    let canceled = api.get(&at).await.ok();
    assert_eq!(canceled["Status"], "Canceled");
    assert_eq!(canceled["TestReports"][0]["Status"], "Canceled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_start_request_starts_no_new_execution() {
    let api = &Customer::new().await.api;
    let project = create_project(api).await;
    let set = create_set(api, &project, 1).await;
    let start = async |key: &str, body: Value| {
        let request = api.request(Method::POST, &format!("{set}/executions"));
        Answer::of(request.header("Idempotency-Key", key).json(&body)).await
    };

    let first = start("\"one\"", json!({})).await;
    let again = start("one", json!({})).await;
    assert_eq!(first.created(), again.created());
    assert_eq!(first.headers["location"], again.headers["location"]);
    start("one", json!({"Tags": "x"})).await.is_problem(422, "idempotency_key_reused");
    start("", json!({})).await.is_problem(422, "invalid");
    let executions = api.get(&format!("{project}/executions")).await.ok();
    assert_eq!(executions.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_need_the_automation_permission() {
    let customer = Customer::new().await;
    let permissions = "Login, Read, Write, Execute";
    let reader = customer.create_member("reader", permissions).await;
    reader.api.post(LEASES, json!({})).await.is_problem(403, "forbidden");
    let engine = create_engine(&customer).await;
    assert!(lease(&engine, json!({})).await.is_empty());
    let wrong = json!({"MaxSchedules": 0, "WaitInSec": 31});
    let problem = engine.post(LEASES, wrong).await.is_problem(422, "invalid");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2);
    let unknown = format!("{LEASES}/0/heartbeat");
    engine.post(&unknown, json!({})).await.is_problem(404, "not_found");
}
