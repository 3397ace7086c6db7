//! The grid of a test set: tests that passed in all of its executions share a row, and times are those of the
//! reader.

use assay_testkit::eventually;
use serde_json::json;

use super::{Reader, tests};
use crate::{browser::Browser, customer::Customer, world::id};

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

#[tokio::test(flavor = "multi_thread")]
async fn the_message_of_a_failure_is_shown_at_the_keyboard_too() {
    let (reader, execution, _) = Reader::of_report(&tests([("pays by card", "no bank")])).await;
    let [project, set] = ["ProjectId", "TestSetId"].map(|id| execution[id].as_str().unwrap());
    let browser = Browser::open().await;
    reader.open(&browser, &format!("/projects/{project}/sets/{set}")).await;
    browser.find(".outcomes a[title*='no bank']").await;
    let message = "
        const link = document.querySelector('.outcomes a');
        const shown = () => getComputedStyle(link, '::after').content;
        const before = shown();
        link.focus();
        return shown() !== before";
    let is_shown = browser.client.execute(message, Vec::new()).await.unwrap();
    assert_eq!(is_shown, json!(true));
    assert_eq!(browser.violations().await, (json!([]), json!([])));
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_runs_are_those_of_the_reader() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    reader.upload(&tests([("pays by card", "")])).await;
    let (execution, at) = reader.upload(&tests([("pays by card", "no bank")])).await;
    let [project, set] = ["ProjectId", "TestSetId"].map(|id| execution[id].as_str().unwrap());
    let reports = reader.api().get(&format!("{at}/reports")).await.ok();
    let grid = format!("/projects/{project}/sets/{set}");
    let browser = Browser::open_at("Asia/Tokyo").await;
    for (page, runs) in [
        (&grid, ".columns"),
        (&format!("/executions/{}", id(&execution)), ".runs"),
        (&format!("/reports/{}", id(&reports[0])), ".runs"),
    ] {
        reader.open(&browser, page).await;
        browser.find(&format!("{runs} a[data-time]")).await;
        let local = format!(
            "const form = {{ dateStyle: 'medium', timeStyle: 'short' }};
             const times = new Intl.DateTimeFormat(undefined, form);
             const isLocal = (link) => link.title.startsWith(times.format(new Date(link.dataset.time)));
             const links = [...document.querySelectorAll('{runs} a[data-time]')];
             return links.length === 2 && links.every(isLocal)"
        );
        eventually("local times", || async {
            let is_local = browser.client.execute(&local, Vec::new()).await.ok()?;
            (is_local == json!(true)).then_some(())
        })
        .await;
    }

    reader.open(&browser, &grid).await;
    browser.read_until(".grid thead th", |text| text == "Test").await;
    let day = "const time = document.querySelector('.days span').dataset.time;
         return document.querySelector('.days span').textContent.endsWith(new Date(time).getDate())";
    assert_eq!(browser.client.execute(day, Vec::new()).await.unwrap(), json!(true));
    browser.client.clone().close().await.unwrap();
}
