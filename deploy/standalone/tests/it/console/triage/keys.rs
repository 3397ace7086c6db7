//! Keys judge what is selected and shown.

use assay_testkit::eventually;
use serde_json::json;

use super::report;
use crate::{browser::Browser, console::Reader, world::id};

#[tokio::test(flavor = "multi_thread")]
async fn keys_act_on_the_row_with_the_focus_and_only_while_the_form_is_shown() {
    let (reader, execution, at) = Reader::of_report(&report()).await;
    let browser = Browser::open().await;
    reader.open(&browser, &format!("/executions/{}", id(&execution))).await;

    browser.run("document.querySelectorAll('.row.test a')[2].focus()").await;
    browser.press_here("x").await;
    browser.read_until("#selected", |text| text == "1 selected").await;
    let checked = "return document.querySelectorAll('.row.test')[2].querySelector('input').checked";
    assert_eq!(browser.run(checked).await, json!(true));
    browser.press_here("j").await;
    let focused = browser.client.active_element().await.unwrap();
    assert_eq!(focused.text().await.unwrap(), "t4");

    browser.run("document.activeElement.blur()").await;
    browser.press_here("kx").await;
    browser.find("#review[hidden]").await;
    browser.press_here("a").await;
    browser.press_here("j").await;
    assert!(reader.judged(&at, "Accepted").await.is_empty(), "the form is hidden");

    // A browser restores the boxes of a page that it goes back to.
    browser.press_here("x").await;
    browser.read_until("#selected", |text| text == "1 selected").await;
    browser.click(".row.test a").await;
    browser.find(".walk").await;
    browser.client.back().await.unwrap();
    eventually("the form of the restored boxes", || async {
        let restored = "const boxes = document.querySelectorAll('[name=report]:checked').length;
             return [boxes > 0, document.querySelector('#review').hidden]";
        let state = browser.client.execute(restored, Vec::new()).await.ok()?;
        (state == json!([true, false]) || state == json!([false, true])).then_some(())
    })
    .await;
    browser.client.clone().close().await.unwrap();
}

/// Holds keys on a page whose form counts how often it was sent, instead of being sent.
const HELD: &str = "
    let sent = 0;
    document.querySelector('#review').addEventListener('submit', (event) => {
        event.preventDefault();
        sent += 1;
    });
    const press = (key, repeat) => document.activeElement.dispatchEvent(
        new KeyboardEvent('keydown', {key, repeat, bubbles: true}));
    press('j', false);
    press('j', true);
    press('x', false);
    press('x', true);
    press('a', true);
    const held = sent;
    press('a', false);
    const selected = document.querySelectorAll('[name=report]:checked').length;
    return [document.activeElement.textContent.trim(), selected, held, sent];";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_held_moves_on_and_does_nothing_else_again() {
    let (reader, execution, at) = Reader::of_report(&report()).await;
    let browser = Browser::open().await;
    let page = format!("/executions/{}", id(&execution));
    reader.open(&browser, &page).await;
    browser.find("#review[hidden]").await;
    assert_eq!(browser.run(HELD).await, json!(["t2", 1, 0, 1]));

    // In the triage, the next cause is on the page before a person can look at it.
    reader.open(&browser, &format!("{page}/triage")).await;
    browser.find(".triage").await;
    let enter = "document.body.dispatchEvent(
        new KeyboardEvent('keydown', {key: 'Enter', repeat: arguments[0], bubbles: true}))";
    browser.client.execute(enter, vec![json!(true)]).await.unwrap();
    browser.client.execute(enter, vec![json!(false)]).await.unwrap();
    browser.read_until("#left", |text| text == "1 of 8 left").await;
    assert_eq!(reader.judged(&at, "Accepted").await.len(), 7, "one cause was judged");
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_without_rows_has_no_form_and_a_triage_has_one() {
    let (reader, execution, at) = Reader::of_report(&report()).await;
    let browser = Browser::open().await;
    let page = format!("/executions/{}", id(&execution));
    for empty in ["?q=unknown", "?change=Fixed", "?muted=true"] {
        reader.open(&browser, &format!("{page}{empty}")).await;
        browser.find(".empty").await;
        browser.find("#review[hidden]").await;
    }
    reader.open(&browser, &format!("{page}/triage")).await;
    browser.find(".triage #review:not([hidden]) [value=Accepted]").await;
    let reports = reader.api().get(&format!("{at}/reports")).await.ok();
    reader.open(&browser, &format!("/reports/{}", id(&reports[0]))).await;
    browser.find("#review:not([hidden]) [value=Accepted]").await;
    browser.client.clone().close().await.unwrap();
}
