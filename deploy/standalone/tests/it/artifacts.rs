//! Artifacts of executions: uploads and downloads.

use assay_testkit::{Answer, Api};
use futures::stream;
use reqwest::{
    Body, Method,
    multipart::{Form, Part},
};
use serde_json::json;

use crate::{
    customer::Customer,
    junit::{report, upload},
    world::{create_project, id},
};

async fn put(api: &Api, path: &str, content_type: &str, file: Vec<u8>) -> Answer {
    let request = api.request(Method::PUT, path).header("Content-Type", content_type);
    Answer::of(request.body(file)).await
}

/// Clients that are generated send files as forms.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_form_is_stored_byte_for_byte() {
    let customer = Customer::new().await;
    let opened = json!({"Project": "Shop", "TestSet": "Nightly"});
    let execution = customer.api.post("/api/executions", opened).await.created();
    // The short path, without the project.
    let at = format!("/api/executions/{}/results/artifacts", id(&execution));
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let part = |bytes: &[u8]| {
        Part::bytes(bytes.to_vec()).file_name("any.bin").mime_str("image/png").unwrap()
    };
    let send = |form: Form| {
        let request = customer.api.request(Method::PUT, &format!("{at}/shot.png"));
        Answer::of(request.multipart(form))
    };
    let form = Form::new().text("note", "no file").part("file", part(&bytes));
    assert_eq!(send(form).await.ok()["Size"], json!(bytes.len()));
    let listed = customer.api.get(&at).await.ok();
    assert_eq!(listed[0]["ContentType"], "image/png");
    let link = listed[0]["Uri"].as_str().unwrap().strip_prefix("https://assay.test").unwrap();
    let read = || customer.anonymous().request(Method::GET, link);
    let whole = Answer::of(read()).await;
    assert!(whole.expect(200).body == bytes);
    assert_eq!(whole.headers["accept-ranges"], "bytes");

    let of_tag = async |tag: &str| {
        let request = read().header("Range", "bytes=10-19").header("If-Range", tag);
        Answer::of(request).await
    };
    let some = of_tag(whole.headers["etag"].to_str().unwrap()).await;
    assert_eq!(some.expect(206).headers["content-range"], "bytes 10-19/100000");
    assert!(some.body == bytes[10..20]);
    assert!(of_tag("\"another\"").await.expect(200).body == bytes);
    let beyond = Answer::of(read().header("Range", "bytes=100000-")).await;
    beyond.is_problem(416, "range_not_satisfiable");
    assert_eq!(beyond.headers["content-range"], "bytes */100000");

    let several = Form::new().part("file", part(b"a")).part("more", part(b"b"));
    send(several).await.expect(400);
    let none = Form::new().text("file", "no file");
    assert_eq!(send(none).await.expect(422).json()["errors"][0]["pointer"], "/file");
}

/// Size of a large artifact, in MiB. `make large-files` uses a larger one.
const LARGE: &str = "64";

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to be parsed")]
fn mebibytes() -> u64 {
    std::env::var("ASSAY_LARGE_FILE_MIB").unwrap_or_else(|_| LARGE.to_owned()).parse().unwrap()
}

/// Returns a mebibyte of a video, different for each number.
fn mebibyte(number: u64) -> Vec<u8> {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().repeat(1 << 17)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_video_that_is_larger_than_a_message_is_uploaded_and_downloaded() {
    let customer = Customer::new().await;
    let opened = json!({"Project": "Shop", "TestSet": "Nightly"});
    let execution = customer.api.post("/api/executions", opened).await.created();
    let at = format!("/api/executions/{}/results/artifacts/run.webm", id(&execution));
    let size = mebibytes();
    let video = stream::iter((0..size).map(|number| Ok::<_, std::io::Error>(mebibyte(number))));
    let request = customer.api.request(Method::PUT, &at).header("Content-Type", "video/webm");
    let request = request.header("Content-Length", size << 20);
    let stored = Answer::of(request.body(Body::wrap_stream(video))).await.ok();
    assert_eq!(stored["Size"], json!(size << 20));

    let link = stored["Uri"].as_str().unwrap().strip_prefix("https://assay.test").unwrap();
    let mut video = customer.anonymous().request(Method::GET, link).send().await.unwrap();
    let (mut pending, mut number) = (Vec::new(), 0);
    while let Some(chunk) = video.chunk().await.unwrap() {
        pending.extend_from_slice(&chunk);
        while pending.len() >= 1 << 20 {
            let rest = pending.split_off(1 << 20);
            assert!(pending == mebibyte(number), "mebibyte {number} differs");
            (pending, number) = (rest, number + 1);
        }
    }
    assert_eq!((pending.len(), number), (0, size));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_or_too_large_artifact_is_refused() {
    let customer = Customer::new().await;
    let opened = json!({"Project": "Shop", "TestSet": "Nightly"});
    let execution = customer.api.post("/api/executions", opened).await.created();
    let at = format!("/api/executions/{}/results/artifacts", id(&execution));
    // SHA-256 of `abc`, from FIPS 180-2.
    let digest = "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:";
    let send = async |body: &'static str| {
        let request = customer.api.request(Method::PUT, &format!("{at}/a.bin"));
        Answer::of(request.header("Repr-Digest", digest).body(body)).await
    };
    send("abd").await.is_problem(422, "invalid");
    assert_eq!(send("abc").await.ok()["Size"], 3);
    let form = Form::new().part("file", Part::bytes(b"abc".to_vec()).file_name("a.bin"));
    let request = customer.api.request(Method::PUT, &format!("{at}/b.bin"));
    let request = request.header("Repr-Digest", digest).multipart(form);
    Answer::of(request).await.is_problem(422, "invalid");
    // The size is refused before the body is sent.
    let request = customer.api.request(Method::PUT, &format!("{at}/c.bin"));
    let request = request.header("Content-Length", (5_u64 << 30) + 1);
    let never = Body::wrap_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>());
    Answer::of(request.body(never)).await.is_problem(413, "too_large");
    assert_eq!(customer.api.get(&at).await.ok().as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screenshot_is_uploaded_listed_and_downloaded() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Nightly"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    upload(api, &set, report(1)).await.expect(201);
    let execution = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
    let execution = execution.created();
    let at = format!("{project}/executions/{}/results", id(&execution));

    let page = "<script>alert(1)</script>".repeat(1000).into_bytes();
    let kept = put(api, &format!("{at}/artifacts/page.html"), "text/html", page.clone()).await.ok();
    assert_eq!((&kept["Name"], &kept["Size"]), (&json!("page.html"), &json!(page.len())));
    put(api, &format!("{at}/artifacts/shot.png"), "image/png", b"PNG".to_vec()).await.ok();
    for wrong in ["..%2fx", "%2e%2e", "a%2fb", "a%00", ".hidden"] {
        let refused = put(api, &format!("{at}/artifacts/{wrong}"), "", b"x".to_vec()).await;
        assert!([404, 422].contains(&refused.status.as_u16()), "{wrong}: {refused}");
    }
    let identifier = &execution["TestReports"][0]["TestCaseIdentifier"];
    let results = json!([{
        "Identifier": identifier, "Result": "Failed", "DurationInSec": 1, "ReportUri": "page.html",
        "Steps": [{"StepNr": 1, "Result": "Failed", "DurationInSec": 1, "Screenshots": ["shot.png"]}],
    }]);
    api.post(&at, results).await.ok();
    let report = &execution["TestReports"][0];
    let field = |name: &str| report[name].as_str().unwrap();
    let instances = format!(
        "{project}/testcases/{}/testplans/{}/testreports/{}/instances",
        field("TestCaseId"),
        field("TestPlanId"),
        id(report)
    );
    let entry = api.get(&instances).await.ok();
    let instance = api.get(&format!("{instances}/{}", id(&entry[0]))).await.ok();

    // The link has the public address; the test replaces it by the local one.
    let anonymous = customer.anonymous();
    let path = |link: &serde_json::Value| {
        link.as_str().unwrap().strip_prefix("https://assay.test").unwrap().to_owned()
    };
    let link = path(&instance["ReportUri"]);
    let file = anonymous.get(&link).await;
    assert_eq!(file.expect(200).body, page);
    for (header, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment; filename=\"page.html\""),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(file.headers[header], value, "{header}");
    }
    let shot = anonymous.get(&path(&instance["Steps"][0]["Screenshots"][0])).await;
    assert_eq!(shot.expect(200).headers["content-type"], "image/png");
    assert_eq!(shot.body, b"PNG");

    for forged in [
        link.replace("page.html", "other.html"),
        link.replace("expires=", "expires=9"),
        link.split("&signature").next().unwrap().to_owned(),
        link.split('?').next().unwrap().to_owned(),
    ] {
        anonymous.get(&forged).await.is_problem(403, "forbidden");
    }
    put(&anonymous, &format!("{at}/artifacts/x"), "", b"x".to_vec())
        .await
        .is_problem(401, "unauthenticated");
}
