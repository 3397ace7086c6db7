//! The state of executions, rebuilt from events alone by `docs/subscribers/rebuild.py` and `rebuild.mjs`.

mod interface;
mod killed;

use std::{
    collections::BTreeMap, os::unix::fs::symlink, path::PathBuf, process::Stdio, time::Duration,
};

use assay_testkit::{Api, eventually, test_dir};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use uuid::Uuid;

use super::{cut_off, python_with, subscribe_with};
use crate::{
    documents::{at, node},
    junit::upload,
    world::{World, create_project, id},
};

/// Number of clients that upload at once, and of uploads of each.
const CLIENTS: usize = 3;
const UPLOADS: usize = 10;

/// A program that rebuilds the state, and its directory.
struct Rebuild {
    /// The language of the program, and the name of its subscriber.
    language: &'static str,
    url: String,
    dir: PathBuf,
}

impl Rebuild {
    /// The programs in both languages.
    fn all(url: &str) -> [Self; 2] {
        ["python", "node"].map(|language| Self::new(language, url.to_owned()))
    }

    fn new(language: &'static str, url: String) -> Self {
        let dir = test_dir().unwrap().join(Uuid::now_v7().to_string());
        std::fs::create_dir_all(&dir).unwrap();
        if language == "node" {
            std::fs::copy(at("docs/subscribers/rebuild.mjs"), dir.join("rebuild.mjs")).unwrap();
            symlink(at("target/tools/node/node_modules"), dir.join("node_modules")).unwrap();
        }
        Self { language, url, dir }
    }

    fn start(&self) -> Child {
        let mut command = if self.language == "node" {
            let mut command = node(&self.dir);
            command.arg("rebuild.mjs");
            command
        } else {
            let [python, script] = python_with("rebuild.py");
            let mut command = Command::new(python);
            command.arg(script);
            command
        };
        command.args([&self.url, self.language]).arg(self.file());
        command.stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap()
    }

    fn file(&self) -> PathBuf {
        self.dir.join("executions.jsonl")
    }

    /// Returns the executions in the file, each with its reports. Every line of a record is a later state of it.
    fn state(&self) -> Value {
        let bytes = std::fs::read(self.file()).unwrap_or_default();
        // The last line may be written just now.
        let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or_default();
        let mut state = json!({});
        for line in bytes[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Value::Object(mut record) = serde_json::from_slice(line).unwrap() else {
                panic!("not a record")
            };
            let [id, execution] = ["Id", "ExecutionId"]
                .map(|field| record.remove(field).unwrap().as_str().unwrap().to_owned());
            let is_execution = id == execution;
            let execution = &mut state[execution];
            if execution.is_null() {
                *execution = json!({ "Reports": {} });
            }
            let known = if is_execution { execution } else { &mut execution["Reports"][id] };
            let version = known["RecordVersion"].as_i64();
            assert!(record["RecordVersion"].as_i64() > version, "{record:?} after {known}");
            if is_execution {
                record.insert("Reports".to_owned(), known["Reports"].take());
            }
            *known = Value::Object(record);
        }
        state
    }
}

/// Returns a report of tests with these results, which differ from client to client and from upload to upload.
fn report(client: usize, number: usize) -> String {
    let test = |test: usize| {
        let outcome = match (client + number * 7 + test * 3) % 11 {
            0 => "<failure message='declined'/>",
            5 => "<error message='no network'/>",
            8 => "<skipped/>",
            _ => "",
        };
        format!("<testcase classname='shop' name='test {test}' time='0.1'>{outcome}</testcase>")
    };
    let tests: String = (0..6 + number % 4).map(test).collect();
    format!("<testsuite>{tests}</testsuite>")
}

/// Uploads reports, and runs executions to which results are added one by one, some of which are canceled.
async fn work(api: &Api, project: &str, client: usize) {
    let sets = format!("{project}/testsets");
    let set = api.post(&sets, json!({"Name": format!("Set {client}")})).await.created();
    let set = format!("{sets}/{}", id(&set));
    for number in 0..UPLOADS {
        let uploaded = upload(api, &set, report(client, number)).await.created();
        if number % 3 == 0 {
            let report = &uploaded["TestReports"][0];
            let text = |field: &str| report[field].as_str().unwrap();
            let path = format!(
                "{project}/testcases/{}/testplans/{}/testreports/{}",
                text("TestCaseId"),
                text("TestPlanId"),
                text("Id")
            );
            api.put(&path, json!({"Status": "Accepted"})).await.ok();
        }
        let started = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
        let at = format!("{project}/executions/{}", id(&started.created()));
        for (test, result) in [(0, "Passed"), (1, "Failed")] {
            let result = json!([{"Identifier": format!("shop.test {test}"), "Result": result}]);
            api.post(&format!("{at}/results"), result).await.ok();
        }
        if number % 2 == 0 {
            api.post(&format!("{at}/complete"), json!({})).await.ok();
        } else {
            api.delete(&at).await.expect(204);
        }
    }
}

/// Returns the executions of a rebuilt state, in the form of [`interface::executions`].
fn of_events(state: &Value) -> BTreeMap<String, Value> {
    let executions = state.as_object().unwrap().iter();
    let known = executions.filter(|(_, execution)| execution.get("Status").is_some());
    let shown = known.map(|(id, execution)| {
        let mut shown = execution.clone();
        for field in
            ["RecordVersion", "ProjectId", "TestSetName", "Branch", "Commit", "Build", "Path"]
        {
            shown.as_object_mut().unwrap().remove(field);
        }
        for report in shown["Reports"].as_object_mut().unwrap().values_mut() {
            report.as_object_mut().unwrap().remove("RecordVersion");
        }
        if shown["Changes"].is_object() {
            shown["Changes"]["Unreviewed"] = Value::Null;
        }
        (id.clone(), shown)
    });
    shown.collect()
}

/// Kills a program three times while it works, and while it writes a line.
async fn kill(rebuild: &Rebuild) {
    for executions in [5, 15, 30] {
        let mut running = rebuild.start();
        eventually("rebuilt executions", || async {
            (of_events(&rebuild.state()).len() >= executions).then_some(())
        })
        .await;
        running.kill().await.unwrap();
        cut_off(&rebuild.file());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_executions_is_rebuilt_from_events_alone() {
    let world = World::start().await;
    let nats = async_nats::connect(world.nats_url()).await.unwrap();
    let rebuilds = Rebuild::all(world.nats_url());
    for rebuild in &rebuilds {
        subscribe_with(&nats, rebuild.language, 100, Duration::from_secs(2)).await;
    }
    let projects = join_all((0..CLIENTS).map(|_| create_project(&world.api))).await;

    let working = join_all(
        projects.iter().enumerate().map(|(client, project)| work(&world.api, project, client)),
    );
    tokio::join!(working, join_all(rebuilds.iter().map(kill)));

    let running: Vec<Child> = rebuilds.iter().map(Rebuild::start).collect();
    for project in &projects {
        let expected = interface::executions(&world.api, project).await;
        assert_eq!(expected.len(), 2 * UPLOADS);
        for rebuild in &rebuilds {
            eventually(&format!("the state of all executions in {}", rebuild.language), || async {
                difference(rebuild, &expected).is_none().then_some(())
            })
            .await;
        }
    }
    drop(running);
    world.stop().await;
}

/// Returns how rebuilt executions differ from those of the interface, if any does.
fn difference(rebuild: &Rebuild, expected: &BTreeMap<String, Value>) -> Option<String> {
    let state = of_events(&rebuild.state());
    let differs = |(id, execution): &(&String, &Value)| state.get(*id) != Some(*execution);
    let mut differing = expected.iter().filter(differs);
    let (id, execution) = differing.next()?;
    Some(format!(
        "{}: {} of {} executions differ, such as {:#?} instead of {execution:#?}",
        rebuild.language,
        1 + differing.count(),
        expected.len(),
        state.get(id),
    ))
}

/// The place of each event in the stream: its source and action, and its execution.
async fn order(nats: &async_nats::Client) -> Vec<(String, Value)> {
    let jetstream = async_nats::jetstream::new(nats.clone());
    let stream = jetstream.get_stream("ASSAY_NOTIFICATIONS").await.unwrap();
    let last = stream.cached_info().state.last_sequence;
    let mut all = Vec::new();
    for sequence in 1..=last {
        let message = stream.get_raw_message(sequence).await.unwrap();
        let event: Value = serde_json::from_slice(&message.payload).unwrap();
        let name = format!(
            "{}.{}",
            event["data"]["Source"].as_str().unwrap(),
            event["data"]["Action"].as_str().unwrap()
        );
        all.push((name, event));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_execution_comes_after_its_reports_and_says_how_many_there_are() {
    let world = World::start().await;
    let nats = async_nats::connect(world.nats_url()).await.unwrap();
    let projects = join_all((0..CLIENTS).map(|_| create_project(&world.api))).await;
    join_all(
        projects.iter().enumerate().map(|(client, project)| work(&world.api, project, client)),
    )
    .await;
    let ended = CLIENTS * UPLOADS * 2;
    let is_end = |name: &str| matches!(name, "TestSet.Completed" | "TestSet.Canceled");
    let all = eventually("the ends of all executions", || async {
        let all = order(&nats).await;
        (all.iter().filter(|(name, _)| is_end(name)).count() == ended).then_some(all)
    })
    .await;
    let ids: Vec<&str> = all.iter().map(|(_, event)| event["id"].as_str().unwrap()).collect();
    assert!(ids.is_sorted(), "the id is the key to sort by");
    let mut finished = BTreeMap::<&str, i64>::new();
    for (name, event) in &all {
        let data = &event["data"];
        let execution = data["ExecutionId"].as_str().unwrap_or_default();
        if name == "TestCase.Finished" {
            *finished.entry(execution).or_default() += 1;
        }
        if is_end(name) {
            let number = finished.get(execution).copied().unwrap_or_default();
            assert_eq!(data["Statistic"]["TestCasesTotal"], number, "{name} of {execution}");
            assert!(["Passed", "Failed"].contains(&data["Verdict"].as_str().unwrap()), "{data}");
        }
    }
    world.stop().await;
}
