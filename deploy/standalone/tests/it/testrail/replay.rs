//! Replays of recorded conversations.

use std::{collections::HashMap, fs, path::PathBuf};

use reqwest::Method;
use serde_json::Value;

use super::client::{Client, number};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/testrail")
}

/// The kind of a record, whose ids have a name space of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Project,
    Section,
    Case,
    Run,
    Result,
}

/// Returns the numbers of tests of each run of a recording: all, passed, failed and skipped.
pub(super) fn expected(recording: &str) -> Vec<[u64; 4]> {
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    let counts = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let of_recording = cells[0] == format!("`{recording}.ndjson`");
        let count = |cell: usize| cells[cell].parse().ok();
        let counts = (of_recording && cells.len() == 5).then(|| [1, 2, 3, 4].map(count))?;
        Some(counts.map(Option::unwrap))
    };
    readme.lines().filter_map(counts).collect()
}

/// The numbers that the ids of a recording stand for.
pub(super) struct Replay<'c> {
    client: &'c Client,
    numbers: HashMap<(Kind, i64), i64>,
    /// The links to the pages of the runs.
    pub(super) runs: Vec<Value>,
}

impl<'c> Replay<'c> {
    /// Replays a recording. `times` is how often each request is sent; the first answer counts, as if
    /// a client had not received the others.
    pub(super) async fn of(client: &'c Client, recording: &str, times: usize) -> Self {
        let mut numbers: HashMap<_, _> = [((Kind::Project, 1), client.project)].into();
        // One recording adds test cases to a section that existed before.
        let call = format!("add_section/{}", client.project);
        let section = client.post(&call, serde_json::json!({"name": "Existing"})).await;
        numbers.insert((Kind::Section, 1), number(&section["id"]));
        let mut replay = Self { client, numbers, runs: Vec::new() };
        let lines = fs::read_to_string(folder().join(format!("{recording}.ndjson"))).unwrap();
        for line in lines.lines() {
            replay.send(&serde_json::from_str(line).unwrap(), times).await;
        }
        replay
    }

    async fn send(&mut self, recorded: &Value, times: usize) {
        let path = recorded["path"].as_str().unwrap().split_once("/api/v2/").unwrap().1;
        let (call, parameters) = path.split_once('&').unwrap_or((path, ""));
        let mut parts = call.trim_end_matches('/').split('/');
        let verb = parts.next().unwrap();
        let (of_path, of_answer) = kinds(verb);
        let ids = parts.map(|id| self.number(of_path.unwrap(), id.parse().unwrap()).to_string());
        let call = [verb.to_owned()].into_iter().chain(ids).collect::<Vec<_>>().join("/");
        let call = if parameters.is_empty() { call } else { format!("{call}&{parameters}") };
        let mut body = recorded["json"].clone();
        self.renumber(&mut body);

        // Without an identifier, a repeated request adds another test case.
        let is_unique = verb != "add_case" || !body["custom_automation_id"].is_null();
        for time in 0..if is_unique { times } else { 1 } {
            let answer = if recorded["file"].is_object() {
                let result = call.rsplit('/').next().unwrap().parse().unwrap();
                let of = |field: &str| recorded["file"][field].as_str().unwrap();
                self.client.attach(result, of("name"), of("text")).await
            } else {
                let method: Method = recorded["method"].as_str().unwrap().parse().unwrap();
                let body = (!body.is_null()).then_some(&body);
                self.client.call(method, &call, body).await.ok()
            };
            if time == 0
                && let Some(kind) = of_answer
            {
                self.learn(kind, recorded, &answer);
            }
            if time == 0 && verb == "add_run" {
                self.runs.push(answer["url"].clone());
            }
            self.check(verb, recorded, &answer);
        }
    }

    /// Remembers the numbers in an answer.
    fn learn(&mut self, kind: Kind, recorded: &Value, answer: &Value) {
        let pairs = match (&recorded["answer"], answer) {
            (Value::Array(recorded), Value::Array(answer)) => recorded.iter().zip(answer).collect(),
            (recorded, answer) => vec![(recorded, answer)],
        };
        for (recorded, answer) in pairs {
            self.numbers.insert((kind, number(&recorded["id"])), number(&answer["id"]));
        }
    }

    /// Checks what a client reads of an answer.
    fn check(&self, verb: &str, recorded: &Value, answer: &Value) {
        match verb {
            "get_cases" => {
                for case in recorded["answer"]["cases"].as_array().unwrap() {
                    let expected = self.number(Kind::Case, number(&case["id"]));
                    let cases = answer["cases"].as_array().unwrap();
                    let found = cases.iter().find(|found| found["id"] == expected);
                    let found = found.unwrap_or_else(|| panic!("no {case} in {answer}"));
                    if !case["custom_automation_id"].is_null() {
                        assert_eq!(found["custom_automation_id"], case["custom_automation_id"]);
                    }
                }
            }
            "get_sections" => {
                for section in recorded["answer"]["sections"].as_array().unwrap() {
                    let expected = self.number(Kind::Section, number(&section["id"]));
                    let sections = answer["sections"].as_array().unwrap();
                    let found = sections.iter().find(|found| found["id"] == expected).unwrap();
                    assert_eq!(found["name"], section["name"]);
                }
            }
            "add_results_for_cases" => {
                let pairs = recorded["answer"].as_array().unwrap().iter();
                for (recorded, answer) in pairs.zip(answer.as_array().unwrap()) {
                    let expected = self.number(Kind::Result, number(&recorded["id"]));
                    assert_eq!(answer["id"], expected, "a repeated request has the same numbers");
                }
            }
            "get_run" | "update_run" => assert_eq!(answer["is_completed"], false),
            "close_run" => assert_eq!(answer["is_completed"], true),
            "add_attachment_to_result" => assert!(answer["attachment_id"].is_i64()),
            _ => {}
        }
    }

    /// Replaces the ids of test cases in a body.
    fn renumber(&self, body: &mut Value) {
        if let Some(cases) = body.get_mut("case_ids").and_then(Value::as_array_mut) {
            for case in cases {
                *case = self.number(Kind::Case, number(case)).into();
            }
        }
        if let Some(results) = body.get_mut("results").and_then(Value::as_array_mut) {
            for result in results {
                result["case_id"] = self.number(Kind::Case, number(&result["case_id"])).into();
            }
        }
    }

    fn number(&self, kind: Kind, recorded: i64) -> i64 {
        let found = self.numbers.get(&(kind, recorded)).copied();
        found.unwrap_or_else(|| panic!("the recording has no {kind:?} {recorded}"))
    }
}

/// Returns the kinds of the id in the path of a method, and of those in its answer.
fn kinds(verb: &str) -> (Option<Kind>, Option<Kind>) {
    match verb {
        "get_suites" | "get_cases" | "get_sections" => (Some(Kind::Project), None),
        "add_section" => (Some(Kind::Project), Some(Kind::Section)),
        "add_case" => (Some(Kind::Section), Some(Kind::Case)),
        "add_run" => (Some(Kind::Project), Some(Kind::Run)),
        "get_run" | "update_run" | "close_run" => (Some(Kind::Run), None),
        "add_results_for_cases" => (Some(Kind::Run), Some(Kind::Result)),
        "add_attachment_to_result" => (Some(Kind::Result), None),
        _ => (None, None),
    }
}
