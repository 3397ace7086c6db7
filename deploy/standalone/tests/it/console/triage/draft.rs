//! Texts that were typed into the form of a cause stay there.

use assay_testkit::eventually;
use serde_json::{Value, json};

use super::report;
use crate::{
    browser::Browser,
    console::{Reader, review::in_days},
    world::id,
};

impl Browser {
    /// Waits until the form of the cause with so many tests has a comment, with or without a day.
    async fn sees_form(&self, tests: &str, comment: &str, has_day: bool) {
        let form = "
            const value = (css) => document.querySelector(css)?.value;
            return [document.querySelector('.triage h2')?.textContent,
                value('#review [name=comment]'), Boolean(value('#review [name=until]'))];";
        let expected = json!([format!("{tests} with one cause"), comment, has_day]);
        eventually("the form of the cause", || async {
            let shown: Value = self.client.execute(form, Vec::new()).await.ok()?;
            (shown == expected).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_come_back_in_the_form_of_their_own_cause() {
    let (reader, execution, _) = Reader::of_report(&report()).await;
    let browser = Browser::open().await;
    reader.open(&browser, &format!("/executions/{}/triage", id(&execution))).await;
    browser.sees_form("7 tests", "", false).await;
    browser.type_into("#review [name=comment]", "the bank is closed").await;
    browser.type_into("#review [name=until]", &in_days(30)).await;
    browser.click("a[rel=next]").await;
    browser.sees_form("1 test", "", false).await;
    browser.type_into("#review [name=comment]", "out of paper").await;
    browser.click("#review [value=Accepted]").await;
    browser.find("#reviewed").await;
    browser.sees_form("7 tests", "the bank is closed", true).await;

    // The judgement of the other cause is taken back on the page of that cause.
    browser.click(".undo button").await;
    browser.find("#undone").await;
    browser.sees_form("1 test", "out of paper", false).await;
    browser.click("a[rel=prev]").await;
    browser.sees_form("7 tests", "the bank is closed", true).await;
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_for_the_tests_of_a_cause_stay_in_their_list() {
    let (reader, execution, at) = Reader::of_report(&report()).await;
    let causes = reader.api().get(&format!("{at}/failures")).await.ok();
    let browser = Browser::open().await;
    let list = |nr: usize| {
        let fingerprint = causes[nr]["Fingerprint"].as_str().unwrap();
        format!("/executions/{}?fingerprint={fingerprint}", id(&execution))
    };
    let comment = "return document.querySelector('#review [name=comment]').value";
    reader.open(&browser, &list(0)).await;
    browser.click("input.all").await;
    browser.type_into("#review [name=comment]", "the bank is closed").await;
    for (nr, expected) in [(1, ""), (0, "the bank is closed")] {
        reader.open(&browser, &list(nr)).await;
        browser.click("input.all").await;
        browser.read_until("#selected", |text| text.ends_with(" selected")).await;
        assert_eq!(browser.run(comment).await, json!(expected));
    }
    browser.client.clone().close().await.unwrap();
}
