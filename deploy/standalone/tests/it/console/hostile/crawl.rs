//! Every page that links lead to, with hostile texts in all fields.

use std::collections::{HashMap, HashSet, VecDeque};

use assay_testkit::{Answer, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::Reader;
use crate::{
    console::DEVELOPER,
    customer::Customer,
    world::{id, in_days},
};

/// Markup, and characters that change the direction of text or are invisible.
const EVIL: &str =
    "\"'><img src=x onerror=alert(1)><a href=javascript:alert(1)>\u{202e}\u{2066}\u{200f}<!--";

/// Maximum size of a page, in bytes.
const LIMIT: usize = 400_000;

/// Maximum size of the document of an execution, which is a file and no page, in bytes.
const DOCUMENT_LIMIT: usize = 8 << 20;

/// Number of pages that are read of those with the same path but for ids, and the same parameters.
const ALIKE: usize = 4;

/// A comment of almost the size that the interface accepts.
fn long() -> String {
    EVIL.repeat(600)
}

/// Returns the values of attributes that lead to other pages or load files.
fn links(page: &str) -> Vec<String> {
    let attributes = [" href=\"", " src=\"", " action=\"", " data-progress=\""];
    let of = |attribute: &'static str| page.split(attribute).skip(1);
    let values = attributes.into_iter().flat_map(of);
    values.map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&")).collect()
}

/// Fails if a page runs or hides anything of the texts in it.
fn check(path: &str, page: &str) {
    let limit = if path.ends_with("/report.html") { DOCUMENT_LIMIT } else { LIMIT };
    assert!(page.len() < limit, "{path} has {} bytes", page.len());
    for markup in ["<img src=x", "<a href=javascript", "<!--", "onerror=alert(1)>"] {
        assert!(!page.contains(markup), "{markup} in {path}");
    }
    let hides = |char: char| {
        char.is_control() && !matches!(char, '\n' | '\t')
            || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert_eq!(page.chars().find(|char| hides(*char)), None, "{path}");
    for link in links(page) {
        let is_page = link.starts_with('/') && !link.starts_with("//");
        let is_elsewhere = link.starts_with("http://") || link.starts_with("https://");
        assert!(is_page || is_elsewhere || link.starts_with('#'), "{link} in {path}");
    }
}

/// Returns an address without ids and values of parameters.
fn shape(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let parts = path.split('/').map(|part| if part.len() > 20 { "*" } else { part });
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap());
    parts.chain(names).collect::<Vec<_>>().join("/")
}

/// Reads pages from this one on, as far as links lead to pages of the console. Returns all of them.
async fn crawl(reader: &Reader, start: &str, with_session: bool) -> Vec<(String, String)> {
    let (mut open, mut seen) = (VecDeque::from([start.to_owned()]), HashSet::new());
    let (mut pages, mut counts) = (Vec::new(), HashMap::new());
    while let Some(path) = open.pop_front() {
        let path = path.split('#').next().unwrap().to_owned();
        let is_page =
            path.starts_with('/') && !path.starts_with("/api") && !path.starts_with("/assets");
        if !is_page || path.starts_with("/docs") || !seen.insert(path.clone()) {
            continue;
        }
        let alike: &mut usize = counts.entry(shape(&path)).or_default();
        *alike += 1;
        if *alike > ALIKE {
            continue;
        }
        let request = if with_session {
            reader.request(Method::GET, &path)
        } else {
            reader.client.get(format!("{}{path}", reader.url))
        };
        let answer = Answer::of(request).await;
        assert!(answer.status.as_u16() < 500, "{path}: {answer}");
        let is_html = answer
            .headers
            .get("content-type")
            .is_some_and(|media_type| media_type.as_bytes().starts_with(b"text/html"));
        if !is_html {
            continue;
        }
        let page = String::from_utf8(answer.body.clone()).unwrap();
        check(&path, &page);
        open.extend(links(&page));
        pages.push((path, page));
    }
    pages
}

/// Fills all fields that pages show with hostile texts. Returns the execution and its path.
async fn fill(reader: &Reader) -> (Value, String) {
    let api = reader.api();
    let name = |nr: usize| format!("{nr} {EVIL}");
    let project = api.post("/api/projects", json!({"Name": name(0), "Description": long()})).await;
    let project = project.created();
    let at = format!("/api/projects/{}", id(&project));
    let named = |nr: usize| json!({"Name": name(nr), "Description": long()});
    let environment = api.post(&format!("{at}/environments"), named(1)).await.created();
    let subject = json!({"Name": name(2), "Identifier": name(3), "SubjectType": "Webpage",
        "Uri": "https://evil.example"});
    let subject = api.post(&format!("{at}/subjects"), subject).await;
    let open = json!({
        "Project": id(&project), "TestSet": name(4), "Branch": name(5), "Commit": name(6), "Build": name(7),
        "CiUrl": "https://evil.example/run", "Tags": format!("a,{EVIL}"),
        "EnvironmentId": id(&environment), "Notes": [EVIL],
        "SubjectId": subject.json()["Id"],
    });
    let execution = api.post("/api/executions", open).await.created();
    let at = format!("{at}/executions/{}", id(&execution));
    let result = |nr: usize| {
        json!({
            "Identifier": format!("case {nr} {EVIL}"), "Name": name(nr), "Result": "Failed",
            "Variant": format!("Browser={EVIL}"), "Suites": [EVIL, "a/b"],
            "Labels": [{"Name": EVIL, "Value": EVIL}, {"Name": "tag", "Value": EVIL}],
            "Links": [{"Kind": "issue", "Target": "javascript:alert(1)"},
                {"Kind": EVIL, "Target": "data:text/html,<script>alert(1)</script>"},
                {"Kind": "issue", "Target": format!("https://evil.example/{EVIL}")}],
            "Steps": [{"StepNr": 1, "Result": "Failed", "ActualResult": format!("{nr} {}", long()),
                "ExpectedResult": long(), "TestInput": long(), "SoftVerification": [EVIL]}],
        })
    };
    for part in 0..8 {
        let results: Vec<_> = (part * 10..part * 10 + 10).map(result).collect();
        api.post(&format!("{at}/results"), json!(results)).await.expect(200);
    }
    api.post(&format!("{at}/complete"), json!({})).await.expect(200);
    let review = json!({"Result": "Failed", "Status": "Rejected", "Comment": long(),
        "Ticket": "javascript:alert(1)//\"><img src=x onerror=alert(1)>",
        "Known": {"MutedUntil": in_days(1)}});
    api.put(&format!("{at}/reviews"), review).await.ok();
    let token = json!({"Name": EVIL, "UsagePermission": "Read"});
    api.post("/api/users/current/tokens", token).await.created();
    fill_records(reader, id(&project), &name(8)).await;
    (execution, at)
}

/// Creates a monitor and a pool with hostile texts.
async fn fill_records(reader: &Reader, project: &str, name: &str) {
    let (api, at) = (reader.api(), format!("/api/projects/{project}"));
    let monitor = json!({"Name": name, "Measure": "Recoveries", "Threshold": 3, "Action": "Mute",
        "Branch": EVIL, "DryRun": true});
    api.post(&format!("{at}/monitors"), monitor).await.created();
    let contents = json!([{"Name": EVIL, "Content": long()},
        {"Name": "PIN", "Content": EVIL, "IsSecured": true}]);
    let pool = json!({"Name": name, "Values": [{"Contents": contents}]});
    api.post(&format!("{at}/pools"), pool).await.created();
    eventually("the hours of execution", || async {
        let times = api.get("/api/executiontimes").await.ok();
        (times != json!([])).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_runs_hides_or_repeats_without_end_what_results_contain() {
    let customer = Customer::new().await;
    let permissions = format!("{DEVELOPER}, ExecutionTimes, Invoicing");
    let reader = Reader::with(&customer, "grace", &permissions).await;
    let (execution, at) = fill(&reader).await;
    let pages = crawl(&reader, "/", true).await;
    let read: HashSet<_> =
        pages.iter().map(|(path, _)| path.split(['/', '?']).nth(1).unwrap()).collect();
    for kind in ["projects", "executions", "reports", "cases", "account", "usage"] {
        assert!(read.contains(kind), "{kind} in {read:?}");
    }
    for part in ["/knownfailures", "/monitors/", "/pools/", "?value="] {
        assert!(pages.iter().any(|(path, _)| path.contains(part)), "{part} in {read:?}");
    }
    let search = format!("/executions/{}?view=all&q=%E2%80%AE", id(&execution));
    assert!(!crawl(&reader, &search, true).await.is_empty());

    let share = reader.api().post(&format!("{at}/shares"), json!({})).await.created();
    let shared = format!("/shared/{}", share["Token"].as_str().unwrap());
    let pages = crawl(&reader, &shared, false).await;
    let (shared, others): (Vec<_>, Vec<_>) =
        pages.iter().partition(|(path, _)| path.starts_with("/shared/"));
    assert!(shared.len() > 10, "{}", shared.len());
    let others: HashSet<_> = others.iter().map(|(path, _)| path.as_str()).collect();
    assert!(others.is_subset(&HashSet::from(["/", "/login", "/forgot-password"])), "{others:?}");
    let me = reader.api().get("/api/users/current").await.ok();
    let project = execution["ProjectId"].as_str().unwrap();
    let private = [
        project,
        id(&execution),
        execution["TestSetId"].as_str().unwrap(),
        "javascript:alert(1)//",
        me["DisplayName"].as_str().unwrap(),
        reader.member.email.as_str(),
        "evil.example",
    ];
    for (path, page) in shared {
        for text in private {
            assert!(!page.contains(text), "{text} in {path}");
        }
    }
}
