//! A triage judges the tests that are left of a cause.

use serde_json::json;

use super::REFUSED;
use crate::{
    browser::Browser,
    console::{Reader, tests},
    customer::Customer,
    world::id,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_triage_keeps_the_judgements_of_others_unless_it_lists_them() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let names = ["t1", "t2", "t3", "t4", "t5"];
    let (execution, at) = reader.upload(&tests(names.map(|name| (name, REFUSED)))).await;
    let reports = reader.api().get(&format!("{at}/reports?result=Failed")).await.ok();
    let theirs = json!({"Reports": [id(&reports[0]), id(&reports[1])], "Status": "Rejected"});
    reader.api().put(&format!("{at}/reviews"), theirs).await.ok();

    let browser = Browser::open_without_scripts().await;
    let page = format!("/executions/{}/triage", id(&execution));
    reader.open(&browser, &page).await;
    let hint = "Only for the 3 tests to review of these 5.";
    browser.read_until("#review", |text| text.contains(hint)).await;
    browser.click("#review [value=Accepted]").await;
    browser.read_until("#reviewed", |text| text == "3 tests reviewed.").await;
    assert_eq!(reader.judged(&at, "Rejected").await, ["t1", "t2"]);
    assert_eq!(reader.judged(&at, "Accepted").await, ["t3", "t4", "t5"]);

    // The list of all causes shows what it judges again.
    reader.open(&browser, &format!("{page}?all=yes")).await;
    browser.read_until("#review", |text| !text.contains("Only for")).await;
    browser.click("#review [value=Investigation]").await;
    browser.read_until("#reviewed", |text| text == "5 tests reviewed.").await;
    assert_eq!(reader.judged(&at, "Investigation").await, names);
    browser.client.clone().close().await.unwrap();
}

#[tokio::test]
async fn the_box_of_a_list_of_tests_to_review_selects_no_other_ones() {
    let (reader, execution, at) =
        Reader::of_report(&tests(["t1", "t2"].map(|name| (name, REFUSED)))).await;
    let causes = reader.api().get(&format!("{at}/failures")).await.ok();
    let cause = causes[0]["Fingerprint"].as_str().unwrap();
    let list = format!("/executions/{}?fingerprint={cause}", id(&execution));
    let field = "name=\"unreviewed\" form=\"review\"";
    assert!(!reader.html(&list).await.contains(field));
    let left = reader.html(&format!("{list}&unreviewed=true")).await;
    assert!(left.contains(field), "{left}");
}
