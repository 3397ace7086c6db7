//! End-to-end tests: from a login to a report and its notifications.

use assay_testkit::{Answer, Api, eventually};
use futures::StreamExt;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    installation::Installation,
    junit::upload,
    world::{ADMIN, PASSWORD, World, create_project, id},
};

/// A JUnit report by cargo-nextest of a run of Assay's own tests.
const JUNIT: &str = include_str!("../../../../docs/first-session/junit.xml");

#[tokio::test(flavor = "multi_thread")]
async fn a_user_logs_in_and_switches_to_a_customer() {
    let assay = Installation::shared().await;
    let anonymous = assay.anonymous();

    let wrong = json!({"Email": ADMIN, "Password": "guess"});
    anonymous.post("/api/token/login", wrong).await.is_problem(401, "unauthenticated");
    anonymous.get("/api/projects").await.is_problem(401, "unauthenticated");

    let customer = assay.api.get("/api/management/customers/current").await.ok();
    let groups: Vec<_> = customer["UserGroups"].as_array().unwrap().iter().collect();
    assert!(groups.iter().any(|group| group["Name"] == "Administrators"), "{customer}");

    let refined = assay.api.post("/api/token/refine", json!({"CustomerId": id(&customer)})).await;
    let refined = anonymous.with_token(refined.ok()["token"].as_str().unwrap());
    assert_eq!(refined.get("/api/management/customers/current").await.ok(), customer);
    let alias = json!({"email": ADMIN.to_uppercase(), "Password": PASSWORD});
    anonymous.post("/api/token/login", alias).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn results_update_the_execution_its_test_cases_and_notifications() {
    let world = World::start().await;
    let api = &world.api;
    let nats = async_nats::connect(world.nats_url()).await.unwrap();
    let mut notifications = nats.subscribe("assay.notifications.>").await.unwrap();
    nats.flush().await.unwrap();

    let project = create_project(api).await;
    let set = create_set_with_two_cases(api, &project).await;
    let execution = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
    let execution = execution.created();
    assert_eq!(execution["Status"], "Running");
    assert_eq!(execution["SoftwareName"], "Rocket OS");
    assert_eq!(execution["Statistic"]["TestCasesPending"], 2);
    let at = format!("{project}/executions/{}", id(&execution));

    let results = json!([result("LOGIN-1", "Passed", 2.5), result("LOGIN-2", "Failed", 1.5)]);
    let counted = api.post(&format!("{at}/results"), results.clone()).await.ok();
    assert_eq!(counted, json!({"Accepted": 2, "Duplicates": 0, "Notes": []}));
    let counted = api.post(&format!("{at}/results"), results).await.ok();
    assert_eq!(counted, json!({"Accepted": 0, "Duplicates": 2, "Notes": []}));
    api.post(&format!("{at}/complete"), json!({})).await.ok();

    let execution = api.get(&at).await.ok();
    assert_eq!(
        (&execution["Status"], &execution["Result"]),
        (&json!("Completed"), &json!("Failed"))
    );
    assert_eq!(execution["Statistic"]["TestCasesPassed"], 1);
    for report in execution["TestReports"].as_array().unwrap() {
        assert_report_is_the_same_everywhere(api, &project, report).await;
    }

    let case = eventually("the projection into the test case", || async {
        let cases = api.get(&format!("{project}/testcases?q=LOGIN-2")).await.ok();
        cases.as_array().unwrap().first().filter(|case| case["LastResult"] == "Failed").cloned()
    })
    .await;
    assert_eq!(case["LastReportStatus"], "InReview");
    assert_eq!(case["LastSwIdentifier"], "1.2.3");
    let statistic = json!({"ExecutionNumber": 1, "Result": "Failed", "AverageDurationInSec": 1.5});
    assert_eq!(case["ExecutionStatistics"], json!([statistic]));
    eventually("the projection into the test set", || async {
        let set = api.get(&set).await.ok();
        (set["LastExecutionStatistic"]["TestCasesFailed"] == 1).then_some(())
    })
    .await;

    let event = loop {
        let message = notifications.next().await.unwrap();
        let event: Value = serde_json::from_slice(&message.payload).unwrap();
        if message.subject.ends_with(".testset.completed") {
            break event;
        }
    };
    assert_eq!(
        (&event["specversion"], &event["data"]["TargetId"]),
        (&json!("1.0"), &execution["Id"])
    );
    let notifications = api.get("/api/notifications").await.ok();
    let kept = notifications.as_array().unwrap().iter().find(|kept| kept["Id"] == event["id"]);
    assert_eq!(kept, Some(&event["data"]));
    world.stop().await;
}

/// Creates a set with two ready test cases, a subject and an environment; returns its path.
async fn create_set_with_two_cases(api: &Api, project: &str) -> String {
    let subject = json!({
        "Name": "Rocket OS", "Identifier": "1.2.3", "SubjectType": "Webpage",
        "Uri": "https://rocket.example.org/",
    });
    let subject = api.post(&format!("{project}/subjects"), subject).await.created();
    let environment = json!({"Name": "Launch pad", "TargetGroup": "pads", "Password": "sesame"});
    let environment = api.post(&format!("{project}/environments"), environment).await.created();
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Smoke"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    let selection = json!({
        "SelectedSubjectId": subject["Id"], "SelectedEnvironmentId": environment["Id"],
    });
    api.put(&set, selection).await.ok();

    let mut cases = Vec::new();
    for identifier in ["LOGIN-1", "LOGIN-2"] {
        let case = json!({"Name": "Log in", "Description": "", "Identifier": identifier});
        let case = api.post(&format!("{project}/testcases"), case).await.created();
        let plans = format!("{project}/testcases/{}/testplans", id(&case));
        let plan = api.post(&plans, json!({"Instances": 1, "TestType": "Default"})).await.created();
        let ready = json!({"Status": "ReadyForExecution", "DataVersion": plan["DataVersion"]});
        api.put(&format!("{plans}/{}", id(&plan)), ready).await.ok();
        cases.push(json!({"Id": case["Id"]}));
    }
    let included = api.put(&format!("{set}/testcases"), json!(cases)).await.ok();
    assert_eq!(included["TestCases"].as_array().unwrap().len(), 2);
    set
}

fn result(identifier: &str, result: &str, seconds: f64) -> Value {
    json!({
        "Identifier": identifier, "Result": result, "DurationInSec": seconds,
        "Steps": [
            {"StepNr": 1, "TestInput": "Open the page", "Result": "Passed", "DurationInSec": 0.5},
            {"StepNr": 2, "TestInput": "Press the button", "Result": result,
             "ActualResult": "A click", "DurationInSec": seconds - 0.5},
        ],
    })
}

/// Asserts that both URLs of a report, its instance and its statistics agree.
async fn assert_report_is_the_same_everywhere(api: &Api, project: &str, report: &Value) {
    let at = |field: &str| report[field].as_str().unwrap();
    let reports = format!(
        "{project}/testcases/{}/testplans/{}/testreports",
        at("TestCaseId"),
        at("TestPlanId"),
    );
    let path = format!("{reports}/{}", id(report));
    assert_eq!(&api.get(&path).await.ok(), report);
    let permanent = format!("/api/projects/0/testcases/0/testplans/0/testreports/{}", id(report));
    assert_eq!(&api.get(&permanent).await.ok(), report);

    let instances = api.get(&format!("{path}/instances")).await.ok();
    let [instance] = &instances.as_array().unwrap()[..] else { panic!("{instances}") };
    assert_eq!(instance["Result"], report["Result"]);
    let instance = format!("{path}/instances/{}", id(instance));
    let steps = &api.get(&instance).await.ok()["Steps"];
    assert_eq!(steps[1]["TestInput"], "Press the button");
    assert_eq!(steps[1]["Result"], report["Result"]);
    let statistics = api.get(&format!("{instance}/stats")).await.ok();
    assert_eq!(statistics["Median"], report["AverageDurationInSec"]);
    assert_eq!(statistics["TotalCount"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_junit_report_becomes_a_completed_execution() {
    let world = World::start().await;
    let project = create_project(&world.api).await;
    let set = json!({"Name": "Nightly"});
    let set = world.api.post(&format!("{project}/testsets"), set).await.created();
    let set = format!("{project}/testsets/{}", id(&set));

    let execution = upload(&world.api, &set, JUNIT).await.created();
    assert_eq!(execution["Status"], "Completed");
    let reports = execution["TestReports"].as_array().unwrap();
    assert_eq!(reports.len(), JUNIT.matches("<testcase ").count());
    let failed: Vec<_> = reports.iter().filter(|report| report["Result"] == "Failed").collect();
    assert_eq!(failed.len(), JUNIT.matches("<failure").count());
    for report in failed {
        let name = report["TestCaseName"].as_str().unwrap();
        assert!(JUNIT.contains(name), "{name} is not in the file");
    }

    let again = upload(&world.api, &set, JUNIT).await.created();
    let numbers = again["TestReports"].as_array().unwrap().iter();
    assert!(numbers.clone().all(|report| report["ExecutionNumber"] == 2), "{again}");
    let cases = world.api.get(&format!("{project}/testcases")).await.ok();
    assert_eq!(cases.as_array().unwrap().len(), reports.len());

    let world = world.restart().await;
    let kept = world.api.get(&format!("{project}/executions")).await.ok();
    let kept: Vec<_> = kept.as_array().unwrap().iter().map(id).collect();
    assert_eq!(kept, [id(&again), id(&execution)]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reporter_completes_its_part_by_a_parameter_or_a_body_and_nothing_if_it_is_misspelt() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let names = json!({"Project": "Shop", "TestSet": "Nightly", "Reporter": "one", "Reporters": 2});
    let execution = api.post("/api/executions", names).await.created();
    let complete = format!("/api/executions/{}/complete", id(&execution));
    let ended = async |query: &str, body: Value| {
        api.post(&format!("{complete}{query}"), body).await.ok()["Status"].clone()
    };

    for (query, body) in [
        ("?Reporter=one", json!({})),
        ("?reporter=", json!({})),
        ("", json!({"Reportr": "one"})),
        ("", json!({"Reporter": ""})),
        ("?reporter=one", json!({"Reporter": "two"})),
    ] {
        api.post(&format!("{complete}{query}"), body).await.is_problem(422, "invalid");
    }
    assert_eq!(ended("", json!({"Reporter": "one"})).await, "Running");
    assert_eq!(ended("?reporter=two", json!({"Reporter": "two"})).await, "Completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_refuse_misspelt_parameters_and_a_reporter_without_a_name() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let names = json!({"Project": "Shop", "TestSet": "Nightly", "Reporter": "one", "Reporters": 2});
    let execution = api.post("/api/executions", names).await.created();
    let text = |field: &str| execution[field].as_str().unwrap().to_owned();
    let (project, set) = (text("ProjectId"), text("TestSetId"));
    let results = format!("/api/projects/{project}/testsets/{set}/results");
    let reports = format!("/api/executions/{}/reports", id(&execution));
    let upload = async |path: &str| {
        let report = r#"<testsuite name="s"><testcase name="t"/></testsuite>"#;
        let request = api.request(Method::POST, path).header("Content-Type", "application/xml");
        Answer::of(request.body(report)).await
    };

    for path in ["?Reporter=one", "?reporter=", "?varient=x"] {
        upload(&format!("{reports}{path}")).await.is_problem(422, "invalid");
    }
    for path in ["?Branch=main", "?reporter=one"] {
        upload(&format!("{results}{path}")).await.is_problem(422, "invalid");
    }
    assert_eq!(upload(&format!("{reports}?reporter=one")).await.ok()["Accepted"], 1);
    // Variables of CI systems are often empty.
    let uploaded = upload(&format!("{results}?branch=&commit=4f3c2b1")).await.created();
    assert_eq!((&uploaded["Branch"], &uploaded["Commit"]), (&Value::Null, &json!("4f3c2b1")));
}
