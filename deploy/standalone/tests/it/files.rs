//! Files of projects: uploads, downloads, and what remains when the catalog is killed.

pub(crate) mod breaking;
mod broken;
mod client;
mod creation;
mod deferred;
mod killed;
mod resumable;

use std::time::Duration;

use assay_testkit::{Answer, Api};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures::stream;
use reqwest::{
    Body, Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use tokio::time::interval;

use crate::{
    customer::Customer,
    world::{create_project, id},
};

/// SHA-256 of `abc`, from FIPS 180-2.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Returns the header with a SHA-256 in hexadecimal digits (RFC 9530).
fn repr_digest(sha256: &str) -> String {
    let byte = |index| u8::from_str_radix(&sha256[index..index + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..64).step_by(2).map(byte).collect();
    format!("sha-256=:{}:", BASE64_STANDARD.encode(bytes))
}

async fn upload(api: &Api, project: &str, name: &str, file: impl Into<Body>) -> Answer {
    let request = api.request(Method::POST, &format!("{project}/files"));
    Answer::of(request.header("X-File-Name", name).body(file)).await
}

async fn download(api: &Api, file: &Value, headers: &[(&str, &str)]) -> Answer {
    let request = api.request(Method::GET, file["Url"].as_str().unwrap());
    Answer::of(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_uploaded_listed_downloaded_and_deleted() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let request = api.request(Method::POST, &format!("{project}/files"));
    let request = request
        .header("X-File-Name", "Pr%C3%BCfplan%202.html")
        .header("Content-Type", "text/html")
        .header("Repr-Digest", repr_digest(ABC));
    let created = Answer::of(request.body("abc")).await;
    let file = created.created();
    assert_eq!(created.headers["location"], format!("{project}/files/{}", id(&file)));
    assert_eq!((&file["Name"], &file["Size"]), (&json!("Pr\u{fc}fplan 2.html"), &json!(3)));
    assert_eq!((&file["Sha256"], &file["ContentType"]), (&json!(ABC), &json!("text/html")));
    assert_eq!(api.get(&format!("{project}/files/{}", id(&file))).await.ok(), file);
    assert_eq!(api.get(&format!("{project}/files?q=pr\u{fc}f")).await.ok(), json!([file]));
    assert_eq!(api.get(&format!("{project}/files?sha256={ABC}")).await.ok(), json!([file]));
    let none = api.get(&format!("{project}/files?sha256={}", "0".repeat(64))).await.ok();
    assert_eq!(none, json!([]));
    api.get(&format!("{project}/files?sha256=x")).await.is_problem(422, "invalid");

    let whole = download(api, &file, &[("Accept-Encoding", "gzip")]).await;
    assert_eq!(whole.expect(200).body, b"abc");
    for (header, value) in [
        ("content-type", "application/octet-stream"),
        ("content-length", "3"),
        ("accept-ranges", "bytes"),
        ("etag", &format!("\"{ABC}\"")),
        ("repr-digest", &repr_digest(ABC)),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        (
            "content-disposition",
            "attachment; filename=\"Pr_fplan 2.html\"; filename*=UTF-8''Pr%C3%BCfplan%202%2Ehtml",
        ),
    ] {
        assert_eq!(whole.headers[header], value, "{header}");
    }
    let head = api.request(Method::HEAD, file["Url"].as_str().unwrap());
    let head = Answer::of(head).await;
    assert_eq!(
        (head.expect(200).headers["content-length"].to_str().unwrap(), &head.body[..]),
        ("3", &b""[..])
    );
    customer
        .anonymous()
        .get(file["Url"].as_str().unwrap())
        .await
        .is_problem(401, "unauthenticated");

    let at = format!("{project}/files/{}", id(&file));
    api.delete(&at).await.expect(204);
    api.delete(&at).await.is_problem(404, "not_found");
    download(api, &file, &[]).await.is_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_continued_where_it_was_cut_off() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let bytes: Vec<u8> =
        (0..2_000_003_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let file = upload(api, &project, "a.img", bytes.clone()).await.created();
    let tag = format!("\"{}\"", file["Sha256"].as_str().unwrap());

    let first = download(api, &file, &[("Range", "bytes=0-1234566")]).await;
    assert_eq!(first.expect(206).headers["content-range"], "bytes 0-1234566/2000003");
    let rest = [("Range", "bytes=1234567-"), ("If-Range", tag.as_str())];
    let rest = download(api, &file, &rest).await;
    assert_eq!(rest.expect(206).headers["content-length"], "765436");
    assert!([first.body, rest.body].concat() == bytes);
    let last = download(api, &file, &[("Range", "bytes=-3")]).await;
    assert_eq!(last.expect(206).body, bytes[2_000_000..]);

    let changed = [("Range", "bytes=5-"), ("If-Range", "\"another\"")];
    assert!(download(api, &file, &changed).await.expect(200).body == bytes);
    let several = download(api, &file, &[("Range", "bytes=0-1,5-6")]).await;
    assert!(several.expect(200).body == bytes, "only one range is supported");
    let beyond = download(api, &file, &[("Range", "bytes=2000003-")]).await;
    beyond.is_problem(416, "range_not_satisfiable");
    assert_eq!(beyond.headers["content-range"], "bytes */2000003");
    download(api, &file, &[("If-None-Match", &tag)]).await.expect(304);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_has_one_file_and_no_digest() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let part = |name: &str| Part::bytes(b"abc".to_vec()).file_name(name.to_owned());
    let send = async |form: Form| {
        Answer::of(api.request(Method::POST, &format!("{project}/files")).multipart(form)).await
    };
    let typed = part("a.png").mime_str("image/png").unwrap();
    let file = send(Form::new().text("note", "ignored").part("file", typed)).await.created();
    assert_eq!((&file["Name"], &file["Sha256"]), (&json!("a.png"), &json!(ABC)));
    let shown = download(api, &file, &[]).await;
    assert_eq!(shown.expect(200).headers["content-type"], "image/png");

    let two = Form::new().part("file", part("a")).part("other", part("b"));
    send(two).await.is_problem(422, "invalid");
    send(Form::new().text("note", "no file")).await.is_problem(422, "invalid");
    send(Form::new().part("file", part("../a"))).await.is_problem(422, "invalid");
    let request = api.request(Method::POST, &format!("{project}/files"));
    let request = request.header("Content-Digest", repr_digest(ABC));
    let digest = Answer::of(request.multipart(Form::new().part("file", part("a")))).await;
    digest.is_problem(422, "invalid");
    assert_eq!(api.get(&format!("{project}/files")).await.ok(), json!([file]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_or_nameless_file_is_not_stored() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    for (header, value) in [
        ("Repr-Digest", repr_digest(ABC)),
        ("Content-Digest", repr_digest(ABC)),
        (
            "Digest",
            format!(
                "SHA-256={}",
                repr_digest(ABC).trim_start_matches("sha-256=").trim_matches(':')
            ),
        ),
        ("Digest", "SHA-256=?".to_owned()),
    ] {
        let request = api.request(Method::POST, &format!("{project}/files"));
        let request = request.header("X-File-Name", "a").header(header, value);
        Answer::of(request.body("abd")).await.is_problem(422, "invalid");
    }
    for name in ["", "..", "a%2Fb", "a%00", "%FF", "a%0A"] {
        upload(api, &project, name, "abc").await.is_problem(422, "invalid");
    }
    let reader = customer.create_member("reader", "Login, Read").await;
    upload(&reader.api, &project, "a", "abc").await.is_problem(403, "forbidden");
    assert_eq!(api.get(&format!("{project}/files")).await.ok(), json!([]));
}

/// Chunks arrive for longer than the two minutes of a call.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_may_take_longer_than_a_call() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let pace = interval(Duration::from_secs(14));
    let chunks = stream::unfold((0_u8, pace), async |(n, mut pace)| {
        pace.tick().await;
        (n < 10).then(|| (Ok::<_, std::io::Error>(vec![n; 1000]), (n + 1, pace)))
    });
    let file = upload(api, &project, "slow.img", Body::wrap_stream(chunks)).await.created();
    assert_eq!(file["Size"], 10_000);
    let bytes = download(api, &file, &[]).await.expect(200).body.clone();
    assert!(bytes.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at / 1000));
}
