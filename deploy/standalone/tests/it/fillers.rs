//! Bodies of many small values: no request takes much memory, whatever the values are and wherever they
//! stand, and none is answered with a failure of the server.

mod measured;

use std::{fmt::Write as _, io::Write as _};

use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use zip::{ZipWriter, write::SimpleFileOptions};

use self::measured::Measured;
use crate::{
    matrix::operation::{DOCUMENT, Operation, operations},
    world::{create_project, id},
};

/// Size of bodies in an ordinary run, and in a long one, in bytes. Of the large ones, only updates and
/// uploads are accepted.
const SIZE: usize = 256 << 10;
const LARGE: usize = 4 << 20;

/// Maximum memory that a request may take for bodies of these sizes, in addition to what the program needs
/// when it is idle, in bytes.
const MEMORY: u64 = 48 << 20;
const MOST_MEMORY: u64 = 96 << 20;

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
    fill_operations(Measured::standalone(MEMORY).await, &VALUES[..2], SIZE).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo nextest run -p assay --profile long --run-ignored only"]
async fn no_operation_takes_much_memory_for_small_values_of_any_kind() {
    fill_operations(Measured::standalone(MOST_MEMORY).await, &VALUES, LARGE).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo nextest run -p assay --profile long --run-ignored only"]
async fn no_operation_takes_a_program_near_the_limit_of_the_chart() {
    fill_operations(Measured::separate(MOST_MEMORY).await, &VALUES, LARGE).await;
}

async fn fill_operations(mut measured: Measured, values: &[&str], size: usize) {
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
    fill_reports(Measured::standalone(MOST_MEMORY).await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo nextest run -p assay --profile long --run-ignored only"]
async fn no_report_takes_a_program_near_the_limit_of_the_chart() {
    fill_reports(Measured::separate(MOST_MEMORY).await).await;
}

async fn fill_reports(mut measured: Measured) {
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
