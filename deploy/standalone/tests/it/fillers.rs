//! Bodies of many small values: no request takes much memory, whatever the values are and wherever they
//! stand, and none is answered with a failure of the server.

use std::{fmt::Write as _, fs, io::Write as _, process::Stdio};

use assay_testkit::Api;
use reqwest::{
    Method, StatusCode,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{
    matrix::operation::{DOCUMENT, Operation, operations},
    process::{PASSWORD, Program, command, data_dir},
    world::{create_project, id},
};

/// Maximum memory that a request may take in addition to what the program needs when it is idle, in
/// bytes.
const MOST: u64 = 96 << 20;

/// Size of bodies in bytes: of the largest that every operation accepts, and of one that only updates
/// and uploads do.
const SIZE: usize = (1 << 20) - (8 << 10);
const LARGE: usize = 4 << 20;

/// A program, and what its requests have taken more than they may.
struct Measured {
    program: Program,
    api: Api,
    excesses: String,
    /// The requests by the memory that they took, in mebibytes.
    taken: Vec<(u64, String)>,
}

impl Measured {
    async fn start() -> Self {
        let mut command = command(&data_dir());
        // Memory is given back at once, so that the next request starts from the same.
        command.env("MIMALLOC_PURGE_DELAY", "0").env("ASSAY_LOG", "error");
        command.stderr(Stdio::inherit());
        let program = Program::start(command).await;
        let api = program.log_in("ada@example.org", PASSWORD).await;
        Self { program, api, excesses: String::new(), taken: Vec::new() }
    }

    fn status(&self, name: &str) -> u64 {
        let pid = self.program.child.id().unwrap();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kibibytes = line.split_whitespace().nth(1).unwrap();
        kibibytes.parse::<u64>().unwrap() << 10
    }

    /// Sends a request, and compares the largest resident memory meanwhile with that before.
    async fn send(&mut self, name: &str, request: reqwest::RequestBuilder) {
        let pid = self.program.child.id().unwrap();
        fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
        let before = self.status("VmRSS:");
        let answer = request.send().await;
        let status = match answer {
            Ok(answer) => {
                let status = answer.status();
                let body = answer.bytes().await.map(|body| body.len());
                if body.as_ref().is_ok_and(|size| *size > 1 << 20) {
                    writeln!(self.excesses, "{name}: an answer of {body:?} bytes").unwrap();
                }
                status.as_u16()
            }
            // The answer was sent before the body was read.
            Err(error) if error.is_request() => 0,
            Err(error) => panic!("{name}: {error:?}"),
        };
        let took = self.status("VmHWM:").saturating_sub(before);
        self.taken.push((took >> 20, format!("{name}: {status}")));
        let overloaded = StatusCode::SERVICE_UNAVAILABLE.as_u16();
        if took > MOST || status >= 500 && status != overloaded {
            writeln!(self.excesses, "{name}: {status}, {} MiB", took >> 20).unwrap();
        }
    }

    async fn send_json(&mut self, name: &str, method: &Method, path: &str, body: String) {
        let request = self.api.request(method.clone(), path);
        self.send(name, request.header("content-type", "application/json").body(body)).await;
    }

    /// Ends the program. Fails if a request took too much.
    async fn end(mut self) {
        self.taken.sort_unstable_by_key(|(took, _)| std::cmp::Reverse(*took));
        for (took, name) in self.taken.iter().take(20) {
            println!("{took} MiB {name}");
        }
        assert!(self.excesses.is_empty(), "\n{}", self.excesses);
        assert!(self.program.terminate().await.success());
    }
}

/// Values that are small in a body. An ordinary run has the first two for each operation.
const VALUES: [&str; 6] = ["{}", "\"\"", "[]", "0", "null", "{\"a\":[{}]}"];

fn repeated(value: &str, size: usize) -> String {
    let mut body = vec![value; size / (value.len() + 1)].join(",");
    body.insert(0, '[');
    body.push(']');
    body
}

/// Returns an object of many fields.
fn many_fields(value: &str, size: usize) -> String {
    let mut body = "{\"Name\":\"n\"".to_owned();
    for number in 0.. {
        write!(body, ",\"{number}\":{value}").unwrap();
        if body.len() > size {
            break;
        }
    }
    body.push('}');
    body
}

/// Returns the bodies of an operation: each of its fields that is an array or an object is filled, in
/// turn, as is the body itself.
fn bodies(operation: &Operation, values: &[&str], size: usize) -> Vec<(String, String)> {
    let mut bodies = Vec::new();
    for value in values {
        bodies.push((format!("array of {value}"), repeated(value, size)));
    }
    bodies.push(("many fields".to_owned(), many_fields("{}", size)));
    let content = &operation.definition["requestBody"]["content"]["application/json"];
    let mut fields = Vec::new();
    containers(&content["schema"], &[], &mut fields);
    for path in fields {
        for value in values {
            let mut body = repeated(value, size);
            for part in path.iter().rev() {
                body = if part == "0" {
                    format!("[{body}]")
                } else {
                    format!("{{\"{part}\":{body}}}")
                };
            }
            bodies.push((format!("{} of {value}", path.join("/")), body));
        }
    }
    bodies
}

/// Finds the fields that are arrays or objects, with the way to each.
fn containers(schema: &Value, path: &[String], found: &mut Vec<Vec<String>>) {
    if path.len() > 4 {
        return;
    }
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return containers(&DOCUMENT["components"]["schemas"][name], path, found);
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        for schema in schema[choice].as_array().into_iter().flatten() {
            containers(schema, path, found);
        }
    }
    if schema["items"].is_object() {
        if !path.is_empty() {
            found.push(path.to_vec());
        }
        containers(&schema["items"], &[path, &["0".to_owned()]].concat(), found);
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        containers(schema, &[path, std::slice::from_ref(name)].concat(), found);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_operation_takes_much_memory_for_many_small_values() {
    fill_operations(&VALUES[..2], SIZE).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo nextest run -p assay --profile long --run-ignored only"]
async fn no_operation_takes_much_memory_for_small_values_of_any_kind() {
    fill_operations(&VALUES, LARGE).await;
}

async fn fill_operations(values: &[&str], size: usize) {
    let mut measured = Measured::start().await;
    let api = measured.api.clone();
    let project = create_project(&api).await;
    let case = api.post(&format!("{project}/testcases"), json!({"Name": "Case"})).await.created();
    let plans = format!("{project}/testcases/{}/testplans", id(&case));
    let plan = api.post(&plans, json!({})).await.created();
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Set"})).await.created();
    let opened = json!({"Project": project.rsplit('/').next(), "TestSet": id(&set)});
    let execution = api.post("/api/executions", opened).await.created();
    let ids = [
        ("projectId", project.rsplit('/').next().unwrap()),
        ("testCaseId", id(&case)),
        ("testPlanId", id(&plan)),
        ("testSetId", id(&set)),
        ("executionId", id(&execution)),
    ];
    for operation in operations() {
        if operation.method == Method::DELETE || operation.media_type() != Some("application/json")
        {
            continue;
        }
        let path = operation.path(|_, name| {
            let known = ids.iter().find(|(known, _)| *known == name);
            known.map_or("019cade2-11c0-7c16-bf3e-17fae47e173e", |(_, id)| id).to_owned()
        });
        for (what, body) in bodies(&operation, values, size) {
            let name = format!("{} {what}", operation.name);
            measured.send_json(&name, &operation.method, &path, body).await;
        }
    }
    measured.end().await;
}

/// Returns a zip archive.
fn archive(files: impl Iterator<Item = (String, String)>) -> Vec<u8> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, contents) in files {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(contents.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn nested_steps(depth: usize) -> String {
    if depth == 0 {
        return "{}".to_owned();
    }
    let steps = vec![nested_steps(depth - 1); 60].join(",");
    format!("{{\"name\":\"s\",\"steps\":[{steps}]}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_report_and_no_adapter_takes_much_memory_for_many_small_values() {
    let mut measured = Measured::start().await;
    let api = measured.api.clone();
    let project = create_project(&api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Set"})).await.created();
    let results = format!("{project}/testsets/{}/results", id(&set));

    let result = |steps: &str| {
        format!(r#"{{"uuid":"1","historyId":"1","name":"a","status":"passed","steps":[{steps}]}}"#)
    };
    let deep = result(&nested_steps(3));
    let small =
        archive((0..60_000).map(|number| (format!("{number}-result.json"), "{}".to_owned())));
    let deep = archive([("1-result.json".to_owned(), deep)].into_iter());
    for (what, zip) in [("nested steps", deep), ("60,000 files", small)] {
        let part = Part::bytes(zip).file_name("allure.zip");
        let request = api.request(Method::POST, &results).multipart(Form::new().part("file", part));
        measured.send(&format!("allure: {what}"), request).await;
    }
    for value in VALUES {
        let values = repeated(value, LARGE);
        for (what, body) in [
            ("ctrf tests", format!(r#"{{"reportFormat":"CTRF","results":{{"tests":{values}}}}}"#)),
            ("playwright suites", format!(r#"{{"config":{{}},"suites":{values},"errors":[]}}"#)),
        ] {
            measured.send_json(&format!("{what} of {value}"), &Method::POST, &results, body).await;
        }
    }
    adapters(&mut measured).await;
    measured.end().await;
}

async fn adapters(measured: &mut Measured) {
    let api = measured.api.clone();
    let call = |method: &str| format!("/index.php?/api/v2/{method}");
    api.get(&call("get_projects")).await.ok();
    let run = api.post(&call("add_run/1"), json!({"name": "Nightly"})).await.ok();
    let launch = api.post("/api/v1/Shop/launch", json!({"name": "Nightly"})).await.created();
    let item = json!({"name": "a", "type": "STEP", "launchUuid": launch["id"]});
    let item = api.post("/api/v1/Shop/item", item).await.created();
    let finish = format!("/api/v1/Shop/item/{}", item["id"].as_str().unwrap());
    let of_launch = format!("\"launchUuid\":{},\"name\":\"n\",\"type\":\"STEP\"", launch["id"]);
    for value in VALUES {
        let values = repeated(value, LARGE);
        let short = &values[..values.len() / 3];
        let short = format!("{}{}", &short[..short.rfind(',').unwrap()], "]");
        for (what, method, path, body) in [
            (
                "add_results",
                Method::POST,
                call(&format!("add_results/{}", run["id"])),
                format!("{{\"results\":{values}}}"),
            ),
            (
                "add_run",
                Method::POST,
                call("add_run/1"),
                format!("{{\"name\":\"n\",\"case_ids\":{short}}}"),
            ),
            (
                "item parameters",
                Method::POST,
                "/api/v1/Shop/item".to_owned(),
                format!("{{{of_launch},\"parameters\":{short}}}"),
            ),
            (
                "item attributes",
                Method::POST,
                "/api/v1/Shop/item".to_owned(),
                format!("{{{of_launch},\"attributes\":{short}}}"),
            ),
            (
                "finish",
                Method::PUT,
                finish.clone(),
                format!("{{{of_launch},\"issue\":{{\"externalSystemIssues\":{short}}}}}"),
            ),
            (
                "launch",
                Method::POST,
                "/api/v1/Shop/launch".to_owned(),
                format!("{{\"name\":\"n\",\"attributes\":{short}}}"),
            ),
        ] {
            measured.send_json(&format!("{what} of {value}"), &method, &path, body).await;
        }
        let part = Part::text(values).mime_str("application/json").unwrap();
        let form = Form::new().part("json_request_part", part);
        let request = api.request(Method::POST, "/api/v1/Shop/log").multipart(form);
        measured.send(&format!("logs of {value}"), request).await;
    }
}
