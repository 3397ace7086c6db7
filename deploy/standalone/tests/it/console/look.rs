//! Pages follow running executions, and are complete without scripts.

use serde_json::json;

use super::{Reader, junit, numbers::between};
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
    let (reader, execution, _) = Reader::of_report(&junit(REFUSED, "")).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_follows_an_execution_loses_nothing() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.start().await;
    let report = async |name: &str| {
        let result = json!([{"Identifier": name, "Result": "Passed"}]);
        reader.api().post(&format!("{path}/results"), result).await.expect(200);
    };
    report("pays").await;
    let browser = Browser::open().await;
    reader.open(&browser, &format!("/executions/{}?view=all", id(&execution))).await;
    browser.click(".row [type=checkbox]").await;
    browser.type_into("[name=comment]", "looks fine").await;

    report("prints").await;
    browser.read_until("#news", |text| text == "1 new result. Show").await;
    let focused = "return document.activeElement.name";
    assert_eq!(browser.client.execute(focused, Vec::new()).await.unwrap(), json!("comment"));
    reader.api().post(&format!("{path}/complete"), json!({})).await.expect(200);
    browser.read_until("#news", |text| text.starts_with("The execution has ended.")).await;
    let comment = browser.find("[name=comment]").await.prop("value").await.unwrap();
    assert_eq!(comment.as_deref(), Some("looks fine"));
    assert!(browser.client.title().await.unwrap().starts_with("Passed · "));
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_that_it_stopped_after_the_session_has_ended() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.start().await;
    let result = json!([{"Identifier": "pays", "Result": "Passed"}]);
    let browser = Browser::open().await;
    let page = format!("/executions/{}", id(&execution));
    reader.open(&browser, &page).await;
    browser.client.delete_all_cookies().await.unwrap();
    reader.api().post(&format!("{path}/results"), result).await.expect(200);

    browser.read_until("#news", |text| text.starts_with("Stopped: your session has ended.")).await;
    browser.click("#news a").await;
    reader.log_in(&browser).await;
    browser.read_until("#summary .legend", |text| text.contains("1 passed")).await;
    browser.client.clone().close().await.unwrap();

    // Without scripts, a page that a form is on is loaded again by its reader only.
    let html = reader.get(&page).await;
    let html = String::from_utf8_lossy(&html.expect(200).body).into_owned();
    assert!(!html.contains("http-equiv") && html.contains(">Refresh</a>"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn days_of_a_filter_are_those_of_the_reader() {
    let (reader, execution, _) = Reader::of_report(&junit("", "")).await;
    let project = format!("/projects/{}", execution["ProjectId"].as_str().unwrap());
    let browser = Browser::open_at("Asia/Tokyo").await;
    reader.open(&browser, &project).await;
    let today = "const day = new Date(), two = (number) => String(number).padStart(2, '0');
         const text = `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
         for (const name of ['fromDate', 'toDate']) {
             const field = document.querySelector(`[name=${name}]`);
             field.value = text;
             field.dispatchEvent(new Event('change', {bubbles: true}));
         }";
    browser.client.execute(today, Vec::new()).await.unwrap();
    browser.click(".filters button").await;
    browser.read_until(".rows", |text| text.contains("Every night")).await;
    let url = browser.client.current_url().await.unwrap();
    assert!(url.query().unwrap().contains("toDateOffset=-540"), "{url}");
    browser.client.clone().close().await.unwrap();

    let path = format!("{project}?fromDate=2020-01-01&toDate=2020-01-01");
    let page = reader.get(&path).await;
    let page = String::from_utf8_lossy(&page.expect(200).body).into_owned();
    assert!(page.contains("From<span class=\"utc\"> (UTC)</span>"), "{page}");
    assert!(page.contains("No execution matches"), "{page}");
}

#[tokio::test]
async fn a_running_execution_has_an_estimate_of_the_time_left() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.start().await;
    let page = format!("/executions/{}", id(&execution));
    let html = reader.html(&page).await;
    assert!(html.contains("running ") && !html.contains(" min left"), "no earlier run: {html}");

    let pays = "<testcase classname='shop' name='pays' time='5400'/>";
    reader.upload(&format!("<testsuite>{pays}</testsuite>")).await;
    let html = reader.html(&page).await;
    let progress = between(&html, "data-progress=\"", "\"").unwrap().replace("&amp;", "&");
    for shown in [html.clone(), reader.html(&progress).await] {
        assert!(shown.contains(", about 1 h ") && shown.contains(" min left"), "{shown}");
    }
    reader.api().post(&format!("{path}/complete"), json!({})).await.expect(200);
    assert!(!reader.html(&page).await.contains(" min left"));
}
