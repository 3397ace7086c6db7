//! Uploads by the protocol tus.

use assay_testkit::{Answer, Api, eventually};
use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{Method, RequestBuilder, Url, header::HeaderMap};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{ABC, download, repr_digest};
use crate::{
    customer::Customer,
    world::{create_project, id},
};

/// Size of the parts in which uploads are stored, in bytes.
const PART: u64 = 16 << 20;

/// Returns a request by the protocol.
pub(super) fn tus(api: &Api, method: Method, path: &str) -> RequestBuilder {
    api.request(method, path).header("Tus-Resumable", "1.0.0")
}

pub(super) fn metadata(name: &str) -> String {
    format!("filename {}", BASE64_STANDARD.encode(name))
}

/// Begins an upload.
async fn begin(api: &Api, project: &str, name: &str, size: u64) -> Answer {
    let request = tus(api, Method::POST, &format!("{project}/uploads"));
    let request = request.header("Upload-Length", size).header("Upload-Metadata", metadata(name));
    Answer::of(request).await
}

/// Begins an upload, and returns its path.
pub(super) async fn begun(api: &Api, project: &str, size: u64) -> String {
    let answer = begin(api, project, "a.img", size).await;
    answer.created();
    answer.headers["location"].to_str().unwrap().to_owned()
}

/// Returns a request that appends to an upload.
pub(super) fn appending(api: &Api, upload: &str, offset: u64) -> RequestBuilder {
    let request = tus(api, Method::PATCH, upload).header("Upload-Offset", offset);
    request.header("Content-Type", "application/offset+octet-stream")
}

pub(super) async fn append(
    api: &Api,
    upload: &str,
    offset: u64,
    body: impl Into<reqwest::Body>,
) -> Answer {
    Answer::of(appending(api, upload, offset).body(body)).await
}

/// Returns the headers of an upload.
pub(super) async fn head(api: &Api, upload: &str) -> HeaderMap {
    let answer = Answer::of(tus(api, Method::HEAD, upload)).await;
    answer.expect(200).headers.clone()
}

/// Returns the number of bytes of an upload that are stored.
pub(super) async fn offset(api: &Api, upload: &str) -> u64 {
    head(api, upload).await["upload-offset"].to_str().unwrap().parse().unwrap()
}

/// Returns the file that the headers of a response lead to.
pub(super) async fn file(api: &Api, headers: &HeaderMap) -> Value {
    let file = api.get(headers["content-location"].to_str().unwrap()).await.ok();
    assert_eq!(headers["assay-file-id"], id(&file));
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_in_several_requests_becomes_a_file() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let created = begin(api, &project, "Pr\u{fc}fplan 2.pdf", 6).await;
    let shown = created.created();
    let upload = created.headers["location"].to_str().unwrap();
    assert_eq!(upload, format!("{project}/uploads/{}", id(&shown)));
    assert_eq!(
        (&shown["Offset"], &shown["Size"], &shown["FileId"]),
        (&json!(0), &json!(6), &Value::Null)
    );
    for (header, value) in [
        ("tus-resumable", "1.0.0"),
        ("upload-offset", "0"),
        ("upload-length", "6"),
        ("upload-metadata", &metadata("Pr\u{fc}fplan 2.pdf")),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(head(api, upload).await[header], value, "{header}");
    }
    assert!(created.headers["upload-expires"].to_str().unwrap().ends_with(" GMT"));

    let first = append(api, upload, 0, "abc").await;
    assert_eq!(first.expect(204).headers["upload-offset"], "3");
    assert!(!first.headers.contains_key("assay-file-id"));
    append(api, upload, 0, "abc").await.is_problem(409, "upload_offset_mismatch");
    append(api, upload, 4, "c").await.is_problem(409, "upload_offset_mismatch");
    append(api, upload, 3, "abcd").await.is_problem(413, "too_large");
    assert_eq!(api.get(&format!("{project}/files")).await.ok(), json!([]));
    let last = append(api, upload, 3, "def").await;
    assert_eq!(last.expect(204).headers["upload-offset"], "6");
    let stored = file(api, &last.headers).await;
    assert_eq!((&stored["Name"], &stored["Size"]), (&json!("Pr\u{fc}fplan 2.pdf"), &json!(6)));
    assert_eq!(download(api, &stored, &[]).await.expect(200).body, b"abcdef");
    // A client that has lost the last response finds the file.
    assert_eq!(file(api, &head(api, upload).await).await, stored);
    assert_eq!(api.get(upload).await.ok()["FileId"], stored["Id"]);
    assert_eq!(append(api, upload, 6, "").await.expect(204).headers["assay-file-id"], id(&stored));
    append(api, upload, 6, "g").await.is_problem(413, "too_large");

    Answer::of(tus(api, Method::DELETE, upload)).await.expect(204);
    Answer::of(tus(api, Method::HEAD, upload)).await.expect(404);
    assert_eq!(download(api, &stored, &[]).await.expect(200).body, b"abcdef");
    let empty = begin(api, &project, "empty.txt", 0).await;
    assert_eq!(file(api, &empty.headers).await["Size"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_breaks_off_keeps_what_has_arrived() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let bytes: Vec<u8> =
        (0..20_000_003_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let upload = begun(api, &project, bytes.len() as u64).await;
    let url = Url::parse(&customer.url()).unwrap();
    let authority = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let mut connection = TcpStream::connect(&authority).await.unwrap();
    let request = format!(
        "PATCH {upload} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {}\r\n\
         Tus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Length: {}\r\n\
         Content-Type: application/offset+octet-stream\r\n\r\n",
        api.token(),
        bytes.len()
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    connection.write_all(&bytes[..18_000_001]).await.unwrap();
    // Parts have 16 MiB.
    eventually("the first part", || async { (offset(api, &upload).await == PART).then_some(()) })
        .await;
    append(api, &upload, PART, "x").await.is_problem(409, "upload_in_use");
    drop(connection);

    let last = eventually("the end of the first request", || async {
        let stored = offset(api, &upload).await;
        let rest = bytes[usize::try_from(stored).unwrap()..].to_vec();
        let last = append(api, &upload, stored, rest).await;
        (last.status == 204).then_some(last)
    })
    .await;
    let stored = file(api, &last.headers).await;
    assert!(download(api, &stored, &[]).await.expect(200).body == bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_body_is_not_appended_and_a_damaged_file_not_stored() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let upload = begun(api, &project, 6).await;
    let send = async |checksum: &str, body: &'static str| {
        let request = appending(api, &upload, 0).header("Upload-Checksum", checksum);
        Answer::of(request.body(body)).await
    };
    let sha256 = repr_digest(ABC);
    let sha256 = format!("sha256 {}", sha256.trim_start_matches("sha-256=").trim_matches(':'));
    send(&sha256, "abd").await.is_problem(460, "checksum_mismatch");
    // From FIPS 180-1.
    send("sha1 qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", "abd").await.is_problem(460, "checksum_mismatch");
    for wrong in ["md5 kAFQmDzST7DWlj99KOF/cg==", "sha1", "sha256 YQ=="] {
        send(wrong, "abc").await.is_problem(400, "malformed");
    }
    assert_eq!(offset(api, &upload).await, 0);
    send("sha1 qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", "abc").await.expect(204);
    assert_eq!(offset(api, &upload).await, 3);

    let request = tus(api, Method::POST, &format!("{project}/uploads"));
    let request = request.header("Upload-Length", 3).header("Upload-Metadata", metadata("a.img"));
    let announced = Answer::of(request.header("Repr-Digest", repr_digest(ABC))).await;
    let announced = announced.expect(201).headers["location"].to_str().unwrap();
    append(api, announced, 0, "abd").await.is_problem(422, "invalid");
    Answer::of(tus(api, Method::HEAD, announced)).await.expect(404);
    assert_eq!(api.get(&format!("{project}/files")).await.ok(), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_violate_the_protocol_are_refused() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let uploads = format!("{project}/uploads");
    let options = Answer::of(customer.anonymous().request(Method::OPTIONS, &uploads)).await;
    assert_eq!(options.expect(204).headers["tus-version"], "1.0.0");
    assert_eq!(
        options.headers["tus-extension"],
        "creation,creation-defer-length,creation-with-upload,expiration,checksum,termination"
    );
    assert_eq!(options.headers["tus-max-size"], (5_u64 << 30).to_string());
    let upload = begun(api, &project, 6).await;

    for version in [None, Some("0.2.2")] {
        let request = api.request(Method::HEAD, &upload);
        let request = version.into_iter().fold(request, |r, v| r.header("Tus-Resumable", v));
        let refused = Answer::of(request).await;
        assert_eq!(refused.expect(412).headers["tus-version"], "1.0.0");
    }
    for name in ["", "..", "../a.img", "a/b", "a\n"] {
        begin(api, &project, name, 6).await.is_problem(422, "invalid");
    }
    let lengthless = tus(api, Method::POST, &uploads).header("Upload-Metadata", metadata("a.img"));
    Answer::of(lengthless).await.is_problem(400, "malformed");
    begin(api, &project, "a.img", (5 << 30) + 1).await.is_problem(413, "too_large");
    let other = tus(api, Method::PATCH, &upload).header("Upload-Offset", 0);
    let other = other.header("Content-Type", "application/octet-stream").body("abc");
    Answer::of(other).await.is_problem(415, "unsupported_media_type");
    let typed = tus(api, Method::POST, &uploads).header("Upload-Length", 6);
    let typed = typed.header("Upload-Metadata", metadata("a.img"));
    let typed = typed.header("Content-Type", "application/octet-stream").body("abc");
    Answer::of(typed).await.is_problem(415, "unsupported_media_type");
    // A digest that is not checked is not accepted.
    for (header, value) in
        [("Content-Digest", repr_digest(ABC)), ("Digest", "SHA-256=x".to_owned())]
    {
        let digested = tus(api, Method::POST, &uploads).header("Upload-Length", 3);
        let digested = digested.header("Upload-Metadata", metadata("a.img"));
        Answer::of(digested.header(header, &value)).await.is_problem(422, "invalid");
        let digested = appending(api, &upload, 0).header(header, value);
        Answer::of(digested.body("abc")).await.is_problem(422, "invalid");
    }
    let digested = appending(api, &upload, 0).header("Repr-Digest", repr_digest(ABC));
    Answer::of(digested.body("abc")).await.is_problem(422, "invalid");
    let nowhere = tus(api, Method::PATCH, &upload);
    let nowhere = nowhere.header("Content-Type", "application/offset+octet-stream").body("abc");
    Answer::of(nowhere).await.is_problem(400, "malformed");

    let stranger = Customer::new().await;
    append(&stranger.api, &upload, 0, "abc").await.is_problem(404, "not_found");
    Answer::of(tus(&stranger.api, Method::DELETE, &upload)).await.is_problem(404, "not_found");
    let reader = customer.create_member("reader", "Login, Read").await;
    append(&reader.api, &upload, 0, "abc").await.is_problem(403, "forbidden");
    assert_eq!(offset(api, &upload).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_stands_for_the_method_that_it_names() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let upload = begun(api, &project, 3).await;
    let post = |api: &Api, method: &'static str| {
        tus(api, Method::POST, &upload).header("X-HTTP-Method-Override", method)
    };
    let patch = |api: &Api| {
        let patch = post(api, "PATCH").header("Upload-Offset", 0);
        patch.header("Content-Type", "application/offset+octet-stream").body("ab")
    };
    let reader = customer.create_member("reader", "Login, Read").await;
    Answer::of(patch(&reader.api)).await.is_problem(403, "forbidden");
    for method in ["HEAD", "DELETE"] {
        Answer::of(post(&reader.api, method)).await.expect(403);
    }
    assert_eq!(Answer::of(patch(api)).await.expect(204).headers["upload-offset"], "2");
    let shown = Answer::of(post(api, "HEAD")).await;
    assert_eq!(shown.expect(200).headers["upload-offset"], "2");
    assert!(shown.body.is_empty());
    for other in ["GET", "PUT", "patch", ""] {
        Answer::of(post(api, other)).await.is_problem(405, "method_not_allowed");
    }
    Answer::of(post(api, "DELETE")).await.expect(204);
    Answer::of(tus(api, Method::HEAD, &upload)).await.expect(404);
}
