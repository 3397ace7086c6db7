//! Reviews that mute are taken back with their mutes.

use assay_testkit::Answer;
use reqwest::Method;
use serde_json::json;

use super::report;
use crate::{
    browser::Browser,
    console::{Reader, filled, review::in_days},
    world::id,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_review_that_mutes_is_taken_back_with_its_mutes() {
    let (reader, execution, at) = Reader::of_report(&report()).await;
    let project = execution["ProjectId"].as_str().unwrap();
    let known = format!("/api/projects/{project}/knownfailures");
    let muted = async || {
        let summary = reader.api().get(&format!("{at}/summary")).await.ok();
        let known = reader.api().get(&known).await.ok();
        (summary["Changes"]["Muted"].as_i64().unwrap(), known.as_array().unwrap().len())
    };
    for (browser, with_scripts) in
        [(Browser::open().await, true), (Browser::open_without_scripts().await, false)]
    {
        // At once, beside the announcement.
        reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
        browser.click(".group .all").await;
        browser.type_into("[name=ticket]", "SHOP-7").await;
        browser.type_into("[name=until]", &in_days(30)).await;
        browser.click("#review [value=Accepted]").await;
        browser.read_until("#reviewed", |text| text.ends_with("7 failures muted.")).await;
        assert_eq!(muted().await, (7, 7));
        browser.click(".undo button").await;
        browser.read_until("#undone", |text| text == "The review was taken back.").await;
        assert_eq!(muted().await, (0, 0));
        assert!(reader.judged(&at, "Accepted").await.is_empty());

        // Later, beside the judgement.
        let reports = reader.api().get(&format!("{at}/reports?result=Failed")).await.ok();
        let review = json!({
            "Reports": [id(&reports[0])], "Status": "Accepted", "Ticket": "SHOP-8",
            "Known": {"MutedUntil": crate::world::in_days(30)},
        });
        reader.api().put(&format!("{at}/reviews"), review).await.ok();
        assert_eq!(muted().await, (1, 1));
        reader.open(&browser, &format!("/reports/{}", id(&reports[0]))).await;
        let old = browser.find(".undo [name=review]").await.attr("value").await.unwrap().unwrap();
        browser.click(".undo button").await;
        browser.read_until("#undone", |text| text == "The review was taken back.").await;
        assert_eq!(muted().await, (0, 0));

        // Only once.
        let again = reader.request(Method::POST, &format!("/executions/{}/undo", id(&execution)));
        let fields = [("review", old.as_str()), ("next", "/")];
        let again = Answer::of(filled(again.header("origin", &reader.url), &fields)).await;
        assert_eq!(again.expect(303).headers["location"], "/?undone=false", "{with_scripts}");
        browser.client.clone().close().await.unwrap();
    }
}
