//! JUnit reports and their upload.

use std::fmt::Write;

use assay_testkit::{Answer, Api};
use reqwest::Method;

/// A report with this number of passed tests.
pub(crate) fn report(tests: usize) -> String {
    let mut report = String::from(r#"<testsuite name="many">"#);
    for n in 0..tests {
        let test = format_args!(r#"<testcase classname="suite" name="test {n}" time="0.01"/>"#);
        report.write_fmt(test).unwrap();
    }
    report + "</testsuite>"
}

/// Uploads a report to the results of a test set.
pub(crate) async fn upload(api: &Api, set: &str, report: impl Into<String>) -> Answer {
    let request = api.request(Method::POST, &format!("{set}/results"));
    Answer::of(request.header("Content-Type", "application/xml").body(report.into())).await
}
