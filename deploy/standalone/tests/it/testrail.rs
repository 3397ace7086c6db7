//! Clients of TestRail: their recorded conversations, replayed, and the rules of the interface.

mod client;
mod replay;
mod tools;

use futures::future::join_all;
use reqwest::{Method, redirect::Policy};
use serde_json::{Value, json};

use self::{
    client::{Client, counts, number},
    replay::{Replay, expected},
};
use crate::customer::Customer;

const RECORDINGS: [&str; 3] = ["trcli-junit", "trcli-junit-twice", "playwright-testrail-reporter"];

/// Replays all recordings, each in a project of its own, and checks the counts of their runs.
async fn replay_all(times: usize) {
    let customer = Customer::new().await;
    join_all(RECORDINGS.map(async |recording| {
        let client = Client::new(&customer, recording).await;
        let replay = Replay::of(&client, recording, times).await;
        let mut found = Vec::new();
        for run in &replay.runs {
            found.push(counts(&client.execution(run).await));
        }
        assert_eq!(found, expected(recording), "{recording}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_clients_report_as_to_testrail() {
    replay_all(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_may_repeat_requests() {
    replay_all(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_that_are_repeated_add_no_test_cases() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    Replay::of(&client, "trcli-junit-twice", 1).await;
    let identifiers = client.identifiers().await;
    assert_eq!(identifiers.len(), 10, "{identifiers:?}");
    Replay::of(&client, "trcli-junit-twice", 1).await;
    assert_eq!(client.identifiers().await, identifiers);
    assert_eq!(client.executions().await.len(), 8);
    let sections = client.get(&format!("get_sections/{}", client.project)).await;
    let names: Vec<&str> = sections["sections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|section| section["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Existing", "Test cases", "pytest", "login"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_an_execution_until_it_is_closed() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    let replay = Replay::of(&client, "trcli-junit", 1).await;
    let execution = client.execution(&replay.runs[0]).await;
    assert_eq!(execution["TestSetName"], "Nightly 42");
    assert_eq!(
        (&execution["Status"], &execution["Result"]),
        (&json!("Completed"), &json!("Failed"))
    );

    let run = client.get(&format!("get_runs/{}", client.project)).await["runs"][0].clone();
    assert_eq!(run["is_completed"], true);
    let tests = client.get(&format!("get_tests/{}", run["id"])).await;
    assert_eq!(tests["size"], 8);
    let refused = client
        .call(
            Method::POST,
            &format!("add_results_for_cases/{}", run["id"]),
            Some(&json!({"results": [{"case_id": tests["tests"][0]["case_id"], "status_id": 1}]})),
        )
        .await;
    assert!(refused.expect(400).json()["error"].as_str().unwrap().contains("has ended"));
}

/// Adds test cases, and returns their numbers.
async fn add_cases(client: &Client, identifiers: &[&str]) -> Vec<i64> {
    let section =
        client.post(&format!("add_section/{}", client.project), json!({"name": "Cart"})).await;
    let add = |identifier: &&str| {
        let body = json!({"title": *identifier, "custom_automation_id": *identifier});
        let call = format!("add_case/{}", section["id"]);
        async move { number(&client.post(&call, body).await["id"]) }
    };
    join_all(identifiers.iter().map(add)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn test_cases_that_are_added_at_once_are_added_once() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    let numbers = add_cases(&client, &["pays"; 8]).await;
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    assert_eq!(client.identifiers().await, ["pays"]);
    let case = client.get(&format!("get_case/{}", numbers[0])).await;
    assert_eq!((&case["title"], &case["custom_automation_id"]), (&json!("pays"), &json!("pays")));
    let case = client.post(&format!("update_case/{}", numbers[0]), json!({"refs": "SHOP-7"})).await;
    assert_eq!((&case["id"], &case["refs"]), (&json!(numbers[0]), &json!("SHOP-7")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_further_result_is_an_attempt_and_files_are_linked() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    let cases = add_cases(&client, &["pays"]).await;
    let run = client.post(&format!("add_run/{}", client.project), json!({"name": "Nightly"})).await;
    let call = format!("add_result_for_case/{}/{}", run["id"], cases[0]);
    let failed = client.post(&call, json!({"status_id": 5, "comment": "broken"})).await;
    client.attach(number(&failed["id"]), "shot.png", "a picture").await;
    let passed = client.post(&call, json!({"status_id": 1})).await;
    assert_eq!(failed["test_id"], passed["test_id"]);
    let call = format!("add_result/{}", passed["test_id"]);
    client.post(&call, json!({"status_id": 1, "elapsed": "3s"})).await;

    let execution = client.execution(&run["url"]).await;
    let report = &execution["TestReports"][0];
    assert_eq!((&report["Result"], &report["IsFlaky"]), (&json!("Passed"), &json!(true)));
    let instance = client.instance(&execution, "pays").await;
    assert_eq!(instance["Attempt"], 3);
    let link = instance["Attempts"][0]["Steps"][0]["Screenshots"][0].as_str().unwrap();
    let path = link.split_once("/api/").unwrap().1;
    let file = customer.anonymous().get(&format!("/api/{path}")).await;
    assert_eq!(file.body, b"a picture");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_pages_of_250() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    let cases: Vec<Value> = (0..601)
        .map(|case| json!({"Name": format!("Case {case}"), "Identifier": format!("case.{case}")}))
        .collect();
    let path = format!("/api/projects/{}/testcases/import", client.project_id);
    client.assay.post(&path, Value::Array(cases)).await.ok();

    let first = format!("get_cases/{}&suite_id=1", client.project);
    let (mut link, mut sizes, mut by_link) = (first.clone(), Vec::new(), Vec::new());
    loop {
        let page = client.get(&link).await;
        sizes.push(page["size"].as_u64().unwrap());
        by_link.extend(page["cases"].as_array().unwrap().clone());
        let Some(next) = page["_links"]["next"].as_str() else { break };
        link = next.strip_prefix("/api/v2/").unwrap().to_owned();
    }
    assert_eq!(sizes, [250, 250, 101]);
    let mut by_offset = Vec::new();
    for offset in [0, 250, 500, 750] {
        let page = client.get(&format!("{first}&offset={offset}&limit=250")).await;
        by_offset.extend(page["cases"].as_array().unwrap().clone());
    }
    assert_eq!(by_link, by_offset);
    let mut numbers: Vec<i64> = by_link.iter().map(|case| number(&case["id"])).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 601);

    let few = client.get(&format!("get_cases/{}&limit=2&offset=1", client.project)).await;
    assert_eq!((few["size"].as_u64(), few["limit"].as_u64()), (Some(2), Some(2)));
    assert_eq!(few["cases"][0], by_link[1]);
    let next = few["_links"]["next"].as_str().unwrap();
    assert!(next.contains("&limit=2&offset=3&cursor="), "{next}");
    assert!(few["_links"]["prev"].as_str().unwrap().ends_with("&limit=2&offset=0"));

    let run = json!({"name": "All", "include_all": false, "case_ids": numbers});
    let run = client.post(&format!("add_run/{}", client.project), run).await;
    let tests = client.get(&format!("get_tests/{}&offset=500", run["id"])).await;
    assert_eq!((tests["size"].as_u64(), &tests["tests"][0]["status_id"]), (Some(101), &json!(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_form_of_testrail() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    let project = client.project;
    let run = client.post(&format!("add_run/{project}"), json!({"name": "Nightly"})).await;
    let results = format!("add_results_for_cases/{}", run["id"]);
    let unknown = json!({"results": [{"case_id": 7, "status_id": 1}]});
    let untested = json!({"results": [{"case_id": 7, "status_id": 3}]});
    let long = json!({"name": "a", "description": "x".repeat(9 << 10)});
    for (method, call, body, status) in [
        (Method::GET, "get_suites/99".to_owned(), None, 400),
        (Method::GET, "get_suites/x".to_owned(), None, 400),
        (Method::GET, "get_run/99".to_owned(), None, 400),
        (Method::GET, "get_dashboards".to_owned(), None, 404),
        (Method::POST, "get_projects".to_owned(), Some(json!({})), 404),
        (Method::DELETE, "get_projects".to_owned(), None, 404),
        (Method::GET, format!("get_cases/{project}&offset=-1"), None, 400),
        (Method::POST, format!("add_run/{project}"), Some(json!({})), 400),
        (Method::POST, format!("add_run/{project}"), Some(json!([])), 400),
        (Method::POST, format!("add_section/{project}"), Some(json!({"name": " "})), 400),
        (Method::POST, format!("add_section/{project}"), Some(long), 413),
        (Method::POST, "add_case/99".to_owned(), Some(json!({"title": "a"})), 400),
        (Method::POST, results.clone(), Some(unknown), 400),
        (Method::POST, results.clone(), Some(untested), 400),
        (Method::POST, results.clone(), Some(json!({})), 400),
        (Method::POST, "add_attachment_to_result/99".to_owned(), Some(json!({})), 400),
    ] {
        let answer = client.call(method.clone(), &call, body.as_ref()).await;
        let error = answer.expect(status).json();
        let keys: Vec<&String> = error.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["error"], "{method} {call}");
    }
    let stranger = client.with_token("wrong");
    let answer = stranger.call(Method::GET, "get_projects", None).await;
    answer.expect(401);
    assert!(answer.headers["www-authenticate"].to_str().unwrap().starts_with("Basic"));
    assert!(answer.json()["error"].is_string());
    let basic = customer.anonymous().request(Method::GET, "/api/projects");
    let basic = basic.basic_auth("ada@example.org", Some(&client.token));
    // Other paths accept no Basic authentication.
    assay_testkit::Answer::of(basic).await.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_a_run_may_have_any_type() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    let case = add_cases(&client, &["pays"]).await[0];
    for (include_all, cases) in [
        (json!(0), json!("C1")),
        (json!("no"), json!([])),
        (json!(false), json!({ "1": 1 })),
        (json!(false), json!([case, "C7", null, 1.5])),
    ] {
        let run = json!({"name": "Nightly", "include_all": include_all, "case_ids": cases});
        let run = client.post(&format!("add_run/{}", client.project), run).await;
        let results = json!({"results": [{"case_id": case, "status_id": 1}]});
        let added = client.post(&format!("add_results_for_cases/{}", run["id"]), results).await;
        assert_eq!(added[0]["status_id"], 1, "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_what_assay_does_not_have_are_served() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    for (call, count) in [
        ("get_priorities".to_owned(), 1),
        ("get_case_types".to_owned(), 1),
        ("get_result_fields".to_owned(), 0),
        (format!("get_templates/{}", client.project), 1),
        (format!("get_statuses/{}", client.project), 5),
    ] {
        assert_eq!(client.get(&call).await.as_array().unwrap().len(), count, "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_may_not_report() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    let reader = customer.create_member("reader", "Login, Read").await;
    let reader = client.with_token(reader.api.token());
    let answer = reader.call(Method::GET, "get_projects", None).await;
    assert!(answer.expect(403).json()["error"].as_str().unwrap().contains("Execute"));
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_another_customer_are_unknown() {
    let (one, other) = (Customer::new().await, Customer::new().await);
    let client = Client::new(&one, "Shop").await;
    // The other customer has fewer records, so these numbers are unknown there.
    let cases = add_cases(&client, &["a", "b"]).await;
    for _ in 0..2 {
        client.post(&format!("add_run/{}", client.project), json!({"name": "Nightly"})).await;
    }
    let stranger = Client::new(&other, "Shop").await;
    assert_eq!(stranger.project, client.project, "each customer counts for itself");
    for call in [format!("get_case/{}", cases[1]), "get_run/2".to_owned(), "get_tests/1".to_owned()]
    {
        stranger.call(Method::GET, &call, None).await.expect(400);
    }
    let results = json!({"results": [{"case_id": cases[0], "status_id": 1}]});
    let call = "add_results_for_cases/1";
    stranger.call(Method::POST, call, Some(&results)).await.expect(400);
    let run = stranger.post(&format!("add_run/{}", stranger.project), json!({"name": "Own"})).await;
    let call = format!("add_results_for_cases/{}", run["id"]);
    stranger.call(Method::POST, &call, Some(&results)).await.expect(400);
    assert!(stranger.identifiers().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_that_clients_print_leads_to_the_page_of_the_run() {
    let customer = Customer::new().await;
    let client = Client::new(&customer, "Shop").await;
    let run = client.post(&format!("add_run/{}", client.project), json!({"name": "Nightly"})).await;
    let browser = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let link = format!("{}/index.php?/runs/view/{}", customer.url(), run["id"]);
    let follow = async |cookie: String| {
        let answer = browser.get(&link).header("Cookie", cookie).send().await.unwrap();
        assert_eq!(answer.status(), 303);
        answer.headers()["location"].to_str().unwrap().to_owned()
    };
    let next = "%2Findex.php%3F%2Fruns%2Fview%2F1";
    assert_eq!(follow(String::new()).await, format!("/login?next={next}"));
    let session = format!("assay={}", customer.api.token());
    assert_eq!(follow(session).await, run["url"].as_str().unwrap());
}
