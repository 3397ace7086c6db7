//! The state of a test case on its page.

use assay_testkit::Answer;
use reqwest::Method;

use super::{Reader, filled, junit};
use crate::{customer::Customer, world::in_days};

/// Sends the form of a test case, and returns the answer.
async fn set(reader: &Reader, case: &str, fields: &[(&str, &str)]) -> Answer {
    let request = reader.request(Method::POST, &format!("/cases/{case}/state"));
    Answer::of(filled(request.header("origin", &reader.url), fields)).await
}

async fn read(reader: &Reader, page: &str) -> String {
    String::from_utf8_lossy(&reader.get(page).await.expect(200).body).into_owned()
}

#[tokio::test]
async fn a_test_is_muted_skipped_and_enabled_on_its_page() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.upload(&junit("no bank", "")).await;
    let reports = reader.api().get(&format!("{path}/reports")).await.ok();
    let case = reports[0]["TestCaseId"].as_str().unwrap();
    let page = format!("/cases/{case}");
    assert!(read(&reader, &page).await.contains("Mute or skip this test"));

    let until = in_days(30);
    let until = &until[..10];
    let mute =
        [("state", "Muted"), ("until", until), ("ticket", "SHOP-7"), ("reason", "<b>odd</b>")];
    set(&reader, case, &mute).await.expect(303);
    let shown = read(&reader, &page).await;
    for text in ["<b>Muted</b>", "SHOP-7", "&lt;b&gt;odd&lt;/b&gt;", "Grace", "Enable this test"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let project = execution["ProjectId"].as_str().unwrap();
    let listed = read(&reader, &format!("/projects/{project}/knownfailures")).await;
    assert!(listed.contains("Muted and skipped tests") && listed.contains(&page), "{listed}");
    let (_, path) = reader.upload(&junit("no bank", "")).await;
    let summary = reader.api().get(&format!("{path}/summary")).await.ok();
    assert_eq!(summary["Changes"]["Muted"], 1);

    for (day, reason) in [("soon", "yyyy-mm-dd"), ("2020-01-01", "must be in the future")] {
        let refused = set(&reader, case, &[("state", "Skipped"), ("until", day)]).await;
        let refused = String::from_utf8_lossy(&refused.expect(422).body).into_owned();
        assert!(refused.contains(reason), "{refused}");
    }
    set(&reader, case, &[("state", "Skipped"), ("until", until)]).await.expect(303);
    assert!(read(&reader, &page).await.contains("<b>Skipped</b>"));
    set(&reader, case, &[("state", "Enabled")]).await.expect(303);
    assert!(!read(&reader, &page).await.contains("Enable this test"));

    let viewer = Reader::with(&customer, "vera", "Login, Read").await;
    assert!(!read(&viewer, &page).await.contains("Mute or skip this test"));
    set(&viewer, case, &mute).await.expect(403);
}
