//! Several jobs of one run, which must not become several executions with parts of the tests each.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path as At, Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{execution, run, serve};

const UPLOAD: &str = "upload junit.xml --project shop --set nightly";

const GITHUB: [(&str, &str); 4] = [
    ("GITHUB_ACTIONS", "true"),
    ("GITHUB_RUN_ID", "7"),
    ("GITHUB_RUN_ATTEMPT", "1"),
    ("GITHUB_JOB", "test"),
];

/// An execution as the rules for open executions keep it.
pub(super) struct Open {
    pub(super) input: Value,
    pub(super) reports: usize,
    completed: usize,
    pub(super) has_ended: bool,
}

/// The open executions of a server, in the order of their keys.
#[derive(Clone, Default)]
pub(super) struct Executions(Arc<Mutex<Vec<Open>>>);

impl Executions {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        self.0.lock().unwrap()
    }

    fn keys(&self) -> Vec<String> {
        self.lock().iter().map(|open| open.input["Key"].as_str().unwrap().to_owned()).collect()
    }

    pub(super) async fn serve(&self) -> String {
        let at = "/api/projects/{project}/executions/{id}";
        let app = Router::new()
            .route("/api/executions", post(open))
            .route(&format!("{at}/reports"), post(report))
            .route(&format!("{at}/complete"), post(complete))
            .with_state(self.clone());
        serve(app).await
    }
}

fn answer(executions: &[Open], nr: usize) -> Response {
    let mut answer = execution();
    answer["Id"] = Uuid::from_u128(nr as u128).to_string().into();
    answer["Statistic"]["TestCasesTotal"] = executions[nr].reports.into();
    if !executions[nr].has_ended {
        answer["CompletionDateTime"] = Value::Null;
    }
    Json(answer).into_response()
}

async fn open(State(executions): State<Executions>, Json(input): Json<Value>) -> Response {
    let mut executions = executions.lock();
    let known = executions.iter().position(|open| open.input["Key"] == input["Key"]);
    let nr = known.unwrap_or(executions.len());
    if known.is_none() {
        executions.push(Open { input, reports: 0, completed: 0, has_ended: false });
    }
    answer(&executions, nr)
}

async fn report(
    State(executions): State<Executions>,
    At((_, id)): At<(Uuid, Uuid)>,
    _whole: Bytes,
) -> (StatusCode, Json<Value>) {
    let open = &mut executions.lock()[usize::try_from(id.as_u128()).unwrap()];
    if open.has_ended {
        return (
            StatusCode::CONFLICT,
            Json(json!({"code": "execution_ended", "detail": "it has ended"})),
        );
    }
    open.reports += 1;
    (StatusCode::OK, Json(json!({"Accepted": 1})))
}

async fn complete(
    State(executions): State<Executions>,
    At((_, id)): At<(Uuid, Uuid)>,
    Query(query): Query<Value>,
) -> Response {
    let (mut executions, nr) = (executions.lock(), usize::try_from(id.as_u128()).unwrap());
    let open = &mut executions[nr];
    open.completed += 1;
    let expected = open.input["Reporters"].as_u64();
    open.has_ended = query["reporter"].is_null() || expected == Some(open.completed as u64);
    answer(&executions, nr)
}

/// Runs a job that uploads a report. Returns its exit code and output.
async fn job(url: &str, variables: &[(&str, &str)], options: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("junit.xml"), "<testsuite/>").unwrap();
    run(url, folder.path(), variables, format!("{UPLOAD} {options}").trim()).await
}

#[tokio::test]
async fn the_second_job_of_a_matrix_without_names_is_refused_with_a_remedy() {
    let systems: [&[(&str, &str)]; 4] = [
        &GITHUB,
        &[("BUILDKITE", "true"), ("BUILDKITE_BUILD_ID", "7"), ("BUILDKITE_RETRY_COUNT", "0")],
        &[("JENKINS_URL", "https://ci.example.org"), ("JOB_NAME", "shop"), ("BUILD_NUMBER", "7")],
        &[("CI", "woodpecker"), ("CI_PIPELINE_NUMBER", "7"), ("CI_WORKFLOW_NAME", "test")],
    ];
    for system in systems {
        let executions = Executions::default();
        let url = executions.serve().await;
        let (code, output) = job(&url, system, "").await;
        assert_eq!(code, 0, "{output}");
        let (code, output) = job(&url, system, "").await;
        assert_eq!(code, 3, "{output}");
        for part in ["has ended: another job", "ASSAY_REPORTER", "ASSAY_REPORTERS", "--keep-open"] {
            assert!(output.contains(part), "{output}");
        }
        assert_eq!(executions.keys().len(), 1, "{system:?}");
    }
}

#[tokio::test]
async fn jobs_of_a_matrix_with_names_report_to_one_execution() {
    let executions = Executions::default();
    let url = executions.serve().await;
    for index in ["0", "1"] {
        let names = [("ASSAY_REPORTER", index), ("ASSAY_REPORTERS", "2")];
        let (code, output) = job(&url, &[&GITHUB[..], &names].concat(), "").await;
        assert_eq!(code, 0, "{output}");
        assert!(!output.contains("WARN"), "{output}");
    }
    let [execution] = &executions.lock()[..] else { panic!("several executions") };
    assert!(execution.has_ended && execution.reports == 2);
}

#[tokio::test]
async fn a_job_is_warned_that_the_first_one_to_complete_ends_the_execution() {
    let executions = Executions::default();
    let url = executions.serve().await;
    let (code, output) = job(&url, &GITHUB, "--keep-open").await;
    assert_eq!(code, 0, "{output}");
    let (code, output) = job(&url, &GITHUB, "").await;
    assert_eq!(code, 0, "{output}");
    assert!(
        output.contains("another job has reported") && output.contains("ASSAY_REPORTERS"),
        "{output}"
    );
}

#[tokio::test]
async fn a_repeated_job_reports_to_a_new_execution_and_says_so() {
    let executions = Executions::default();
    let url = executions.serve().await;
    let gitlab = [("GITLAB_CI", "true"), ("CI_PIPELINE_ID", "7"), ("CI_JOB_NAME", "test")];
    let (code, output) = job(&url, &gitlab, "").await;
    assert_eq!((code, output.contains("WARN")), (0, false), "{output}");
    let (code, output) = job(&url, &gitlab, "").await;
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("repeated job") && output.contains("ASSAY_REPORTERS"), "{output}");
    assert_eq!(executions.keys(), ["gitlab:::7:test", "gitlab:::7:test-2"]);
}

#[tokio::test]
async fn options_with_which_an_execution_cannot_end_are_refused() {
    let executions = Executions::default();
    let url = executions.serve().await;
    let cell = [
        ("JENKINS_URL", "https://ci.example.org"),
        ("JOB_NAME", "shop/OS=linux"),
        ("BUILD_NUMBER", "7"),
    ];
    let (code, output) = job(&url, &cell, "").await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("OS=linux") && output.contains("ASSAY_REPORTERS"), "{output}");
    let batch = [("CODEBUILD_BUILD_ARN", "arn"), ("CODEBUILD_BATCH_BUILD_IDENTIFIER", "linux")];
    let (code, output) = job(&url, &batch, "--reporters 2").await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("ASSAY_KEY"), "{output}");
    let (code, output) = job(&url, &[], "--key k --reporters 2").await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("ASSAY_REPORTER "), "{output}");
    assert!(executions.keys().is_empty(), "nothing was sent");

    let (code, output) = job(&url, &cell, "--reporters 1").await;
    assert_eq!(code, 0, "{output}");
    assert_eq!(executions.lock()[0].input["Reporter"], "OS=linux");
}

/// Runs Git in a folder, and returns what it prints.
fn git(folder: &Path, name: &str, arguments: &str) -> String {
    let output = Command::new("git")
        .args(arguments.split(' '))
        .current_dir(folder)
        .envs([("GIT_AUTHOR_NAME", name), ("GIT_COMMITTER_NAME", name)])
        .envs([("GIT_AUTHOR_EMAIL", "nobody@nowhere"), ("GIT_COMMITTER_EMAIL", "nobody@nowhere")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_change_that_jenkins_has_merged_is_reported_with_its_own_commit() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("module");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("junit.xml"), "<testsuite/>").unwrap();
    let git = |name: &str, arguments: &str| git(folder.path(), name, arguments);
    git("Hubot", "init -q -b main");
    git("Hubot", "commit -q --allow-empty -m first");
    git("Hubot", "checkout -q -b change");
    git("Hubot", "commit -q --allow-empty -m change");
    let head = git("Hubot", "rev-parse HEAD");
    git("Hubot", "checkout -q main");
    git("Hubot", "commit -q --allow-empty -m target");
    git("Jenkins", &format!("checkout -q {head}"));
    git("Jenkins", "merge -q -m merged main");
    let merge = git("Jenkins", "rev-parse HEAD");
    let executions = Executions::default();
    let url = executions.serve().await;
    let jenkins =
        [("JENKINS_URL", "https://ci.example.org"), ("JOB_NAME", "shop"), ("BUILD_NUMBER", "7")];

    let change = [("CHANGE_ID", "12"), ("CHANGE_BRANCH", "change"), ("GIT_COMMIT", &*merge)];
    let variables = [&jenkins[..], &change].concat();
    let (code, output) = run(&url, &work, &variables, UPLOAD).await;

    assert_eq!(code, 0, "{output}");
    let input = executions.lock()[0].input.clone();
    assert_eq!((&input["Commit"], &input["Branch"]), (&json!(head), &json!("change")));
}
