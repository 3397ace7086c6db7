//! Uploads by the protocol tus whose size is announced later.

use assay_testkit::{Answer, Api};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::{
    ABC,
    client::upload_by_client,
    download, repr_digest,
    resumable::{append, appending, begun, file, head, metadata, tus},
};
use crate::{customer::Customer, world::create_project};

/// Returns a request that begins an upload without a size.
fn deferring(api: &Api, project: &str) -> RequestBuilder {
    let request = tus(api, Method::POST, &format!("{project}/uploads"));
    request.header("Upload-Defer-Length", 1).header("Upload-Metadata", metadata("a.img"))
}

/// Begins an upload without a size, and returns its path.
async fn deferred(api: &Api, project: &str) -> String {
    let answer = Answer::of(deferring(api, project)).await;
    assert_eq!(answer.created()["Size"], Value::Null);
    answer.headers["location"].to_str().unwrap().to_owned()
}

/// Appends a body to an upload, with the size of the file.
async fn announce(api: &Api, upload: &str, offset: u64, body: &'static str, size: &str) -> Answer {
    let request = appending(api, upload, offset).header("Upload-Length", size);
    Answer::of(request.body(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_gets_its_size_before_with_or_after_its_last_bytes() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    for (with_last, rest) in [(true, ""), (true, "def"), (false, "def")] {
        let upload = deferred(api, &project).await;
        let first = append(api, &upload, 0, "abc").await;
        assert_eq!(first.expect(204).headers["upload-offset"], "3");
        let headers = head(api, &upload).await;
        assert_eq!(headers["upload-defer-length"], "1");
        assert!(!headers.contains_key("upload-length"));
        let size = (3 + rest.len()).to_string();
        let last = if with_last {
            announce(api, &upload, 3, rest, &size).await
        } else {
            // The size alone makes no file of an upload that lacks bytes.
            let announced = announce(api, &upload, 3, "", &size).await;
            assert_eq!(announced.expect(204).headers["upload-length"], "6");
            assert!(!announced.headers.contains_key("upload-defer-length"));
            append(api, &upload, 3, rest).await
        };
        let stored = file(api, &last.expect(204).headers).await;
        assert_eq!(last.headers["upload-length"], size);
        let whole = download(api, &stored, &[]).await;
        assert_eq!(whole.expect(200).body, format!("abc{rest}").as_bytes());
    }
    let empty = deferred(api, &project).await;
    let empty = announce(api, &empty, 0, "", "0").await;
    assert_eq!(file(api, &empty.expect(204).headers).await["Size"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_without_a_size_begins_with_its_first_bytes_and_keeps_its_digest() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let create = || {
        let request = deferring(api, &project).header("Repr-Digest", repr_digest(ABC));
        request.header("Content-Type", "application/offset+octet-stream")
    };
    let beginning = Answer::of(create().body("ab")).await;
    let upload = beginning.expect(201).headers["location"].to_str().unwrap();
    let last = announce(api, upload, 2, "c", "3").await;
    assert_eq!(file(api, &last.expect(204).headers).await["Size"], 3);
    let beginning = Answer::of(create().body("ab")).await;
    let upload = beginning.expect(201).headers["location"].to_str().unwrap();
    announce(api, upload, 2, "d", "3").await.is_problem(422, "invalid");
    Answer::of(tus(api, Method::HEAD, upload)).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_that_is_wrong_or_changes_is_refused() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let uploads = format!("{project}/uploads");
    for (defer, length) in [("0", None), ("true", None), ("1", Some("6"))] {
        let request = tus(api, Method::POST, &uploads).header("Upload-Defer-Length", defer);
        let request = request.header("Upload-Metadata", metadata("a.img"));
        let request = length.into_iter().fold(request, |r, size| r.header("Upload-Length", size));
        Answer::of(request).await.is_problem(400, "malformed");
    }
    let upload = deferred(api, &project).await;
    append(api, &upload, 0, "abc").await.expect(204);
    announce(api, &upload, 3, "", "x").await.is_problem(400, "malformed");
    announce(api, &upload, 3, "", "2").await.is_problem(409, "upload_length_mismatch");
    announce(api, &upload, 3, "", "5368709121").await.is_problem(413, "too_large");
    announce(api, &upload, 3, "de", "4").await.is_problem(413, "too_large");
    assert_eq!(head(api, &upload).await["upload-defer-length"], "1");
    let last = announce(api, &upload, 3, "d", "4").await;
    assert_eq!(file(api, &last.expect(204).headers).await["Size"], 4);
    let known = begun(api, &project, 6).await;
    announce(api, &known, 0, "abc", "7").await.is_problem(409, "upload_length_mismatch");
    announce(api, &known, 0, "abc", "6").await.expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_npm_uploads_a_stream_of_unknown_size() {
    let customer = Customer::new().await;
    let project = create_project(&customer.api).await;
    // The client announces the size with a last request without bytes. If all requests had as many bytes, it would wait
    // forever for more.
    for chunk_size in ["3000000", "9000000"] {
        upload_by_client(&customer, &project, chunk_size, "DEFERRED").await;
    }
}
