//! Comments and statuses on hosts of repositories, which accept the requests that they document.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::{Path as At, Query, State},
    http::{HeaderMap, StatusCode},
    routing::{get, patch, post},
};
use serde_json::{Value, json};

use super::{EXECUTION, PROJECT, assay, complete, execution, serve};

const SHA: &str = "3738117e3337e54955580f4e98cf767d96b42135";
const TEXT: &str = "### [nightly](https://assay.example.org/e): failed\n\n| shop.pays | a\\_b |\n";

/// A host with the comments of one change, and the statuses of commits.
#[derive(Clone, Default)]
struct Host(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    comments: Vec<Value>,
    statuses: Vec<Value>,
}

type Pages = Query<Vec<(String, String)>>;

/// The answer to a request that the host does not accept.
type Refusal = (StatusCode, Json<Value>);

/// Fails the request unless it has the headers of a client that the host documents.
fn check(headers: &HeaderMap, expected: &[(&str, &str)]) -> Result<(), Refusal> {
    let differs =
        |(name, value): &&(&str, &str)| headers.get(*name).is_none_or(|have| have != value);
    match expected.iter().find(differs) {
        Some((name, _)) => {
            let message = json!({"message": format!("Requires the header {name}")});
            Err((StatusCode::FORBIDDEN, Json(message)))
        }
        None => Ok(()),
    }
}

/// Fails the request unless its body has all of the first fields, and no others than those and the second.
fn shape(body: &Value, required: &[&str], optional: &[&str]) -> Result<(), Refusal> {
    let fields: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    let has_all = required.iter().all(|field| fields.contains(field));
    if has_all && fields.iter().all(|field| required.contains(field) || optional.contains(field)) {
        return Ok(());
    }
    let message = json!({"message": format!("Validation Failed: {fields:?}")});
    Err((StatusCode::UNPROCESSABLE_ENTITY, Json(message)))
}

/// Returns the page of comments that a query asks for.
fn page(kept: &Kept, query: &[(String, String)]) -> Value {
    let number = |name: &str, default: usize| {
        let value = query.iter().find(|(known, _)| known == name);
        value.map_or(default, |(_, value)| value.parse().unwrap())
    };
    let (size, page) = (number("per_page", 30), number("page", 1));
    assert!(size <= 100 && page >= 1);
    kept.comments.iter().skip((page - 1) * size).take(size).cloned().collect()
}

const GITHUB: [(&str, &str); 3] = [
    ("authorization", "Bearer host-token"),
    ("accept", "application/vnd.github+json"),
    ("x-github-api-version", "2022-11-28"),
];

fn github(host: Host) -> Router {
    let at = "/api/v3/repos/octocat/shop";
    let list = async |headers: HeaderMap, Query(query): Pages, State(host): State<Host>| {
        check(&headers, &GITHUB)?;
        Ok::<_, Refusal>(Json(page(&host.0.lock().unwrap(), &query)))
    };
    let create = async |headers: HeaderMap, State(host): State<Host>, Json(body): Json<Value>| {
        check(&headers, &GITHUB)?;
        shape(&body, &["body"], &[])?;
        let mut kept = host.0.lock().unwrap();
        let comment = json!({
            "id": kept.comments.len(), "body": body["body"], "author_association": "NONE",
            "user": {"login": "github-actions[bot]", "type": "Bot"},
        });
        kept.comments.push(comment.clone());
        Ok::<_, Refusal>((StatusCode::CREATED, Json(comment)))
    };
    let update = async |headers: HeaderMap,
                        At(id): At<usize>,
                        State(host): State<Host>,
                        Json(body): Json<Value>| {
        check(&headers, &GITHUB)?;
        shape(&body, &["body"], &[])?;
        let comment = &mut host.0.lock().unwrap().comments[id];
        comment["body"] = body["body"].clone();
        Ok::<_, Refusal>(Json(comment.clone()))
    };
    let status = async |headers: HeaderMap, State(host): State<Host>, Json(body): Json<Value>| {
        check(&headers, &GITHUB)?;
        shape(&body, &["state"], &["target_url", "description", "context"])?;
        assert!(
            ["error", "failure", "pending", "success"].contains(&body["state"].as_str().unwrap())
        );
        host.0.lock().unwrap().statuses.push(body.clone());
        Ok::<_, Refusal>((StatusCode::CREATED, Json(body)))
    };
    Router::new()
        .route(&format!("{at}/issues/12/comments"), get(list).post(create))
        .route(&format!("{at}/issues/comments/{{id}}"), patch(update))
        .route(&format!("{at}/statuses/{SHA}"), post(status))
        .with_state(host)
}

const GITLAB: [(&str, &str); 1] = [("private-token", "host-token")];

fn gitlab(host: Host) -> Router {
    let at = "/api/v4/projects/5/merge_requests/12/notes";
    let list = async |headers: HeaderMap, Query(query): Pages, State(host): State<Host>| {
        check(&headers, &GITLAB)?;
        Ok::<_, Refusal>(Json(page(&host.0.lock().unwrap(), &query)))
    };
    let create = async |headers: HeaderMap, State(host): State<Host>, Json(body): Json<Value>| {
        check(&headers, &GITLAB)?;
        shape(&body, &["body"], &["internal", "created_at"])?;
        let mut kept = host.0.lock().unwrap();
        let note = json!({"id": kept.comments.len(), "body": body["body"], "author": {"id": 7}});
        kept.comments.push(note.clone());
        Ok::<_, Refusal>((StatusCode::CREATED, Json(note)))
    };
    let update = async |headers: HeaderMap,
                        At(id): At<usize>,
                        State(host): State<Host>,
                        Json(body): Json<Value>| {
        check(&headers, &GITLAB)?;
        shape(&body, &["body"], &[])?;
        let note = &mut host.0.lock().unwrap().comments[id];
        note["body"] = body["body"].clone();
        Ok::<_, Refusal>(Json(note.clone()))
    };
    let status = async |headers: HeaderMap, State(host): State<Host>, Json(body): Json<Value>| {
        check(&headers, &GITLAB)?;
        shape(
            &body,
            &["state"],
            &["name", "description", "target_url", "pipeline_id", "ref", "coverage"],
        )?;
        let states = ["pending", "running", "success", "failed", "canceled", "skipped"];
        assert!(states.contains(&body["state"].as_str().unwrap()));
        host.0.lock().unwrap().statuses.push(body.clone());
        Ok::<_, Refusal>((StatusCode::CREATED, Json(body)))
    };
    let user = async |headers: HeaderMap| {
        check(&headers, &GITLAB)?;
        Ok::<_, Refusal>(Json(json!({"id": 7, "username": "project_5_bot"})))
    };
    Router::new()
        .route("/api/v4/user", get(user))
        .route(at, get(list).post(create))
        .route(&format!("{at}/{{id}}"), axum::routing::put(update))
        .route(&format!("/api/v4/projects/4/statuses/{SHA}"), post(status))
        .with_state(host)
}

/// Starts an Assay with an execution whose verdict has a state and is this Markdown.
async fn judged(state: &'static str, markdown: &'static str) -> String {
    let at = format!("/api/projects/{PROJECT}/executions/{EXECUTION}/verdict");
    let mut execution = execution();
    execution["Url"] = "https://assay.example.org/e".into();
    let app = assay(execution)
        .route(&at, get(async move || Json(json!({"State": state, "Rules": []}))))
        .route(&format!("{at}.md"), get(async move || markdown));
    serve(app).await
}

fn of_github(url: &str) -> Vec<(String, String)> {
    [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_RUN_ID", "7"),
        ("GITHUB_API_URL", &format!("{url}/api/v3")),
        ("GITHUB_REPOSITORY", "octocat/shop"),
        ("GITHUB_REF_NAME", "12/merge"),
        ("GITHUB_SHA", SHA),
        ("GITHUB_TOKEN", "host-token"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn of_gitlab(url: &str) -> Vec<(String, String)> {
    [
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_ID", "7"),
        ("CI_JOB_NAME", "gate"),
        ("CI_API_V4_URL", &format!("{url}/api/v4")),
        ("CI_PROJECT_ID", "4"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "5"),
        ("CI_MERGE_REQUEST_IID", "12"),
        ("CI_COMMIT_SHA", SHA),
        ("GITLAB_TOKEN", "host-token"),
        // One that must not be sent to GitLab.
        ("GITHUB_TOKEN", "other-token"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

async fn comment(assay: &str, variables: &[(String, String)], more: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    complete(assay, folder.path(), &variables, &format!("--comment {more}")).await
}

#[tokio::test]
async fn a_change_has_one_comment_that_later_runs_update() {
    for (app, variables, states) in [
        (github as fn(Host) -> Router, of_github as fn(&str) -> _, ["failure", "success"]),
        (gitlab, of_gitlab, ["failed", "success"]),
    ] {
        let host = Host::default();
        // A stranger must not get hold of the comment, nor does one on another page matter.
        let stranger = |nr: usize| {
            json!({
                "id": nr, "body": "<!-- assay-ci shop/nightly -->\nAll tests passed",
                "author_association": "CONTRIBUTOR", "user": {"type": "User"}, "author": {"id": 1},
            })
        };
        host.0.lock().unwrap().comments = (0..101).map(stranger).collect();
        let variables = variables(&serve(app(host.clone())).await);

        let (code, output) = comment(&judged("Failed", TEXT).await, &variables, "--gate").await;
        assert_eq!(code, 1, "{output}");
        let (code, output) = comment(&judged("Passed", "### passed\n").await, &variables, "").await;
        assert_eq!(code, 0, "{output}");
        assert!(!output.contains("cannot comment"), "{output}");

        let kept = host.0.lock().unwrap();
        assert_eq!(kept.comments.len(), 102);
        assert_eq!(kept.comments[101]["body"], "<!-- assay-ci shop/nightly -->\n### passed\n");
        assert_eq!(kept.comments[0], stranger(0));
        let of = |field: &str| {
            kept.statuses.iter().map(|status| status[field].clone()).collect::<Vec<_>>()
        };
        assert_eq!(of("state"), states);
        assert_eq!(of("target_url"), ["https://assay.example.org/e"; 2]);
        let name = if states[0] == "failed" { of("name") } else { of("context") };
        assert_eq!(name, ["assay/nightly"; 2]);
    }
}

#[tokio::test]
async fn a_comment_is_the_verdict_and_no_command() {
    let host = Host::default();
    let variables = of_github(&serve(github(host.clone())).await);
    let (_, output) = comment(&judged("Failed", TEXT).await, &variables, "").await;
    assert!(!output.contains("cannot comment"), "{output}");
    let hostile = "/merge\n<img src=x> @everyone ![i](https://evil.example)\n";
    comment(&judged("Failed", hostile).await, &variables, "").await;

    let kept = host.0.lock().unwrap();
    let bodies: Vec<_> =
        kept.comments.iter().map(|comment| comment["body"].as_str().unwrap()).collect();
    assert_eq!(bodies.len(), 1);
    assert!(!bodies[0].contains("\n/merge") && bodies[0].contains("\\<img"), "{}", bodies[0]);
}

#[tokio::test]
async fn a_build_without_a_pull_request_has_only_a_status() {
    let host = Host::default();
    let mut variables = of_github(&serve(github(host.clone())).await);
    variables.retain(|(name, _)| name != "GITHUB_REF_NAME");
    let (code, output) = comment(&judged("Passed", TEXT).await, &variables, "").await;
    assert_eq!(code, 0, "{output}");
    let kept = host.0.lock().unwrap();
    assert_eq!((kept.comments.len(), kept.statuses.len()), (0, 1));
}

#[tokio::test]
async fn a_comment_that_is_refused_does_not_fail_the_job() {
    let host = Host::default();
    let url = serve(github(host.clone())).await;
    let mut variables = of_github(&url);
    let (code, output) = comment(&judged("Passed", TEXT).await, &[], "--gate").await;
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("not a job of GitHub Actions or GitLab CI"), "{output}");
    variables.retain(|(name, _)| name != "GITHUB_TOKEN");
    let (code, output) = comment(&judged("Passed", TEXT).await, &variables, "--gate").await;
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("set ASSAY_COMMENT_TOKEN or GITHUB_TOKEN"), "{output}");
    variables.push(("ASSAY_COMMENT_TOKEN".to_owned(), "read-only".to_owned()));
    let (code, output) = comment(&judged("Passed", TEXT).await, &variables, "--gate").await;
    assert_eq!(code, 0, "{output}");
    assert!(
        output.contains("403 Forbidden") && output.contains("pull-requests: write"),
        "{output}"
    );
    assert!(!output.contains("read-only"), "{output}");
    assert!(host.0.lock().unwrap().comments.is_empty());
}
