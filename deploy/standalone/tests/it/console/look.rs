//! Pages follow running executions, and are complete without scripts.

use serde_json::json;

use super::{Reader, junit};
use crate::{browser::Browser, customer::Customer, world::id};

const REFUSED: &str = "Error: connect ECONNREFUSED 127.0.0.1:38231";

#[tokio::test(flavor = "multi_thread")]
async fn progress_of_a_running_execution_appears_without_a_reload() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.start().await;
    let browser = Browser::open().await;
    reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
    browser.read_until("#summary .badge", |text| text == "Running").await;

    let result = json!([{"Identifier": "pays", "Result": "Passed"}]);
    reader.api().post(&format!("{path}/results"), result).await.expect(200);
    browser.read_until("#summary .legend", |text| text.contains("1 passed")).await;
    browser.read_until(".tabs [aria-current]", |text| text == "1 All").await;
    reader.api().post(&format!("{path}/complete"), json!({})).await.expect(200);
    browser.read_until("#summary .badge", |text| text == "Passed").await;
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_are_readable_without_scripts() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, _) = reader.upload(&junit(REFUSED, "")).await;
    let browser = Browser::open_without_scripts().await;

    reader.open(&browser, "/").await;
    browser.click(".card a").await;
    browser.read_until("h1", |text| text == "Shop").await;
    browser.click(".card a").await;
    browser.read_until(".grid", |text| text.contains("pays by card")).await;
    reader.open(&browser, &format!("/projects/{}", execution["ProjectId"].as_str().unwrap())).await;
    browser.type_into("[name=q]", "transfer").await;
    browser.click(".search button").await;
    browser
        .read_until(".rows", |text| !text.contains("by card") && text.contains("by transfer"))
        .await;
    browser.click(".rows a").await;
    browser.read_until("h1", |text| text.starts_with("pays by")).await;
    reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
    browser.click(".group .row a").await;
    browser.read_until(".text.failed", |text| text.contains(REFUSED)).await;
    browser.click("a[rel=next]").await;
    browser.read_until("h1", |text| text == "Every night").await;
    browser.click(".user button").await;
    browser.find("form.login").await;
    browser.client.clone().close().await.unwrap();
}
