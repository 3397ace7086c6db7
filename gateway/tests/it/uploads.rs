//! Uploads of results, which are streamed.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use futures::{StreamExt, stream};
use http::StatusCode;

use crate::api::Api;

const REPORT: &str = "/api/projects/p/executions/e/results";
const UPLOAD: &str = "/api/projects/p/testsets/s/results";
const MIB: usize = 1 << 20;

fn mebibytes(count: usize) -> Body {
    let chunk = Bytes::from(vec![b' '; MIB]);
    Body::from_stream(stream::iter(vec![Ok::<_, Infallible>(chunk); count]))
}

#[tokio::test]
async fn results_are_streamed_as_json_or_ndjson() {
    let mut api = Api::start().await;
    for (media_type, lines) in [("application/json", 0), ("application/x-ndjson", 1)] {
        let request = api.request("POST", REPORT).header("Content-Type", media_type);
        let answer = api.send(request, mebibytes(32)).await;
        assert_eq!(answer.ok()["Accepted"], lines);
        assert_eq!(api.uploaded().await, Some(vec![32 * MIB]));
    }
    let request = api.request("POST", REPORT).header("Content-Type", "text/csv");
    api.send(request, Body::from("a,b")).await.problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn an_upload_above_the_size_limit_is_aborted() {
    let mut api = Api::start().await;
    let request = || api.request("POST", REPORT).header("Content-Type", "application/json");
    api.send(request(), mebibytes(33)).await.problem(413, "too_large");
    assert_eq!(api.uploaded().await, None);

    let request = || api.request("POST", REPORT).header("Content-Type", "application/json");
    let announced = Body::from(vec![b' '; 32 * MIB + 1]);
    api.send(request(), announced).await.problem(413, "too_large");
}

#[tokio::test]
async fn an_interrupted_upload_is_aborted() {
    let mut api = Api::start().await;
    // More than the buffers hold, so that the service has begun to read.
    let lines = stream::repeat_with(|| Ok(Bytes::from(vec![b' '; MIB]))).take(8);
    let lost = lines.chain(stream::iter([Err(std::io::Error::other("lost"))]));
    let request = api.request("POST", REPORT).header("Content-Type", "application/x-ndjson");
    api.send(request, Body::from_stream(lost)).await.problem(400, "malformed");
    assert_eq!(api.uploaded().await, None);
}

#[tokio::test]
async fn a_service_can_answer_before_the_end_of_the_upload() {
    let api = Api::start().await;
    let endless = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from(vec![b' '; 1024])));
    let endless = endless.chain(stream::pending());
    let request = api.request("POST", "/api/projects/p/executions/closed/results");
    let answer = api.send(request, Body::from_stream(endless)).await;
    answer.problem(404, "not_found");
}

#[tokio::test]
async fn a_test_run_becomes_an_execution() {
    let mut api = Api::start().await;
    let path = format!("{UPLOAD}?tags=a,b&subjectId=x");
    let request = api.request("POST", &path).header("Content-Type", "text/xml; charset=utf-8");
    let answer = api.send(request, Body::from("<testsuites/>")).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.header("location"), "/api/projects/p/executions/new");
    assert_eq!(answer.json()["Tags"], "a,b");
    assert_eq!(api.uploaded().await, Some(vec![13]));
}

#[tokio::test]
async fn the_files_of_a_form_are_separate() {
    let mut api = Api::start().await;
    let part = |name: &str, text: &str| {
        format!("--limit\r\nContent-Disposition: form-data; {name}\r\n\r\n{text}\r\n")
    };
    let form = [
        part(r#"name="note""#, "no file"),
        part(r#"name="a"; filename="a.xml""#, "<a/>"),
        part(r#"name="b"; filename="b.xml""#, ""),
        part(r#"name="c"; filename="c.xml""#, "<testsuite/>"),
        "--limit--\r\n".to_owned(),
    ];
    let content = "multipart/form-data; boundary=limit";
    let request = || api.request("POST", UPLOAD).header("Content-Type", content);
    let whole = api.send(request(), Body::from(form.concat())).await;
    assert_eq!(whole.status, StatusCode::CREATED);
    assert_eq!(api.uploaded().await, Some(vec![4, 0, 12]));

    let request = || api.request("POST", UPLOAD).header("Content-Type", content);
    let broken = api.send(request(), Body::from(form[..2].concat())).await;
    broken.problem(400, "malformed");
    let large = form[..2].concat() + &" ".repeat(32 * MIB);
    let chunks = stream::iter([Ok::<_, Infallible>(large)]);
    api.send(request(), Body::from_stream(chunks)).await.problem(413, "too_large");
}

#[tokio::test]
async fn an_invalid_parameter_of_an_upload_is_named() {
    let api = Api::start().await;
    let path = "/api/projects/p/testsets/s/results?subjectId=wrong";
    let upload = api.request("POST", path).header("Content-Type", "application/xml");
    let rejected = api.send(upload, Body::from("<testsuite/>")).await;
    assert_eq!(rejected.invalid_fields(), ["/subjectId"]);
}
