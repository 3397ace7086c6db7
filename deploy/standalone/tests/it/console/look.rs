//! A developer follows the link of a job to the failure, with the keyboard.

use assay_testkit::Answer;
use fantoccini::{Locator, key::Key};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Reader, junit};
use crate::{browser::Browser, customer::Customer, world::id};

const REFUSED: &str = "Error: connect ECONNREFUSED 127.0.0.1:38231";

impl Browser {
    async fn press(&self, keys: &str) {
        self.find("body").await.send_keys(keys).await.unwrap();
    }

    async fn path(&self) -> String {
        let url = self.client.current_url().await.unwrap();
        url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()))
    }

    async fn count(&self, css: &str) -> usize {
        self.client.find_all(Locator::Css(css)).await.unwrap().len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_developer_follows_a_link_to_a_new_failure_and_back() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    reader.upload(&junit("", "")).await;
    let (execution, _) = reader.upload(&junit(REFUSED, REFUSED)).await;
    let link = format!("/executions/{}", id(&execution));
    let browser = Browser::open().await;

    reader.open(&browser, &link).await;
    assert_eq!(browser.path().await, link);
    browser.read_until(".tabs [aria-current]", |text| text == "2 New").await;
    browser.read_until(".group .headline", |text| text.starts_with("Error: connect")).await;
    assert_eq!(browser.count(".group").await, 1);
    assert_eq!(browser.count(".group .row").await, 2);

    browser.press("j").await;
    let focused = browser.client.active_element().await.unwrap();
    assert_eq!(focused.text().await.unwrap(), "pays by card");
    focused.send_keys(&char::from(Key::Enter).to_string()).await.unwrap();
    browser.read_until("h1", |text| text == "pays by card").await;
    browser.read_until(".text.failed pre", |text| text.contains(REFUSED)).await;
    assert_eq!(browser.count(".runs li").await, 2);
    browser.read_until(".trail", |text| text.contains("Shop\nEvery night\n")).await;

    browser.press("j").await;
    browser.read_until("h1", |text| text == "pays by transfer").await;
    browser.press("j").await;
    browser.read_until("h1", |text| text == "Every night").await;
    assert_eq!(browser.path().await, format!("{link}?change=New"));

    let loaded = browser.loaded().await;
    let elsewhere = loaded.iter().find(|name| !name.starts_with(&reader.url));
    assert_eq!(elsewhere, None);
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_of_steps_are_shown() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.start().await;
    let svg = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let picture = reader.api().request(Method::PUT, &format!("{path}/results/artifacts/cart.gif"));
    Answer::of(picture.header("content-type", "image/gif").body(svg.to_vec())).await.expect(200);
    let step = json!({"StepNr": 1, "Result": "Failed", "ActualResult": "no cart", "TestInput": "pay",
        "ExpectedResult": "paid", "DurationInSec": 1, "Screenshots": ["cart.gif"]});
    let result = json!([{"Identifier": "pays", "Result": "Failed", "Steps": [step]}]);
    reader.api().post(&format!("{path}/results"), result).await.expect(200);
    let browser = Browser::open().await;

    reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
    browser.click(".row a").await;
    browser.find(".pictures img").await;
    assay_testkit::eventually("the picture", || async {
        let width = "return document.querySelector('.pictures img').naturalWidth";
        let width: Value = browser.client.execute(width, Vec::new()).await.ok()?;
        (width == 1).then_some(())
    })
    .await;
    browser.client.clone().close().await.unwrap();
}

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
