//! Clients that repeat each request until it is acknowledged, and their ledger.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use assay_testkit::Api;
use futures::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::receivers::Receiver;
use crate::{
    fleet::Fleet,
    world::{ADMIN, PASSWORD, create_project, id},
};

/// Clients, each with a project of its own.
const CLIENTS: usize = 4;

/// Tests of each report.
pub(super) const TESTS: usize = 12;

/// Pause after an answer that is not final, and between two requests of a client.
const PAUSE: Duration = Duration::from_millis(50);

/// Time after which a client sends a request to the other gateway.
const PATIENCE: Duration = Duration::from_secs(4);

/// Every so many uploads, a client reviews a report and logs in.
const ROUND: usize = 5;

/// The load, and the ledger of what was acknowledged.
pub(super) struct Load {
    gateways: Vec<Api>,
    clients: Vec<Client>,
    turn: AtomicUsize,
    ledger: Mutex<Acknowledged>,
}

/// The paths of a client's project and test set.
struct Client {
    project: String,
    set: String,
}

/// Acknowledged writes, and the number of answers by status; 0 stands for requests without an answer.
#[derive(Default)]
pub(super) struct Acknowledged {
    /// Ids of executions.
    pub(super) executions: BTreeSet<String>,
    /// Ids of test reports.
    pub(super) reports: BTreeSet<String>,
    /// Paths of reviewed reports.
    pub(super) reviewed: BTreeSet<String>,
    pub(super) answers: BTreeMap<u16, usize>,
    /// Answers that no outage explains.
    pub(super) refused: Vec<String>,
}

impl Load {
    /// Creates projects, and subscribes the administrator and the receivers.
    pub(super) async fn prepare(fleet: &Fleet, receivers: &[Receiver; 2]) -> Self {
        let gateways = fleet.admins().await;
        let api = &gateways[0];
        let mail = json!({"MailWhenExecutionEnds": true});
        api.put("/api/users/current/settings", mail).await.ok();
        for receiver in receivers {
            let events = ["TestCase.Finished", "TestSet.Completed"];
            let hook = json!({"Url": receiver.url(), "Events": events});
            api.post("/api/webhooks", hook).await.created();
        }
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let project = create_project(api).await;
            let set = api.post(&format!("{project}/testsets"), json!({"Name": "All"})).await;
            let set = format!("{project}/testsets/{}", id(&set.created()));
            clients.push(Client { project, set });
        }
        Self { gateways, clients, turn: AtomicUsize::new(0), ledger: Mutex::default() }
    }

    /// Sends requests until cancelled, and then until each that has begun is acknowledged.
    pub(super) async fn run_until(&self, stop: &CancellationToken) {
        join_all(self.clients.iter().map(|client| self.act(client, stop))).await;
    }

    async fn act(&self, client: &Client, stop: &CancellationToken) {
        let mut ticks = interval(PAUSE);
        for number in 0.. {
            ticks.tick().await;
            if stop.is_cancelled() {
                return;
            }
            let execution = self.upload(client, number).await;
            if number.is_multiple_of(ROUND) {
                self.review(client, &execution["TestReports"][0]).await;
                self.log_in().await;
            }
        }
    }

    async fn upload(&self, client: &Client, number: usize) -> Value {
        let (key, report) = (Uuid::now_v7().to_string(), report(number));
        let path = format!("{}/results", client.set);
        let send = |api: &Api| {
            let request = api.request(Method::POST, &path).header("Idempotency-Key", &key);
            request.header("Content-Type", "application/xml").body(report.clone())
        };
        let execution = self.acknowledged(send, 201).await;
        let reports = execution["TestReports"].as_array().into_iter().flatten();
        let mut ledger = self.ledger.lock().unwrap();
        ledger.reports.extend(reports.map(|report| id(report).to_owned()));
        ledger.executions.insert(id(&execution).to_owned());
        execution
    }

    async fn review(&self, Client { project, .. }: &Client, report: &Value) {
        let [case, plan] = ["TestCaseId", "TestPlanId"].map(|name| report[name].as_str().unwrap());
        let own = id(report);
        let path = format!("{project}/testcases/{case}/testplans/{plan}/testreports/{own}");
        let accepted = json!({"Status": "Accepted"});
        self.acknowledged(|api| api.request(Method::PUT, &path).json(&accepted), 200).await;
        self.ledger.lock().unwrap().reviewed.insert(path);
    }

    /// Logs in at one gateway, and uses the token at the others.
    async fn log_in(&self) {
        let body = json!({"Email": ADMIN, "Password": PASSWORD});
        let log_in = |api: &Api| api.request(Method::POST, "/api/token/login").json(&body);
        let token = self.acknowledged(log_in, 200).await;
        let token = token["token"].as_str().unwrap();
        for _ in &self.gateways {
            let read = |api: &Api| api.with_token(token).request(Method::GET, "/api/projects");
            self.acknowledged(read, 200).await;
        }
    }

    /// Sends a request to one gateway after another until it has the expected answer.
    async fn acknowledged(&self, request: impl Fn(&Api) -> RequestBuilder, expected: u16) -> Value {
        let mut ticks = interval(PAUSE);
        loop {
            ticks.tick().await;
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let sent = request(&self.gateways[turn % self.gateways.len()]).timeout(PATIENCE);
            let (status, body) = match sent.send().await {
                Ok(answer) => (answer.status().as_u16(), answer.text().await),
                Err(error) => (0, Err(error)),
            };
            let mut ledger = self.ledger.lock().unwrap();
            // A response may break off.
            let Ok(body) = body else {
                *ledger.answers.entry(0).or_default() += 1;
                continue;
            };
            *ledger.answers.entry(status).or_default() += 1;
            if status == expected {
                return serde_json::from_str(&body).unwrap();
            }
            if ![429, 503].contains(&status) {
                ledger.refused.push(format!("{status} {body}"));
            }
        }
    }

    /// Reads what was acknowledged.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Acknowledged) -> T) -> T {
        read(&self.ledger.lock().unwrap())
    }

    /// The client of the administrator for a gateway.
    pub(super) fn api(&self) -> &Api {
        &self.gateways[0]
    }

    /// The paths of all projects.
    pub(super) fn projects(&self) -> impl Iterator<Item = &str> {
        self.clients.iter().map(|client| client.project.as_str())
    }
}

/// A JUnit report of which some tests fail, for some of them differently each time.
fn report(number: usize) -> String {
    let mut report = String::from(r#"<testsuite name="all">"#);
    for test in 0..TESTS {
        let failure =
            if (number + test).is_multiple_of(4) { r#"<failure message="lost"/>"# } else { "" };
        write!(report, r#"<testcase classname="c" name="t{test}" time="0.5">{failure}</testcase>"#)
            .unwrap();
    }
    report + "</testsuite>"
}
