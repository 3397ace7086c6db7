//! Pages are small, so that they appear at once on slow connections.

use std::fmt::Write as _;

use super::Reader;
use crate::{customer::Customer, world::id};

/// Maximum size of a page with its style and script, in bytes, and of what is sent.
const LIMIT: usize = 110_000;
const SENT_LIMIT: usize = 30_000;

/// Number of tests of a report, which fill the lists of pages.
const TESTS: usize = 120;

/// A report of tests of which the second half fails, with 30 causes.
fn report() -> String {
    let tests = (0..TESTS).fold(String::new(), |mut tests, nr| {
        let cause = nr % 30;
        let failure = format!(
            "<failure message='ServiceError: service-{cause}-x did not answer'>ServiceError: \
             service-{cause}-x did not answer\n    at pay (src/checkout.ts:{nr}:7)</failure>"
        );
        let failure = if nr < TESTS / 2 { String::new() } else { failure };
        let _ = write!(
            tests,
            "<testcase classname='src/checkout/payment.spec.ts' time='1.{nr}' \
             name='checkout with a voucher, variant {nr}, ships to an island'>{failure}</testcase>"
        );
        tests
    });
    format!("<testsuite>{tests}</testsuite>")
}

impl Reader {
    /// Returns the size of a file, and how much of it is sent.
    async fn weigh(&self, path: &str) -> (usize, usize) {
        let whole = self.get(path).await;
        let compressed = self.request(reqwest::Method::GET, path).header("accept-encoding", "gzip");
        let compressed = assay_testkit::Answer::of(compressed).await;
        assert_eq!(compressed.expect(200).headers["content-encoding"], "gzip");
        (whole.expect(200).body.len(), compressed.body.len())
    }
}

#[tokio::test]
async fn the_first_page_of_a_reader_is_small() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    for _ in 0..3 {
        reader.upload(&report()).await;
    }
    let (execution, path) = reader.upload(&report()).await;
    let failed = reader.api().get(&format!("{path}/reports?result=Failed")).await.ok();
    let project = format!("/projects/{}", execution["ProjectId"].as_str().unwrap());
    let page = format!("/executions/{}", id(&execution));

    let html = reader.get(&page).await;
    let html = String::from_utf8_lossy(&html.expect(200).body).into_owned();
    let files = html.split('"').filter(|file| file.starts_with("/assets/"));
    let mut files: Vec<_> = files.filter(|file| !file.contains("icon")).collect();
    files.dedup();
    assert_eq!(files.len(), 2, "{files:?}");
    let (mut size, mut sent) = (0, 0);
    for file in files {
        let (of_file, sent_of_file) = reader.weigh(file).await;
        (size, sent) = (size + of_file, sent + sent_of_file);
    }
    for page in [
        page.clone(),
        format!("{page}?view=all"),
        format!("/reports/{}", id(&failed[0])),
        format!("/cases/{}", failed[0]["TestCaseId"].as_str().unwrap()),
        format!("{project}/sets/{}", execution["TestSetId"].as_str().unwrap()),
        format!("{project}/sets/{}?all=tests", execution["TestSetId"].as_str().unwrap()),
        format!("{project}/cases"),
        project.clone(),
    ] {
        let (of_page, sent_of_page) = reader.weigh(&page).await;
        let (total, total_sent) = (size + of_page, sent + sent_of_page);
        println!("{page}: {total} bytes, of which {total_sent} are sent");
        assert!(total < LIMIT && total_sent < SENT_LIMIT, "{page}: {total}, {total_sent}");
    }
}
