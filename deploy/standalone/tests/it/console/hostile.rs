//! Results that somebody has written to harm their readers.

mod crawl;

use serde_json::{Value, json};

use super::Reader;
use crate::{browser::Browser, customer::Customer, world::id};

const NAME: &str = "<img src=x onerror=\"window.harmed = 1\"> \u{202e}gpj.exe";

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_are_shown_and_not_run() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.start().await;
    let long = "\u{1b}[31m<script>window.harmed = 1</script>\u{202e}\u{1b}[0m\n".repeat(1200);
    let steps: Vec<_> = (1..=60)
        .map(|nr| {
            let actual = if nr <= 12 { &long } else { NAME };
            json!({"StepNr": nr, "Result": "Failed", "ActualResult": actual, "TestInput": NAME,
                "ExpectedResult": NAME, "DurationInSec": 1, "SoftVerification": [NAME]})
        })
        .collect();
    let result = json!([{"Identifier": "evil", "Name": NAME, "Result": "Failed", "Steps": steps}]);
    reader.api().post(&format!("{path}/results"), result).await.expect(200);
    let browser = Browser::open().await;

    reader.open(&browser, &format!("/executions/{}?view=all", id(&execution))).await;
    browser
        .read_until(".row a", |text| text.starts_with("<img src=x") && text.contains("U+202E"))
        .await;
    browser.click(".row a").await;
    browser.read_until(".text.failed pre", |text| text.contains("<script>")).await;
    let harmed: Value = browser.client.execute("return window.harmed", Vec::new()).await.unwrap();
    assert_eq!(harmed, Value::Null);

    let page = browser.client.current_url().await.unwrap();
    let page = reader.get(page.path()).await;
    page.expect(200);
    assert!(page.body.len() < 200_000, "{}", page.body.len());

    browser.click(".text p a").await;
    let whole = browser.client.current_url().await.unwrap();
    let whole = reader.get(&format!("{}?{}", whole.path(), whole.query().unwrap())).await;
    assert_eq!(String::from_utf8_lossy(&whole.body), long);
    assert_eq!(whole.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(whole.headers["content-security-policy"], "default-src 'none'; sandbox");
    assert_eq!(whole.headers["x-content-type-options"], "nosniff");
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_which_a_page_has_a_part_is_copied_as_a_whole_and_as_it_is() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.start().await;
    // Commands of pages name this host, which is replaced by that of the page.
    let text = format!("https://assay.example.com/{}", "x".repeat(40_000));
    let step = json!({"StepNr": 1, "Result": "Failed", "ActualResult": text, "TestInput": "",
        "ExpectedResult": "", "DurationInSec": 1});
    let result = json!([{"Identifier": "pays", "Result": "Failed", "Steps": [step]}]);
    reader.api().post(&format!("{path}/results"), result).await.expect(200);
    let browser = Browser::open().await;

    reader.open(&browser, &format!("/executions/{}?view=all", id(&execution))).await;
    browser.click(".row a").await;
    let is_part =
        |text: &str| text.starts_with("https://assay.example.com/x") && text.contains("left out");
    browser.read_until(".text.failed pre", is_part).await;
    let clipboard = "const clipboard = {writeText: async (text) => { window.copied = text; }};
         Object.defineProperty(navigator, 'clipboard', {value: clipboard});";
    browser.client.execute(clipboard, Vec::new()).await.unwrap();
    browser.click(".text.failed button").await;
    let copied = assay_testkit::eventually("the copy", || async {
        let copied = browser.client.execute("return window.copied", Vec::new()).await.ok()?;
        (!copied.is_null()).then_some(copied)
    });
    assert_eq!(copied.await, json!(text));
    browser.client.clone().close().await.unwrap();
}
