//! The grid of a test set: tests that passed in all of its executions share a row.

use serde_json::json;

use super::{Reader, tests};
use crate::{browser::Browser, customer::Customer};

#[tokio::test(flavor = "multi_thread")]
async fn tests_that_always_passed_are_folded_and_opened_without_scripts() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let green: Vec<String> = (1..=12).map(|nr| format!("pays {nr}")).collect();
    let run = |message: &'static str| {
        let others = green.iter().map(|name| (name.as_str(), ""));
        tests([("pays by card", message)].into_iter().chain(others))
    };
    reader.upload(&run("no bank")).await;
    let (execution, _) = reader.upload(&run("")).await;
    let [project, set] = ["ProjectId", "TestSetId"].map(|id| execution[id].as_str().unwrap());
    let page = format!("/projects/{project}/sets/{set}?all=tests");

    let browser = Browser::open_without_scripts().await;
    reader.open(&browser, &page).await;
    let shown = browser.read_until(".grid tbody", |text| text.contains("pays by card")).await;
    assert!(shown.contains("12 tests passed in all of these"), "{shown}");
    assert!(!shown.contains("pays 7"), "{shown}");
    browser.click(".green summary").await;
    browser
        .read_until(".green ul", |text| green.iter().all(|name| text.contains(name.as_str())))
        .await;
    browser.click(".green li a").await;
    browser.read_until("h1", |text| text.starts_with("pays ")).await;
    browser.client.clone().close().await.unwrap();

    let phone = Browser::open_in((360, 1600), false).await;
    reader.open(&phone, &page).await;
    phone.click(".green summary").await;
    assert_eq!(phone.violations().await, (json!([]), json!([])));
    phone.client.clone().close().await.unwrap();
}
