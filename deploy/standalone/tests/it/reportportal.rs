//! Agents of ReportPortal: their recorded conversations, replayed.

mod replay;

use std::time::Duration;

use assay_testkit::{Answer, Api};
use futures::future::join_all;
use reqwest::{Method, header::AUTHORIZATION};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::replay::{Agent, Order, expected, generated, recorded};
use crate::{
    customer::Customer,
    process::{PASSWORD, Program, command, data_dir},
    world::id,
};

/// Maximum time until the results of a launch are stored, which takes about six seconds unless many
/// others are.
const CLOSING: Duration = Duration::from_mins(1);

/// Returns the token of an agent.
pub(crate) async fn agent_token(api: &Api) -> String {
    let body = json!({"Name": "Agents", "UsagePermission": "Read, Write, Execute"});
    let token = api.post("/api/users/current/tokens", body).await.created();
    token["Secret"].as_str().unwrap().to_owned()
}

/// Waits until the execution that a link leads to has ended, and returns it.
async fn ended(api: &Api, project: &str, link: &str) -> Value {
    let execution = link.rsplit('/').next().unwrap();
    let projects = api.get("/api/projects").await.ok();
    let found = projects.as_array().unwrap().iter().find(|found| found["Name"] == project);
    let found = found.unwrap_or_else(|| panic!("no {project}: {projects:#}"));
    let path = format!("/api/projects/{}/executions/{execution}", id(found));
    let limit = Instant::now() + CLOSING;
    loop {
        let execution = api.get(&path).await.ok();
        if execution["Status"] == "Completed" {
            return execution;
        }
        assert!(Instant::now() < limit, "the launch has not ended: {execution}");
        sleep(Duration::from_millis(200)).await;
    }
}

/// Returns the counts of an execution, in the order of the README of the recordings.
fn counts(execution: &Value) -> [u64; 5] {
    let statistic = &execution["Statistic"];
    ["Total", "Passed", "Failed", "WithError", "Canceled"]
        .map(|count| statistic[format!("TestCases{count}")].as_u64().unwrap())
}

/// Replays all recordings in an order, each in a project of its own, and checks the counts.
async fn replay_all(order: Order) {
    let customer = Customer::new().await;
    let token = agent_token(&customer.api).await;
    let replay = |(name, expected): (String, [u64; 5])| {
        let (api, agent) = (&customer.api, Agent::new(customer.anonymous(), &token, &name));
        async move {
            let link = agent.replay(recorded(&name), order).await;
            assert_eq!(counts(&ended(api, &name, &link).await), expected, "{name} {order:?}");
        }
    };
    join_all(expected().into_iter().map(replay)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_agents_report_as_to_reportportal() {
    replay_all(Order::Recorded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_may_repeat_requests() {
    replay_all(Order::Repeated).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_and_ends_of_items_may_arrive_in_any_order() {
    replay_all(Order::Reversed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_agents_report_at_once_and_none_is_refused() {
    let customer = Customer::new().await;
    let token = agent_token(&customer.api).await;
    let report = |_| async {
        let agent = Agent::new(customer.anonymous(), &token, "load");
        let link = agent.replay(generated(60), Order::Recorded).await;
        assert_eq!(counts(&ended(&customer.api, "load", &link).await), [60, 60, 0, 0, 0]);
    };
    join_all((0..20).map(report)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_of_a_finished_launch_leads_to_the_page_of_its_execution() {
    let customer = Customer::new().await;
    let agent = Agent::new(customer.anonymous(), &agent_token(&customer.api).await, "shop");
    let link = agent.replay(recorded("vitest"), Order::Recorded).await;
    let execution = ended(&customer.api, "shop", &link).await;
    assert_eq!(execution["Url"], link.as_str());
    assert_eq!(execution["TestSetName"], "VitestNightly");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_form_of_reportportal() {
    let customer = Customer::new().await;
    let token = agent_token(&customer.api).await;
    let send = async |method: Method, path: &str, token: &str, body: Value| {
        let request = customer.anonymous().request(method, path);
        Answer::of(request.header(AUTHORIZATION, format!("bearer {token}")).json(&body)).await
    };
    let start = json!({"name": "Nightly", "startTime": "1795350207932"});
    for (method, path, token, body, status) in [
        (Method::POST, "/api/v1/shop/launch", "wrong", start, 401),
        (Method::POST, "/api/v1/shop/launch", &*token, json!({"name": " "}), 400),
        (Method::POST, "/api/v2/shop/item", &token, json!({"name": "a"}), 400),
        (Method::PUT, "/api/v2/shop/launch/x/finish", &token, json!({}), 404),
        (Method::DELETE, "/api/v1/shop/launch", &token, json!({}), 405),
        (Method::GET, "/api/v1/shop/dashboard", &token, json!({}), 404),
    ] {
        let answer = send(method, path, token, body).await;
        let error = answer.expect(status).json();
        assert!(error["errorCode"].is_u64() && error["message"].is_string(), "{error}");
        let has_remedy = error["message"].as_str().unwrap().contains("use an API token of Assay");
        assert_eq!(has_remedy, status == 401, "{error}");
    }
    let user = send(Method::GET, "/api/v1/user", &token, json!({})).await.ok();
    assert_eq!(user["email"], customer.api.get("/api/users/current").await.ok()["Email"]);
    let info = customer.anonymous().get("/api/info").await.ok();
    assert_eq!(info["build"]["version"], "5.14.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn results_survive_kills_before_and_after_the_end_of_a_launch() {
    let data = data_dir();
    let mut program = Program::start(command(&data)).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    let token = agent_token(&api).await;
    let mut links = Vec::new();
    for name in ["pytest-default", "playwright"] {
        let agent = Agent::new(Api::new(format!("http://{}", program.address)), &token, name);
        let (before, finish) = replay::split_at_finish(recorded(name));
        let ids = agent.send_all(before).await;
        program.child.kill().await.unwrap();
        program = Program::start(command(&data)).await;
        let agent =
            Agent::new(Api::new(format!("http://{}", program.address)), &token, name).knowing(ids);
        links.push((name, agent.replay(finish, Order::Recorded).await));
    }
    program.child.kill().await.unwrap();
    program = Program::start(command(&data)).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    let all = expected();
    for (name, link) in links {
        let expected = all.iter().find(|(other, _)| other == name).unwrap().1;
        assert_eq!(counts(&ended(&api, name, &link).await), expected, "{name}");
    }
    assert!(program.terminate().await.success());
}
