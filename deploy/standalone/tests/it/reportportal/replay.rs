//! Replays of recorded conversations.

use std::{collections::HashMap, fs, path::PathBuf, sync::Mutex, time::Duration};

use assay_testkit::{Answer, Api};
use reqwest::{
    Method,
    header::AUTHORIZATION,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

/// Time after which a request counts as held: agents in Python give up after 10 seconds, on machines that are not as busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The order in which the requests of a recording are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    Recorded,
    /// Requests about items are sent twice.
    Repeated,
    /// Items start in their order. Then their logs and their ends follow in reverse.
    Reversed,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../services/kit/formats/tests/reportportal")
}

/// Returns the requests of a recording that the recorder accepted.
pub(super) fn recorded(name: &str) -> Vec<Value> {
    let lines = fs::read_to_string(folder().join(format!("{name}.ndjson"))).unwrap();
    let mut requests: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    requests.retain(|request| request["status"].as_u64().unwrap() < 300);
    if !requests.iter().any(|request| is(request, "POST", "/launch")) {
        // Another process has started the launch of this one, and finishes it.
        let launch = requests.iter().find_map(|request| request["json"]["launchUuid"].as_str());
        let launch = launch.unwrap().to_owned();
        let start = json!({"name": "External", "uuid": launch});
        requests.insert(0, request("POST", "/api/v2/shop/launch", 201, &start));
        let finish = format!("/api/v2/shop/launch/{launch}/finish");
        requests.push(request("PUT", &finish, 200, &json!({})));
    }
    requests
}

/// Returns the requests of a launch with this many tests, each of which logs a line.
pub(super) fn generated(tests: usize) -> Vec<Value> {
    let (launch, times) = (Uuid::now_v7().to_string(), 1_795_350_468_038_usize..);
    let with_id = |id: &str, mut request: Value| {
        request["id"] = json!(id);
        request
    };
    let start = json!({"name": "Load"});
    let mut requests = vec![with_id(&launch, request("POST", "/api/v2/shop/launch", 201, &start))];
    for (number, time) in (0..tests).zip(times) {
        let item = Uuid::now_v7().to_string();
        let start = json!({
            "launchUuid": launch, "name": format!("test {number}"), "type": "STEP",
            "startTime": time, "codeRef": format!("load.test_{number}"),
        });
        requests.push(with_id(&item, request("POST", "/api/v2/shop/item", 201, &start)));
        let finish = json!({"launchUuid": launch, "status": "PASSED", "endTime": time});
        requests.push(request("PUT", &format!("/api/v2/shop/item/{item}"), 200, &finish));
        let log = json!({"launchUuid": launch, "itemUuid": item, "level": "INFO", "message": "a"});
        requests.push(request("POST", "/api/v2/shop/log", 201, &log));
    }
    let finish = format!("/api/v2/shop/launch/{launch}/finish");
    requests.push(request("PUT", &finish, 200, &json!({})));
    requests
}

fn request(method: &str, path: &str, status: u16, json: &Value) -> Value {
    json!({"method": method, "path": path, "status": status, "json": json})
}

/// Returns the names of the recordings and the expected numbers of test cases: all, passed, failed,
/// with an error and skipped.
pub(super) fn expected() -> Vec<(String, [u64; 5])> {
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    let recording = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[0].strip_prefix('`')?.strip_suffix(".ndjson`")?;
        let count = |cell: usize| cells[cell].parse().unwrap();
        Some((name.to_owned(), [2, 3, 4, 5, 6].map(count)))
    };
    readme.lines().filter_map(recording).collect()
}

/// Returns the requests before the end of the launch, and the others.
pub(super) fn split_at_finish(mut requests: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    let is_finish = |request: &Value| is(request, "PUT", "/finish");
    let finish = requests.iter().position(is_finish).unwrap();
    let rest = requests.split_off(finish);
    (requests, rest)
}

fn is(request: &Value, method: &str, end: &str) -> bool {
    let path = request["path"].as_str().unwrap().trim_end_matches('/');
    request["method"] == method && path.ends_with(end)
}

/// Whether a request is about an item or a log.
fn is_entry(request: &Value) -> bool {
    let path = request["path"].as_str().unwrap();
    path.contains("/item") || path.ends_with("/log")
}

/// An agent that reports to a project.
pub(super) struct Agent {
    api: Api,
    token: String,
    project: String,
    /// The ids of the recording with those that they stand for.
    ids: Mutex<HashMap<String, String>>,
}

impl Agent {
    pub(super) fn new(api: Api, token: &str, project: &str) -> Self {
        let (token, project) = (token.to_owned(), project.to_owned());
        Self { api, token, project, ids: Mutex::default() }
    }

    /// Returns the agent with ids that it knows already.
    pub(super) fn knowing(self, ids: HashMap<String, String>) -> Self {
        Self { ids: Mutex::new(ids), ..self }
    }

    /// Sends requests, and returns the ids that it knows then.
    pub(super) async fn send_all(&self, requests: Vec<Value>) -> HashMap<String, String> {
        for request in &requests {
            self.send(request).await;
        }
        self.ids.lock().unwrap().clone()
    }

    /// Sends the requests of a recording, and returns the link to the execution.
    pub(super) async fn replay(&self, requests: Vec<Value>, order: Order) -> String {
        let (mut link, mut launches) = (None, Vec::new());
        for mut request in ordered(requests, order) {
            if is(&request, "POST", "/launch/merge") {
                request["json"]["launches"] = self.numbers(&launches).await;
            }
            let answer = self.send(&request).await;
            if order == Order::Repeated && is_entry(&request) {
                // The agent keeps the id of the first answer.
                let known = self.ids.lock().unwrap().clone();
                self.send(&request).await;
                *self.ids.lock().unwrap() = known;
            }
            if is(&request, "POST", "/launch") {
                launches.push(answer["id"].as_str().unwrap().to_owned());
            }
            if is(&request, "PUT", "/finish") && order == Order::Repeated {
                assert_eq!(self.send(&request).await["link"], answer["link"]);
            }
            link = answer["link"].as_str().map(str::to_owned).or(link);
        }
        link.expect("a finished launch")
    }

    /// Returns the numbers of launches.
    async fn numbers(&self, launches: &[String]) -> Value {
        let path = format!("/api/v1/shop/launch?filter.in.uuid={}", launches.join(","));
        let listed = self.send(&request("GET", &path, 200, &json!({}))).await;
        listed["content"].as_array().unwrap().iter().map(|launch| launch["id"].clone()).collect()
    }

    async fn send(&self, recorded: &Value) -> Value {
        let method: Method = recorded["method"].as_str().unwrap().parse().unwrap();
        let path = self.renamed(recorded["path"].as_str().unwrap());
        let path = path.replacen("/shop/", &format!("/{}/", self.project), 1);
        let request = self.api.request(method, &path);
        let request = request.header(AUTHORIZATION, format!("bearer {}", self.token));
        let request = match recorded["parts"].as_array() {
            Some(parts) => request.multipart(self.form(parts)),
            None => request.json(&self.renamed_json(&recorded["json"])),
        };
        let answer = timeout(PATIENCE, Answer::of(request)).await.expect("an answer in time");
        let status = u16::try_from(recorded["status"].as_u64().unwrap()).unwrap();
        let body = answer.expect(status).json();
        if let (Some(id), Some(new)) = (recorded["id"].as_str(), body["id"].as_str()) {
            self.ids.lock().unwrap().insert(id.to_owned(), new.to_owned());
        }
        body
    }

    fn form(&self, parts: &[Value]) -> Form {
        parts.iter().fold(Form::new(), |form, recorded| {
            let text = match &recorded["json"] {
                Value::Null => recorded["text"].as_str().unwrap().to_owned(),
                json => self.renamed_json(json).to_string(),
            };
            let mut part = Part::text(text);
            if let Some(name) = recorded["filename"].as_str() {
                part = part.file_name(name.to_owned());
            }
            if let Some(media_type) = recorded["type"].as_str() {
                part = part.mime_str(media_type).unwrap();
            }
            form.part(recorded["name"].as_str().unwrap().to_owned(), part)
        })
    }

    fn renamed_json(&self, recorded: &Value) -> Value {
        serde_json::from_str(&self.renamed(&recorded.to_string())).unwrap()
    }

    /// Replaces the ids of the recording.
    fn renamed(&self, text: &str) -> String {
        const LENGTH: usize = 36;
        let ids = self.ids.lock().unwrap();
        let (mut renamed, mut rest) = (String::new(), text);
        while !rest.is_empty() {
            let id = rest.get(..LENGTH).filter(|id| Uuid::try_parse(id).is_ok());
            let length = id.map_or_else(|| rest.chars().next().unwrap().len_utf8(), str::len);
            let (part, others) = rest.split_at(length);
            renamed.push_str(ids.get(part).map_or(part, String::as_str));
            rest = others;
        }
        renamed
    }
}

fn ordered(requests: Vec<Value>, order: Order) -> Vec<Value> {
    if order != Order::Reversed {
        return requests;
    }
    // Each launch for itself: one recording has two.
    let (mut ordered, mut late) = (Vec::new(), Vec::new());
    for request in requests {
        if is_entry(&request)
            && !(request["method"] == "POST" && request["path"].as_str().unwrap().contains("/item"))
        {
            late.push(request);
            continue;
        }
        if is(&request, "PUT", "/finish") {
            ordered.extend(late.drain(..).rev());
        }
        ordered.push(request);
    }
    ordered.extend(late);
    ordered
}
