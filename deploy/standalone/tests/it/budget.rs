//! Memory usage with the largest records: all programs together stay below 512 MiB, a limit that
//! the operating system enforces.

use std::{process::Stdio, time::Duration};

use assay_testkit::{Answer, Api};
use futures::{StreamExt, future::join_all};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{process::Command, sync::Barrier};

use crate::{
    process::{PASSWORD, Program, command, data_dir},
    world::{create_project, id},
};

/// Maximum memory that the program may allocate, in bytes.
const LIMIT: u64 = 512 << 20;

/// Length of a text close to the maximum, with room for the fields around it.
const TEXT: usize = (64 << 10) - 16;

/// Number of concurrent requests.
const AT_ONCE: usize = 4;

/// Starts a program that cannot allocate more than [`LIMIT`]. Its allocator does not reserve memory
/// ahead, so that the limit applies to used memory.
async fn start_with_memory_limit() -> (Program, Api) {
    let mut command = command(&data_dir());
    command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0").env("MIMALLOC_PURGE_DELAY", "0");
    // The test does not read it, and a full pipe would block the program.
    command.stderr(Stdio::inherit());
    let program = Program::start(command).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    let pid = program.child.id().unwrap().to_string();
    let data = format!("--data={LIMIT}");
    let limited = Command::new("prlimit").args(["--pid", &pid, &data]).status().await;
    assert!(limited.unwrap().success(), "prlimit is part of util-linux");
    (program, api)
}

/// Posts the bodies concurrently; returns the ids of the created records.
async fn post_all(api: &Api, list: &str, bodies: impl Iterator<Item = Value>) -> Vec<String> {
    let posts = bodies.map(|body| async move { api.post(list, body).await.created() });
    let posts = futures::stream::iter(posts).buffered(AT_ONCE);
    posts.map(|created| id(&created).to_owned()).collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_the_largest_subjects_stay_within_512_mib() {
    const SUBJECTS: usize = 120;
    const LISTS: usize = 12;
    let (program, api) = start_with_memory_limit().await;
    let subjects = format!("{}/subjects", create_project(&api).await);
    let text = "x".repeat(TEXT);
    let subject = |number: usize| {
        json!({
            "Identifier": number.to_string(), "Name": "Shop", "SubjectType": "Webpage",
            "Uri": format!("https://shop.test/{}", "x".repeat(TEXT - 32)),
            "SoftwareFileId": text, "SoftwareFileName": text, "InstallationFileId": text,
            "InstallationFileName": text, "InstructionFileId": text, "InstructionFileName": text,
            "FrameworkFileId": text
        })
    };
    post_all(&api, &subjects, (0..SUBJECTS).map(subject)).await;

    // All lists start before the first one continues; the others wait until it has ended.
    let (started, ended) = (Barrier::new(LISTS), Barrier::new(LISTS));
    let lists = (0..LISTS).map(async |number| {
        let list = api.request(Method::GET, &subjects).send().await.unwrap();
        assert_eq!(list.status(), 200, "{:?}", list.headers());
        let mut chunks = list.bytes_stream();
        let mut size = chunks.next().await.unwrap().unwrap().len();
        started.wait().await;
        if number == 0 {
            while let Some(chunk) = chunks.next().await {
                size += chunk.unwrap().len();
            }
            assert!(size > SUBJECTS * 8 * TEXT, "a list of {size} bytes");
        }
        ended.wait().await;
    });
    join_all(lists).await;
    let page = api.get(&format!("{subjects}?limit=1000")).await;
    assert!(page.ok().as_array().unwrap().len() < SUBJECTS, "a page is limited, too");
    assert!(page.headers["link"].to_str().unwrap().contains("rel=\"next\""));
    assert!(program.terminate().await.success());
}

/// Creates a set of test cases whose ready plans have a mebibyte of variables each.
async fn create_large_set(api: &Api, project: &str, count: usize) -> String {
    let cases = (0..count).map(|number| json!({"Name": format!("Case {number}")}));
    let cases = post_all(api, &format!("{project}/testcases"), cases).await;
    let variables: Vec<_> = (0..15)
        .map(|number| json!({"Name": format!("V{number}"), "Content": "x".repeat(TEXT)}))
        .collect();
    let plans = cases.iter().map(|case| {
        let plans = format!("{project}/testcases/{case}/testplans");
        let variables = variables.clone();
        async move {
            let plan = api.post(&plans, json!({"Variables": variables})).await.created();
            let ready = json!({"Status": "ReadyForExecution"});
            api.put(&format!("{plans}/{}", id(&plan)), ready).await.ok();
        }
    });
    futures::stream::iter(plans).buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
    let cases: Vec<_> = cases.iter().map(|case| json!({"Id": case})).collect();
    let set = json!({"Name": "Nightly", "TestCases": cases});
    let set = api.post(&format!("{project}/testsets"), set).await.created();
    format!("{project}/testsets/{}", id(&set))
}

#[tokio::test(flavor = "multi_thread")]
async fn starting_the_largest_executions_stays_within_512_mib() {
    let (program, api) = start_with_memory_limit().await;
    let project = create_project(&api).await;
    let largest = create_large_set(&api, &project, 66).await;
    let starts = (0..2).map(|_| {
        let start = api.request(Method::POST, &format!("{largest}/executions"));
        Answer::of(start.json(&json!({})).timeout(Duration::from_mins(2)))
    });
    for started in join_all(starts).await {
        // On a busy machine an unoptimized program can exceed the timeout of the request.
        assert!(matches!(started.status.as_u16(), 201 | 429 | 503 | 504), "{started}");
    }
    let more = create_large_set(&api, &project, 4).await;
    let more = api.get(&more).await.ok()["TestCases"].clone();
    api.post(&format!("{largest}/testcases"), more).await.ok();
    let refused = api.post(&format!("{largest}/executions"), json!({})).await;
    let problem = refused.is_problem(422, "execution_too_large");
    assert!(problem["detail"].as_str().unwrap().contains("64 MiB"), "{problem}");
    assert!(program.terminate().await.success());
}
