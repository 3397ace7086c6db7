//! The engines in `docs/engines`, and the bodies in `docs/engines.md`, against a running Assay.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use assay_testkit::{Answer, Api, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    command_with_child, create_limited_set, create_set, files::Files, start_execution,
    test_directory, wait_for_child, wait_for_end, wait_for_exit,
};
use crate::{
    console::Reader,
    customer::Customer,
    documents::at,
    world::{create_project, id},
};

/// A test: it prints its name, and fails if that is A-2. A-3 also prints what is not text.
const TEST: &str =
    "echo \"runs $ASSAY_TEST_CASE\"; [ \"$ASSAY_TEST_CASE\" != A-3 ] || printf 'a\\0\\377\\n'
    [ \"$ASSAY_TEST_CASE\" != A-2 ]";

/// The commands that start the engines of the guide. That in Go is built if there is a compiler, which
/// `deploy/local/install test` installs.
fn clients(dir: &Path) -> Vec<Vec<String>> {
    let python = at("target/tools/python/bin/python");
    let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let mut clients = vec![vec![path(python), path(at("docs/engines/engine.py"))]];
    let engine = dir.join("engine-in-go");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&engine).arg(at("docs/engines/engine.go"));
    build.env("GOCACHE", dir.join("go")).env("GOFLAGS", "").current_dir(dir);
    match build.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            clients.push(vec![path(engine)]);
        }
        Err(error) => println!("the engine in Go is not tested: {error}"),
    }
    clients
}

/// A running engine, which ends with the test.
struct Client(std::process::Child);

impl Client {
    async fn start(customer: &Customer, client: &[String], test: &str) -> Self {
        let token = json!({"Name": "Engine", "UsagePermission": "Automation"});
        let token = customer.api.post("/api/users/current/tokens", token).await.created();
        let child = Command::new(&client[0])
            .args(&client[1..])
            .args(["sh", "-c", test])
            .env("ASSAY_URL", customer.url())
            .env("ASSAY_TOKEN", token["Secret"].as_str().unwrap())
            .stdin(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engines_of_the_guide_report_results_and_output() {
    let dir = test_directory();
    for client in clients(&dir) {
        let customer = Customer::new().await;
        let api = &customer.api;
        let cases = [("A-1", 2), ("A-2", 1), ("A-3", 1)];
        let (project, set) = create_set(api, "https://example.org/", &cases).await;
        let execution = start_execution(api, &project, &set).await;
        let _engine = Client::start(&customer, &client, TEST).await;

        let done = wait_for_end(api, &execution).await;

        let reports = done["TestReports"].as_array().unwrap();
        let results: Vec<_> = reports.iter().map(|report| report["Result"].clone()).collect();
        assert_eq!(results, ["Passed", "Failed", "Passed"], "{client:?}: {done:#}");
        let artifacts = format!("{execution}/results/artifacts");
        let logs = eventually("the logs", || async {
            let files = api.get(&artifacts).await.ok();
            let files = files.as_array().unwrap().clone();
            (files.len() == 3).then_some(files)
        })
        .await;
        assert!(logs.iter().all(|log| log["Name"] == "live.log"), "{logs:?}");
        assert_eq!(logs[0]["Size"], 2 * "runs A-1\n".len(), "{logs:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engines_of_the_guide_give_the_command_its_files() {
    let dir = test_directory();
    for client in clients(&dir) {
        let customer = Customer::new().await;
        let api = &customer.api;
        let files = Files::create(api).await;
        let input = format!("[ \"$(cat \"$ASSAY_FILES/{}\")\" = a,b ]", id(&files.input));
        let execution = start_execution(api, &files.project, &files.set).await;
        let _engine = Client::start(&customer, &client, &input).await;
        let done = wait_for_end(api, &execution).await;
        assert_eq!(done["Result"], "Passed", "{client:?}: {done:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engines_of_the_guide_stop_tests_that_hang_or_are_canceled() {
    let dir = test_directory();
    for client in clients(&dir) {
        for is_canceled in [false, true] {
            let customer = Customer::new().await;
            let api = &customer.api;
            let minutes = if is_canceled { 0.0 } else { 0.03 };
            let uri = "https://example.org/";
            let (project, set) = create_limited_set(api, uri, &[("A-1", 1)], minutes).await;
            let execution = start_execution(api, &project, &set).await;
            let files = test_directory();
            let _engine = Client::start(&customer, &client, &command_with_child(&files)).await;
            let child = wait_for_child(&files).await;
            if is_canceled {
                api.delete(&execution).await.expect(204);
            }
            wait_for_exit(child).await;
            let result = if is_canceled { "Canceled" } else { "Error" };
            assert_eq!(wait_for_end(api, &execution).await["Result"], result, "{client:?}");
        }
    }
}

/// Returns the JSON in the section of the guide about writing an engine.
fn bodies() -> Vec<Value> {
    let guide = std::fs::read_to_string(at("docs/engines.md")).unwrap();
    let (_, section) = guide.split_once("\n## Writing an engine\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| serde_json::from_str(block).expect(block)).collect()
}

/// Asserts that a real body has what the guide shows.
fn assert_shown(shown: &Value, real: &Value, path: &str) {
    match (shown, real) {
        (Value::Object(shown), Value::Object(real)) => {
            for (name, shown) in shown {
                let real = real.get(name).unwrap_or_else(|| panic!("{path}/{name} is missing"));
                assert_shown(shown, real, &format!("{path}/{name}"));
            }
        }
        (Value::Array(shown), Value::Array(real)) => {
            for (shown, real) in shown.iter().zip(real) {
                assert_shown(shown, real, &format!("{path}/0"));
            }
        }
        _ => assert_eq!(
            std::mem::discriminant(shown),
            std::mem::discriminant(real),
            "{path}: {shown} is {real}"
        ),
    }
}

/// Creates a set with the test of the guide, and starts it. Returns the path of the execution.
async fn start_test_of_guide(api: &Api) -> String {
    let project = create_project(api).await;
    let environment = json!({"Name": "Firefox on Linux", "TargetGroup": "linux", "Labels": ["gpu"],
        "Username": "tester", "Password": "a long enough passphrase"});
    let environment = api.post(&format!("{project}/environments"), environment).await.created();
    let subject = json!({"Name": "Web shop", "Identifier": "2.4.1", "SubjectType": "Webpage",
        "Uri": "https://staging.shop.example/"});
    let subject = api.post(&format!("{project}/subjects"), subject).await.created();
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Smoke"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    let selected =
        json!({"SelectedEnvironmentId": environment["Id"], "SelectedSubjectId": subject["Id"]});
    api.put(&set, selected).await.ok();
    let case = json!({"Name": "Pay by card", "Identifier": "checkout.pay_by_card"});
    let case = api.post(&format!("{project}/testcases"), case).await.created();
    let plans = format!("{project}/testcases/{}/testplans", id(&case));
    let user = json!({"Name": "SHOP_USER", "DisplayName": "", "PoolName": "", "IsSecured": false,
        "ValidationRule": "", "Content": "ada"});
    let file = api.request(Method::POST, &format!("{project}/files"));
    let file = Answer::of(file.header("X-File-Name", "cards.csv").body("4242\n")).await.created();
    let plan = json!({"MaximumDurationInMin": 30, "Variables": [user], "InputFileId": file["Id"]});
    let plan = format!("{plans}/{}", id(&api.post(&plans, plan).await.created()));
    let steps = json!([{"TestInput": "Pay", "ExpectedResult": "Paid", "Comment": ""}]);
    api.put(&format!("{plan}/automationSteps"), steps).await.ok();
    api.put(&plan, json!({"Status": "ReadyForExecution"})).await.ok();
    api.put(&format!("{set}/testcases"), json!({"Id": case["Id"]})).await.ok();
    start_execution(api, &project, &set).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bodies_of_the_guide_are_accepted_and_returned() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let execution = start_test_of_guide(api).await;
    let bodies: [Value; 9] = bodies().try_into().expect("the bodies of the guide");
    let [work, leases, renewal, renewed, output, size, log, results, completion] = bodies;
    let path = "/api/automation/leases";

    let taken = api.post(path, work).await.ok();
    assert_shown(&leases, &taken, "lease");
    let [shown, real] = [&leases, &taken].map(|leases| leases[0]["Files"][0].clone());
    for field in ["Name", "Size", "Sha256"] {
        assert_eq!(shown[field], real[field]);
    }
    let contents = api.get(real["Url"].as_str().unwrap()).await;
    assert_eq!(contents.expect(200).body, b"4242\n");
    let lease = format!("{path}/{}", id(&taken[0]));
    let renewal = json!({"WaitInSec": renewal["WaitInSec"].as_i64().unwrap().min(1)});
    let answer = api.post(&format!("{lease}/heartbeat"), renewal).await.ok();
    assert_shown(&renewed, &answer, "heartbeat");
    let answer = api.post(&format!("{lease}/log"), output.clone()).await.ok();
    assert_eq!(answer, size);
    let report = taken[0]["TestReportId"].as_str().unwrap();
    let shown = api.get(&format!("{execution}/reports/{report}/log?offset=0")).await.ok();
    assert_shown(&log, &shown, "log");
    assert_eq!((&shown["Text"], &shown["NextOffset"]), (&output["Text"], &size["Size"]));
    let file = api.request(Method::PUT, &format!("{lease}/artifacts/payment.log"));
    Answer::of(file.header("Content-Type", "text/plain").body("a log")).await.ok();
    let stored = api.post(&format!("{lease}/instances"), results).await.ok();
    assert_eq!(stored[0]["Result"], "Failed");
    api.post(&format!("{lease}/complete"), completion).await.expect(204);
    assert_eq!(wait_for_end(api, &execution).await["Result"], "Failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_running_test_is_streamed_and_shown_on_its_page() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let execution = start_test_of_guide(api).await;
    let work = json!({"TargetGroup": "linux", "Labels": ["gpu"]});
    let leased = api.post("/api/automation/leases", work).await.ok();
    let lease = format!("/api/automation/leases/{}", id(&leased[0]));
    let report = leased[0]["TestReportId"].as_str().unwrap();
    api.post(&format!("{lease}/log"), json!({"Text": "\u{1b}[31mone\u{1b}[0m <b>\n"})).await.ok();

    let reader = Reader::new(&customer).await;
    for page in [format!("/reports/{report}"), format!("/reports/{report}/log")] {
        let page = reader.get(&page).await;
        let html = String::from_utf8_lossy(&page.expect(200).body).into_owned();
        assert!(html.contains("one") && html.contains("&lt;b&gt;"), "{html}");
        assert!(html.contains("data-follow"), "{html}");
    }

    let request = api.request(Method::GET, &format!("{execution}/reports/{report}/log/stream"));
    let mut stream = request.send().await.unwrap().error_for_status().unwrap();
    let mut events = String::new();
    let mut is_appended = false;
    while let Some(chunk) = stream.chunk().await.unwrap() {
        events.push_str(&String::from_utf8_lossy(&chunk));
        if events.contains("one") && !is_appended {
            is_appended = true;
            api.post(&format!("{lease}/log"), json!({"Text": "two\n"})).await.ok();
            let result = json!([{"InstanceNr": 1, "Result": "Passed"}]);
            api.post(&format!("{lease}/instances"), result).await.ok();
            api.post(&format!("{lease}/complete"), json!({})).await.expect(204);
        }
    }
    assert!(events.contains("event: log") && events.contains("two\\n"), "{events}");
    assert!(events.trim_end().ends_with("\"IsRunning\":false}"), "{events}");
    let first = events.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let resumed = api.request(Method::GET, &format!("{execution}/reports/{report}/log/stream"));
    let resumed = resumed.header("Last-Event-ID", first).send().await.unwrap();
    let rest = resumed.text().await.unwrap();
    assert!(!rest.contains("one"), "{rest}");

    // An event without a log was the last one: the stream goes on, and ends like the one before.
    let goes_on = api.request(Method::GET, &format!("{execution}/reports/{report}/log/stream"));
    let goes_on = goes_on.header("Last-Event-ID", ":0").send().await.unwrap();
    let rest = goes_on.error_for_status().unwrap().text().await.unwrap();
    assert!(rest.trim_end().ends_with("\"IsRunning\":false}"), "{rest}");
}
