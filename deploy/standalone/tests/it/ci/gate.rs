//! Verdicts of jobs: what is new fails a job, and what is known does not.

use std::fs;

use serde_json::{Value, json};

use super::{Job, executions};
use crate::{
    customer::Customer,
    world::{id, in_days},
};

/// A report of twelve tests that fail with one cause, and of one that is fixed or not.
fn report(failing: bool, also: &str) -> String {
    let cases: Vec<_> = (0..12)
        .map(|nr| {
            let failure = format!(
                "<failure message=\"ConnectionError: 10.0.0.{nr}:5{nr:03} refused after {nr} s\"/>"
            );
            let failure = if failing { failure } else { String::new() };
            format!("<testcase classname=\"shop\" name=\"t{nr}\">{failure}</testcase>")
        })
        .collect();
    let cases = cases.concat();
    format!("<testsuite name=\"s\">{cases}{also}</testsuite>")
}

const BROKEN: &str =
    "<testcase classname='shop' name='prints'><failure message='no paper'/></testcase>";
const FIXED: &str = "<testcase classname='shop' name='prints'/>";
const RETRIED: &str = "<testcase classname='shop' name='prints'>
    <flakyFailure message='no paper'/></testcase>";

/// Uploads a report in four shards, and returns the exit codes and outputs.
async fn shards(job: &Job, key: &str, text: &str) -> Vec<(i32, String)> {
    job.report(text);
    let whole = fs::read_to_string(job.folder.join("reports/junit.xml")).unwrap();
    let cases: Vec<&str> = whole
        .trim_start_matches("<testsuite name=\"s\">")
        .trim_end_matches("</testsuite>")
        .split_inclusive("</testcase>")
        .collect();
    let mut uploads = Vec::new();
    for (nr, part) in cases.chunks(cases.len().div_ceil(4)).enumerate() {
        let name = format!("shard-{nr}.xml");
        let part = format!("<testsuite name=\"s\">{}</testsuite>", part.concat());
        fs::write(job.folder.join(&name), part).unwrap();
        uploads.push(format!(
            "upload {name} --key {key} --branch main --reporter {nr} --reporters 4 --gate"
        ));
    }
    assert_eq!(uploads.len(), 4);
    let uploads: Vec<_> = uploads.iter().map(|upload| job.assay_ci(upload)).collect();
    futures::future::join_all(uploads).await
}

async fn summary(customer: &Customer, execution: &Value) -> Value {
    let path = format!("/api/projects/0/executions/{}/summary", id(execution));
    customer.api.get(&path).await.ok()["Changes"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_cause_does_not_fail_a_job_until_its_date() {
    let customer = Customer::new().await;
    let job = Job::new(&customer).await;
    let upload = "upload reports/junit.xml --branch main --gate";
    job.report(&report(false, BROKEN));
    let (code, output) = job.assay_ci(upload).await;
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("not met: NewFailures: 1 new failure, at most 0 allowed"), "{output}");
    job.report(&report(false, FIXED));
    let (code, output) = job.assay_ci(upload).await;
    assert_eq!(code, 0, "{output}");
    assert_eq!(summary(&customer, &executions(&customer.api).await[0]).await["Fixed"], 1);

    // One cause in twelve tests, which four shards report.
    for (code, output) in shards(&job, "red", &report(true, FIXED)).await {
        assert_eq!(code, 1, "{output}");
        assert!(output.contains("12 new failures"), "{output}");
    }
    let red = executions(&customer.api).await.remove(0);
    let at = format!("/api/projects/0/executions/{}", id(&red));
    let causes = customer.api.get(&format!("{at}/failures")).await.ok();
    assert_eq!(causes.as_array().unwrap().len(), 1, "{causes:#}");
    assert_eq!((&causes[0]["Count"], &causes[0]["Variants"]), (&json!(12), &json!(12)));
    let review = json!({
        "Fingerprint": causes[0]["Fingerprint"], "Status": "Accepted", "Ticket": "SHOP-9",
        "Known": {"EveryCase": true, "MutedUntil": in_days(30)},
    });
    let reviewed = customer.api.put(&format!("{at}/reviews"), review).await.ok();
    assert_eq!((&reviewed["Reviewed"], &reviewed["KnownFailures"]), (&json!(12), &json!(1)));
    let text = async |path: String| {
        String::from_utf8(customer.api.get(&path).await.expect(200).body.clone()).unwrap()
    };
    let markdown = text(format!("{at}/verdict.md")).await;
    assert!(markdown.contains("| ✅ | NewFailures |"), "{markdown}");
    assert!(text(format!("{at}/verdict.svg")).await.contains("tests: passed"));

    // The next run arrives muted; a retried test is flaky although the run passes.
    job.report(&report(true, RETRIED));
    let (code, output) = job.assay_ci(upload).await;
    assert_eq!(code, 0, "{output}");
    let muted = summary(&customer, &executions(&customer.api).await[0]).await;
    assert_eq!(
        (&muted["Muted"], &muted["Flaky"], &muted["New"]),
        (&json!(12), &json!(1), &json!(0))
    );
    assert_eq!(muted["Unreviewed"], 0);

    // After its date, a known failure counts again.
    let project = format!("/api/projects/{}", red["ProjectId"].as_str().unwrap());
    let known = customer.api.get(&format!("{project}/knownfailures")).await.ok();
    let known = format!("{project}/knownfailures/{}", id(&known[0]));
    customer.api.put(&known, json!({"MutedUntil": in_days(-1)})).await.ok();
    job.report(&report(true, FIXED).replace("t3", "other"));
    let (code, output) = job.assay_ci(upload).await;
    assert_eq!(code, 1, "{output}");
    assert!(output.contains("1 new failure"), "{output}");
}
