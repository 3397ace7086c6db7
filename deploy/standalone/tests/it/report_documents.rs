//! Documents of executions: HTML, PDF, and the templates of projects.

use std::{fs, path::Path};

use assay_testkit::{Answer, Api, test_dir};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

use crate::{
    customer::Customer,
    junit,
    world::{create_project, id},
};

/// A PNG picture of one pixel.
const PICTURE: &[u8] = b"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x01\
    \x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\x0d\x49\x44\x41\x54\x78\x9c\x63\
    \xd8\xa2\xac\xf5\x1f\x00\x04\x91\x02\x01\x8b\xd1\xfb\x17\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\
    \x60\x82";

/// Returns the path of an ended execution with a test that fails with this name and message, and one that passes.
async fn execution(api: &Api, project: &str, name: &str, message: &str) -> String {
    let open =
        json!({"Project": project.rsplit('/').next(), "TestSet": "Nightly", "Branch": "main"});
    let open = api.post("/api/executions", open).await.created();
    let at = format!("{project}/executions/{}", id(&open));
    let picture = format!("{at}/results/artifacts/shop.png");
    let picture = api.request(Method::PUT, &picture).header("Content-Type", "image/png");
    Answer::of(picture.body(PICTURE)).await.ok();
    let steps = json!([{
        "StepNr": 1, "Result": "Failed", "TestInput": "Press Pay", "ExpectedResult": "An order",
        "ActualResult": message,
        "Screenshots": ["shop.png", "https://elsewhere.example/cart.png"],
    }]);
    let results = json!([
        {"Identifier": name, "Result": "Failed", "Steps": steps},
        {"Identifier": "logs-in", "Result": "Passed"},
    ]);
    api.post(&format!("{at}/results"), results).await.ok();
    api.post(&format!("{at}/complete"), json!({})).await.expect(200);
    at
}

/// Returns the report as HTML.
async fn html(api: &Api, at: &str) -> String {
    let answer = api.get(&format!("{at}/report.html")).await;
    String::from_utf8(answer.expect(200).body.clone()).unwrap()
}

/// Returns how a reader of PDF files reads the report.
async fn pdf(api: &Api, at: &str) -> Value {
    let answer = api.get(&format!("{at}/report.pdf")).await;
    assert_eq!(answer.expect(200).headers["content-type"], "application/pdf");
    let file = test_dir().unwrap().join(format!("{}.pdf", Uuid::now_v7()));
    fs::write(&file, &answer.body).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut read = Command::new(own.join("../../target/tools/python/bin/python"));
    read.arg(own.join("tests/it/report_documents/read.py")).arg(&file);
    let read = read.output().await.unwrap();
    fs::remove_file(&file).unwrap();
    assert!(read.status.success(), "{read:#?}");
    serde_json::from_slice(&read.stdout).unwrap()
}

async fn upload(api: &Api, project: &str, name: &str, file: impl Into<reqwest::Body>) -> String {
    let request = api.request(Method::POST, &format!("{project}/files"));
    let file = Answer::of(request.header("X-File-Name", name).body(file)).await.created();
    id(&file).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_has_a_report_as_one_html_file() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let at = execution(api, &project, "pays", "no answer").await;

    let answer = api.get(&format!("{at}/report.html")).await;
    let file = format!("attachment; filename=\"{}.html\"", at.rsplit('/').next().unwrap());
    for (header, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-disposition", file.as_str()),
        ("x-content-type-options", "nosniff"),
        (
            "content-security-policy",
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
        ),
    ] {
        assert_eq!(answer.expect(200).headers[header], value, "{header}");
    }
    let report = html(api, &at).await;
    for part in [
        "<html lang=\"en\">",
        "1 of 2 test cases failed (1 new)",
        "pays",
        "logs-in",
        "no answer",
        "An order",
        "src=\"data:image/png;base64,iVBOR",
        "Picture left out: cart.png (it is not stored here).",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    assert!(!report.contains("<script") && !report.contains("elsewhere.example"), "{report}");
    let short = format!("/api/executions/{}", at.rsplit('/').next().unwrap());
    assert_eq!(html(api, &short).await, report, "the short path");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_as_pdf_is_tagged() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let at = execution(
        api,
        &project,
        "pays-\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        "no answer \u{1f480}\u{6f22}",
    )
    .await;

    let report = pdf(api, &at).await;
    assert_eq!(report["title"], "Nightly: test report");
    assert_eq!((&report["language"], &report["marked"]), (&json!("en"), &json!(true)));
    let standards = report["standards"].as_str().unwrap();
    assert!(standards.contains("pdfuaid:part") && standards.contains("pdfaid:part"), "{standards}");
    let tags = &report["tags"];
    assert_eq!((&tags["/H1"], &tags["/Figure"]), (&json!(1), &json!(1)), "{tags}");
    for tag in ["/H2", "/H3", "/P", "/Table", "/THead", "/TBody", "/TR", "/TH", "/TD", "/Caption"] {
        assert!(tags[tag].as_i64() >= Some(1), "{tag}: {tags}");
    }
    assert_eq!(report["alternatives"], json!(["Screenshot 1 of step 1 of the test"]));
    assert_eq!(report["pictures"], 1);
    let text = report["text"].as_str().unwrap();
    for part in
        ["Nightly: test report", "1 of 2 test cases failed", "no answer", "logs-in", "Page 1 of"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_of_the_project_decides_on_the_report() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let at = execution(api, &project, "pays", "no answer").await;
    let logo = upload(api, &project, "logo.png", PICTURE).await;
    let template = json!({
        "Title": "{testSet}: {verdict}",
        "Introduction": "{failed} of {total} failed on {branch}.\n\nSee {{wiki}}.",
        "Closing": "Questions: <qa@example.com>",
        "Color": "#102030",
        "Logo": logo,
        "Sections": ["Tests", "Verdict"],
    });
    let template = upload(api, &project, "report.json", template.to_string()).await;
    api.put(&project, json!({"ReportTemplateId": template})).await.ok();

    let report = html(api, &at).await;
    let places = [
        "alt=\"Logo\"",
        "<h1><bdi>Nightly: ",
        "1 of 2 failed on main.",
        "See {wiki}.",
        "<h2><bdi>Test cases</bdi></h2>",
        "<h2><bdi>Verdict</bdi></h2>",
        "Questions: &lt;qa@example.com&gt;",
    ];
    let places = places.map(|part| report.find(part).unwrap_or_else(|| panic!("{part}\n{report}")));
    assert!(places.is_sorted(), "{places:?}\n{report}");
    assert!(
        report.contains("--accent:#102030") && !report.contains("Causes of failures"),
        "{report}"
    );
    let report = pdf(api, &at).await;
    assert_eq!(report["alternatives"], json!(["Logo"]));
    assert!(report["text"].as_str().unwrap().contains("1 of 2 failed on main."));
}

/// A report of the night is worth more with a remark than not at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_template_is_a_note_in_the_report() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let (project, other) = (create_project(api).await, create_project(api).await);
    let at = execution(api, &project, "pays", "no answer").await;
    let elsewhere = upload(api, &other, "report.json", "{}").await;
    let endless = "{% for x in range(1000000000) %}{{ x }}{% endfor %}";
    for (id, fault) in [
        ("corporate-design-7".to_owned(), "its id is not that of a file of the project"),
        (elsewhere, "the project does not have a file with its id"),
        (upload(api, &project, "a.json", endless).await, "it has a fault: "),
        (
            upload(api, &project, "b.json", r#"{"Title": "{password}"}"#).await,
            "Title: there is not a placeholder `{password}`",
        ),
        (
            upload(api, &project, "c.json", r#"{"Include": "/etc/passwd"}"#).await,
            "unknown field `Include`",
        ),
        (
            upload(api, &project, "d.json", vec![b' '; 70_000]).await,
            "its file is larger than 64 KiB",
        ),
        (
            upload(api, &project, "e.json", json!({"Logo": "nowhere"}).to_string()).await,
            "The logo of the template is left out, since its id is not that of a file",
        ),
    ] {
        api.put(&project, json!({"ReportTemplateId": id})).await.ok();
        let report = html(api, &at).await;
        assert!(report.contains(fault), "{fault}\n{report}");
        assert!(report.contains("Causes of failures"), "the default layout");
    }
    assert!(
        pdf(api, &at).await["text"].as_str().unwrap().contains("Note: The logo of the template")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_results_stay_texts() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let name = "<script>alert(1)</script> \u{202e}txt.exe";
    let message = format!(
        "</pre><img src=x onerror=alert(1)>\u{1b}[31m\u{7}{}\u{1f469}\u{200d}\u{1f469}\u{fe0f}",
        "x".repeat(60_000),
    );
    let at = execution(api, &project, name, &message).await;
    let report = html(api, &at).await;
    assert!(
        report.contains("&lt;script&gt;alert(1)") && report.contains("U+202Etxt.exe"),
        "{report:.9000}"
    );
    for part in ["<script", "<img src=x", "\u{202e}", "\u{1b}", "\u{7}"] {
        assert!(!report.contains(part), "{part:?}");
    }
    assert!(report.contains("bytes are left out") && report.len() < 100_000, "{}", report.len());
    let report = pdf(api, &at).await;
    assert!(report["standards"].as_str().unwrap().contains("pdfuaid:part"));
    assert!(report["text"].as_str().unwrap().contains("bytes are left out"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_of_a_large_execution_counts_what_it_leaves_out() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Nightly"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    let execution = junit::upload(api, &set, junit::report(2_100)).await.created();
    let report = html(api, &format!("{project}/executions/{}", id(&execution))).await;
    assert!(report.contains("100 further test cases are left out."));
    assert_eq!(report.matches(">Passed</strong></td>").count(), 2_000);
}
