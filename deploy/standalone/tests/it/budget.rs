//! Memory usage with the largest records: all programs together stay below 512 MiB, a limit that
//! the operating system enforces.

use std::{process::Stdio, time::Duration};

use assay_servers::Postgres;
use assay_testkit::{Answer, Api};
use futures::{StreamExt, future::join_all};
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::{process::Command, sync::Barrier};

use crate::{
    process::{PASSWORD, Program, command, data_dir},
    world::{create_project, id},
};

/// Maximum memory that the program may allocate, in bytes.
const LIMIT: u64 = 512 << 20;

/// Length of a text close to the maximum, with room for the fields around it.
const TEXT: usize = (64 << 10) - 16;

/// Starts a program that cannot allocate more than [`LIMIT`]. Its allocator does not reserve memory
/// ahead, so that the limit applies to used memory. Returns it with a client and a connection to the
/// database of its catalog, where copies of large records are created.
async fn start_with_memory_limit() -> (Program, Api, PgConnection) {
    let data = data_dir();
    let mut command = command(&data);
    command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0").env("MIMALLOC_PURGE_DELAY", "0");
    // The test does not read it, and a full pipe would block the program.
    command.stderr(Stdio::inherit());
    let program = Program::start(command).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    let pid = program.child.id().unwrap().to_string();
    let limit = format!("--data={LIMIT}");
    let limited = Command::new("prlimit").args(["--pid", &pid, &limit]).status().await;
    assert!(limited.unwrap().success(), "prlimit is part of util-linux");
    let catalog = Postgres::url_of_running(&data, "assay_catalog").unwrap();
    (program, api, PgConnection::connect(&catalog).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_the_largest_subjects_stay_within_512_mib() {
    const SUBJECTS: usize = 120;
    const LISTS: usize = 12;
    let (program, api, mut catalog) = start_with_memory_limit().await;
    let subjects = format!("{}/subjects", create_project(&api).await);
    let text = "x".repeat(TEXT);
    let subject = json!({
        "Identifier": "1", "Name": "Shop", "SubjectType": "Webpage",
        "Uri": format!("https://shop.test/{}", "x".repeat(TEXT - 32)),
        "SoftwareFileId": text, "SoftwareFileName": text, "InstallationFileId": text,
        "InstallationFileName": text, "InstructionFileId": text, "InstructionFileName": text,
        "FrameworkFileId": text
    });
    api.post(&subjects, subject).await.created();
    sqlx::query(
        "insert into subject (customer_id, id, project_id, identifier, name, uri, subject_type,
             needs_public_ip, software_file_id, software_file_name, software_file_size,
             installation_file_id, installation_file_name, instruction_file_id,
             instruction_file_name, framework_file_id, modification_allowed)
         select customer_id, gen_random_uuid(), project_id, number::text, name, uri, subject_type,
             needs_public_ip, software_file_id, software_file_name, software_file_size,
             installation_file_id, installation_file_name, instruction_file_id,
             instruction_file_name, framework_file_id, modification_allowed
         from subject, generate_series(2, $1) as number",
    )
    .bind(i32::try_from(SUBJECTS).unwrap())
    .execute(&mut catalog)
    .await
    .unwrap();

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

/// Creates a set with a test case whose ready plan has a mebibyte of variables. Returns its path.
async fn create_set(api: &Api) -> String {
    let project = create_project(api).await;
    let case = api.post(&format!("{project}/testcases"), json!({"Name": "Case"})).await.created();
    let variables: Vec<_> = (0..15)
        .map(|number| json!({"Name": format!("V{number}"), "Content": "x".repeat(TEXT)}))
        .collect();
    let plans = format!("{project}/testcases/{}/testplans", id(&case));
    let plan = api.post(&plans, json!({"Variables": variables})).await.created();
    let ready = json!({"Status": "ReadyForExecution"});
    api.put(&format!("{plans}/{}", id(&plan)), ready).await.ok();
    let set = json!({"Name": "Nightly", "TestCases": [{"Id": id(&case)}]});
    let set = api.post(&format!("{project}/testsets"), set).await.created();
    format!("{project}/testsets/{}", id(&set))
}

/// Adds copies of the first test case, with its plan, to the set.
async fn add_copies(catalog: &mut PgConnection, positions: std::ops::RangeInclusive<i32>) {
    sqlx::query(
        "with original as (
             select * from test_set_case order by position limit 1
         ), copy as materialized (
             select gen_random_uuid() as id, number from generate_series($1, $2) as number
         ), test_cases as (
             insert into test_case (customer_id, id, project_id, identifier, name, description,
                 last_plan_status)
             select customer_id, copy.id, project_id, 'copy-' || number, name, description,
                 last_plan_status
             from test_case join original using (customer_id), copy
             where test_case.id = original.test_case_id
         ), test_plans as (
             insert into test_plan (customer_id, id, test_case_id, revision, status, test_type,
                 instances, minimum_duration_in_min, variables)
             select customer_id, gen_random_uuid(), copy.id, revision, status, test_type,
                 instances, minimum_duration_in_min, variables
             from test_plan join original using (customer_id, test_case_id), copy
         )
         insert into test_set_case
         select customer_id, test_set_id, copy.id, position + number from original, copy",
    )
    .bind(positions.start())
    .bind(positions.end())
    .execute(catalog)
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn starting_the_largest_executions_stays_within_512_mib() {
    let (program, api, mut catalog) = start_with_memory_limit().await;
    let set = create_set(&api).await;
    add_copies(&mut catalog, 1..=65).await;
    let starts = (0..2).map(|_| {
        let start = api.request(Method::POST, &format!("{set}/executions"));
        Answer::of(start.json(&json!({})).timeout(Duration::from_mins(2)))
    });
    for started in join_all(starts).await {
        // On a busy machine an unoptimized program can exceed the timeout of the request.
        assert!(matches!(started.status.as_u16(), 201 | 429 | 503 | 504), "{started}");
    }
    add_copies(&mut catalog, 66..=69).await;
    let refused = api.post(&format!("{set}/executions"), json!({})).await;
    let problem = refused.is_problem(422, "execution_too_large");
    assert!(problem["detail"].as_str().unwrap().contains("64 MiB"), "{problem}");
    assert!(program.terminate().await.success());
}
