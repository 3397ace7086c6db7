//! Reading of tools, which a server of these tests stands for.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{
    folder::{EXECUTIONS, Name, Place, Reader, TEST_CASES},
    source::convert_files,
};

/// A request: its first line, its headers and its body.
struct Request {
    line: String,
    headers: String,
    body: Value,
}

/// Returns the status and the body for a request.
type Answer = fn(&Request) -> (u16, Vec<u8>);

/// The requests that a server has received.
type Received = Arc<Mutex<Vec<String>>>;

/// Starts a server, and returns its URL and the requests that it receives.
#[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
async fn serve(answer: Answer) -> (Url, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let received = Received::default();
    let requests = received.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(handle(stream, answer, requests.clone()));
        }
    });
    (url, received)
}

async fn handle(mut stream: TcpStream, answer: Answer, requests: Received) -> Option<()> {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        stream.read_buf(&mut bytes).await.ok().filter(|count| *count > 0)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        break (head.to_owned(), length.map_or(0, |length| length.parse().unwrap()));
    };
    while bytes.len() < head.len() + 4 + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    let body = serde_json::from_slice(&bytes[head.len() + 4..]).unwrap_or_default();
    let (line, headers) = head.split_once("\r\n").unwrap();
    let request = Request { line: line.to_owned(), headers: headers.to_owned(), body };
    requests.lock().unwrap().push(request.line.clone());
    let (status, body) = answer(&request);
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).await.ok()
}

fn origin(user: Option<&str>) -> Origin {
    Origin {
        source_project: Some("my shop".to_owned()),
        source_user: user.map(str::to_owned),
        source_token: Some("secret".into()),
        source_token_file: None,
        all_logs: false,
    }
}

fn page(records: &Value) -> (u16, Vec<u8>) {
    (200, json!({"content": records, "page": {"totalPages": 1}}).to_string().into_bytes())
}

fn reportportal(request: &Request) -> (u16, Vec<u8>) {
    if !request.headers.contains("authorization: Bearer secret") {
        return (401, br#"{"message": "Full authentication is required"}"#.to_vec());
    }
    let path = request.line.split(' ').nth(1).unwrap();
    let of = |part: &str| path.starts_with(&format!("/api/v1/my%20shop/{part}"));
    if of("launch?filter.eq.mode=DEFAULT") {
        return page(&json!([
            {"id": 12, "uuid": "u", "name": "Nightly", "number": 3, "mode": "DEFAULT", "owner": "ada",
             "startTime": 1_772_443_800_000_i64, "endTime": 1_772_443_804_000_i64, "status": "FAILED"},
            {"id": 13, "name": "Nightly", "number": 4, "mode": "DEFAULT", "status": "IN_PROGRESS"},
        ]));
    }
    if of("item?filter.eq.launchId=12") {
        return page(&json!([
            {"id": 1, "launchId": 12, "type": "SUITE", "name": "Shop", "hasChildren": true},
            {"id": 2, "launchId": 12, "type": "STEP", "name": "pays", "codeRef": "pays",
             "status": "PASSED", "path": "1.2"},
            {"id": 3, "launchId": 12, "type": "STEP", "name": "ships", "codeRef": "ships",
             "status": "FAILED", "path": "1.3"},
            {"id": 4, "launchId": 12, "type": "STEP", "name": "returns", "codeRef": "returns",
             "status": "PASSED", "path": "1.4", "retries": [{"id": 5, "status": "FAILED"}]},
        ]));
    }
    if of("log?filter.under.path=1.3") {
        return page(&json!([
            {"id": 21, "itemId": 3, "level": "INFO", "message": "packed"},
            {"id": 22, "itemId": 3, "level": "ERROR", "message": "lost the parcel",
             "binaryContent": {"id": "abc=", "contentType": "image/png"}},
            {"id": 23, "itemId": 3, "level": "INFO", "message": "a video",
             "binaryContent": {"id": "gone", "contentType": "video/mp4"}},
        ]));
    }
    if of("log?filter.eq.item=5") {
        return page(&json!([{"id": 24, "level": "ERROR", "message": "no label"}]));
    }
    match path {
        "/api/v1/data/my%20shop/abc%3D" => (200, b"a picture".to_vec()),
        _ => (404, b"{}".to_vec()),
    }
}

type Record = Map<String, Value>;

fn lines(export: &Path, file: &Place) -> Vec<Record> {
    let (reader, _) = Reader::open(export).unwrap();
    reader.lines(file).unwrap().map(|line| line.unwrap().record).collect()
}

#[tokio::test]
async fn launches_are_read_with_logs_and_files_of_failures() {
    let (url, received) = serve(reportportal).await;
    let folder = tempfile::tempdir().unwrap();
    let (source, work) = (folder.path().join("source"), folder.path().join("work"));
    for _ in 0..2 {
        let files = read(&url, Format::Reportportal, &origin(None), &source).await.unwrap();
        convert_files(&files, Format::Reportportal, &work).unwrap();
    }

    let received = received.lock().unwrap().clone();
    let of_launches = received.iter().filter(|line| line.contains("/launch?")).count();
    assert_eq!(
        (of_launches, received.len()),
        (2, 7),
        "the second time reads no item: {received:#?}"
    );
    let executions = lines(&work, &EXECUTIONS);
    assert_eq!(executions.len(), 1, "a launch that has not ended is left out");
    let run = Name::parse("reportportal-12").unwrap();
    let results = lines(&work, &Place::results(&run));
    let step = |result: usize| results[result]["Steps"][0].clone();
    assert_eq!(results.len(), 4);
    assert!(results[0].get("Steps").is_none(), "{:?}", results[0]);
    assert_eq!(step(1)["ActualResult"], "lost the parcel\npacked\na video");
    assert_eq!(step(1)["Screenshots"], json!(["reportportal-abc.png"]));
    assert_eq!(
        (&results[2]["Result"], &step(2)["ActualResult"]),
        (&json!("Failed"), &json!("no label"))
    );
    let picture =
        fs::read(work.join("executions/reportportal-12/files/reportportal-abc.png")).unwrap();
    assert_eq!(picture, b"a picture");
    let files = lines(&work, &Place::files(&run));
    assert_eq!(files[0]["ContentType"], "image/png");
}

#[tokio::test]
async fn a_refused_token_and_an_unknown_project_name_the_option_to_check() {
    let (url, _) = serve(reportportal).await;
    let folder = tempfile::tempdir().unwrap();
    for (token, project, expected) in [
        ("wrong", "my shop", "check --source-token"),
        ("secret", "other", "check --from and --source-project"),
    ] {
        let mut origin = origin(None);
        origin.source_token = Some(token.into());
        origin.source_project = Some(project.to_owned());
        let read = read(&url, Format::Reportportal, &origin, folder.path()).await;
        let error = format!("{:#}", read.unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
    let error = read(&url, Format::Allure, &origin(None), folder.path()).await.unwrap_err();
    assert!(error.to_string().contains("--format"), "{error}");
}

fn kiwi(request: &Request) -> (u16, Vec<u8>) {
    let (method, query) = (request.body["method"].as_str().unwrap(), &request.body["params"][0]);
    let is_case = |id: i64| {
        let bounds = (query["id__gte"].as_i64().unwrap(), query["id__lt"].as_i64());
        query["category__product__name"] == "my shop"
            && id >= bounds.0
            && bounds.1.is_none_or(|end| id < end)
    };
    let case = |id: i64| {
        json!({"id": id, "summary": format!("Case {id}"), "is_automated": false, "text": "1. Pay",
            "case_status__name": "CONFIRMED"})
    };
    let result = match method {
        "Auth.login" if request.body["params"] == json!(["ada", "secret"]) => json!("session-1"),
        "Auth.login" => {
            let error = json!({"error": {"code": 403, "message": "Wrong username or password"}});
            return (200, error.to_string().into_bytes());
        }
        _ if !request.headers.contains("cookie: sessionid=session-1") => return (403, Vec::new()),
        "TestCase.filter" => [7, 9_000].into_iter().filter(|id| is_case(*id)).map(case).collect(),
        "TestRun.filter" => json!([{"id": 4, "plan__name": "Nightly", "build__name": "12",
            "summary": "Run", "start_date": "2026-03-02T09:00:00",
            "stop_date": "2026-03-02T10:00:00"}]),
        "TestExecution.filter" => json!([
            {"id": 1, "run": 4, "case": 7, "case__summary": "Case 7", "status__name": "PASSED"},
            {"id": 2, "run": 4, "case": 9_000, "case__summary": "Case 9000", "status__name": "FAILED"},
        ]),
        "TestExecution.get_links" => json!([{"execution": 2, "url": "https://bugs.example.org/9"}]),
        "TestExecution.get_comments" => json!([{"comment": "The bank is down"}]),
        other => panic!("{other}"),
    };
    (200, json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string().into_bytes())
}

#[tokio::test]
async fn kiwi_tcms_is_read_with_comments_and_defects() {
    let (url, _) = serve(kiwi).await;
    let folder = tempfile::tempdir().unwrap();
    let (source, work) = (folder.path().join("source"), folder.path().join("work"));
    let files = read(&url, Format::Kiwi, &origin(Some("ada")), &source).await.unwrap();
    convert_files(&files, Format::Kiwi, &work).unwrap();

    let cases = lines(&work, &TEST_CASES);
    let identifiers: Vec<_> = cases.iter().map(|case| case["Identifier"].clone()).collect();
    assert_eq!(identifiers, ["KIWI-7", "KIWI-9000"]);
    let run = Name::parse("kiwi-4").unwrap();
    let results = lines(&work, &Place::results(&run));
    assert_eq!(results[1]["Steps"][0]["ActualResult"], "The bank is down");
    let reviews = lines(&work, &Place::reviews(&run));
    assert_eq!(reviews[0]["Ticket"], "https://bugs.example.org/9");

    let wrong = read(&url, Format::Kiwi, &origin(Some("bob")), &source).await.unwrap_err();
    assert!(format!("{wrong:#}").contains("check --source-user"), "{wrong:#}");
}
