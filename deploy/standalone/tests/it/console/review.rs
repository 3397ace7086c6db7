//! Failures are judged together.

use assay_testkit::Answer;
use chrono::{TimeDelta, Utc};
use fantoccini::Locator;
use reqwest::Method;
use serde_json::json;

use super::{Reader, filled, junit};
use crate::{browser::Browser, customer::Customer, world::id};

const REFUSED: &str = "Error: connect ECONNREFUSED 127.0.0.1:38231";

#[tokio::test(flavor = "multi_thread")]
async fn the_failures_of_a_cause_are_judged_in_one_request_with_and_without_scripts() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    for (browser, with_scripts) in
        [(Browser::open().await, true), (Browser::open_without_scripts().await, false)]
    {
        let (execution, path) = reader.upload(&junit(REFUSED, REFUSED)).await;
        let page = format!("/executions/{}", id(&execution));
        reader.open(&browser, &page).await;
        if with_scripts {
            browser.click(".group .all").await;
            browser.read_until("#selected", |text| text == "2 selected").await;
        } else {
            for row in browser.client.find_all(Locator::Css(".row [type=checkbox]")).await.unwrap()
            {
                row.click().await.unwrap();
            }
        }
        browser.type_into("[name=comment]", "the bank is closed").await;
        browser.type_into("[name=ticket]", "SHOP-1").await;
        browser.click("#review [value=Accepted]").await;
        browser.read_until("[role=status]", |text| text == "2 tests reviewed.").await;
        let reports = reader.api().get(&format!("{path}/reports")).await.ok();
        for report in reports.as_array().unwrap() {
            assert_eq!(report["Status"], "Accepted");
            assert_eq!(report["Comment"], "the bank is closed");
            assert_eq!(report["Ticket"], "SHOP-1");
        }
        browser.client.clone().close().await.unwrap();
    }
}

#[tokio::test]
async fn a_review_needs_the_permission_and_a_selection() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.upload(&junit(REFUSED, "")).await;
    let page = format!("/executions/{}", id(&execution));
    let reports = reader.api().get(&format!("{path}/reports?result=Failed")).await.ok();
    let report = id(&reports[0]);
    let viewer = Reader::with(&customer, "vera", "Login, Read").await;

    let send = async |reader: &Reader, fields: &[(&str, &str)]| {
        let request = reader.request(Method::POST, &page);
        let request = request.header("origin", &reader.url);
        Answer::of(filled(request, fields)).await
    };
    let fields = [("report", report), ("status", "Accepted")];
    send(&viewer, &fields).await.expect(403);
    assert!(!String::from_utf8_lossy(&viewer.get(&page).await.body).contains("id=\"review\""));
    let refused = send(&reader, &fields[1..]).await;
    let text = String::from_utf8_lossy(&refused.expect(422).body);
    assert!(text.contains("Select at least one test."), "{text}");

    let done = send(&reader, &fields).await;
    let location = done.expect(303).headers["location"].to_str().unwrap();
    assert!(
        location.starts_with(&format!("{page}?reviewed=1&newly_muted=0&review=")),
        "{location}"
    );
    let judged = reader.api().get(&format!("{path}/reports?status=Accepted")).await.ok();
    assert_eq!(judged, json!([judged[0]]), "{judged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cause_is_muted_in_the_next_run_until_somebody_ends_it() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    reader.upload(&junit("", "")).await;
    let (execution, path) = reader.upload(&junit(REFUSED, REFUSED)).await;
    let failures = reader.api().get(&format!("{path}/failures")).await.ok();
    let fingerprint = failures[0]["Fingerprint"].as_str().unwrap();
    let browser = Browser::open().await;

    let cause = format!("/executions/{}?change=New&fingerprint={fingerprint}", id(&execution));
    reader.open(&browser, &cause).await;
    browser.click("input.all").await;
    browser.type_into("[name=until]", &in_days(30)).await;
    browser.type_into("[name=ticket]", "SHOP-1").await;
    browser.click("#review [value=Accepted]").await;
    browser.read_until("[role=status]", |text| text == "2 tests reviewed, 2 failures muted.").await;

    let (next, path) = reader.upload(&junit(REFUSED, REFUSED)).await;
    let summary = reader.api().get(&format!("{path}/summary")).await.ok();
    assert_eq!(summary["Changes"]["Muted"], 2);
    reader.open(&browser, &format!("/executions/{}", id(&next))).await;
    browser.click(".tabs .muted").await;
    browser.read_until(".group", |text| text.contains("muted") && text.contains("SHOP-1")).await;

    browser.click(".legend a[href$=knownfailures]").await;
    // One row for the cause, with both tests. The end can be undone, and comes only once.
    browser.click(".rows summary").await;
    browser.read_until(".rows details", |text| text.contains("pays by transfer")).await;
    browser.click(".rows button").await;
    browser.read_until(".done", |text| text == "Ended: 2 failures will count again.").await;
    browser.click(".undo button").await;
    let old = browser.find(".rows form").await.html(false).await.unwrap();
    browser.click(".rows button").await;
    browser.read_until(".empty", |text| text == "No failure is muted.").await;
    let known: Vec<_> = old.split("value=\"").skip(1).map(|id| ("known", &id[..36])).collect();
    let project = execution["ProjectId"].as_str().unwrap();
    let again = reader.request(Method::POST, &format!("/projects/{project}/knownfailures/end"));
    let again = Answer::of(filled(again.header("origin", &reader.url), &known)).await;
    let again = String::from_utf8_lossy(&again.expect(200).body).into_owned();
    assert!(known.len() == 2 && again.contains("0 failures will count again"), "{again}");
    let (_, path) = reader.upload(&junit(REFUSED, REFUSED)).await;
    let summary = reader.api().get(&format!("{path}/summary")).await.ok();
    assert_eq!(summary["Changes"]["Muted"], 0);
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_review_can_be_corrected_with_and_without_scripts() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    for (browser, with_scripts) in
        [(Browser::open().await, true), (Browser::open_without_scripts().await, false)]
    {
        let (execution, _) = reader.upload(&junit(REFUSED, "no printer")).await;
        reader.open(&browser, &format!("/executions/{}?result=Failed", id(&execution))).await;
        browser.click(".row input").await;
        browser.type_into("[name=comment]", "the bank is closed").await;
        browser.type_into("[name=until]", &in_days(200)).await;
        if with_scripts {
            browser.find("[name=until]:invalid").await.clear().await.unwrap();
        } else {
            browser.click("#review [value=Accepted]").await;
            browser.read_until("[role=alert]", |text| text.contains("90 days")).await;
        }
        let comment = browser.find("[name=comment]").await.prop("value").await.unwrap();
        assert_eq!(comment.as_deref(), Some("the bank is closed"));

        browser.type_into("[name=until]", &in_days(30)).await;
        browser.click("#review [value=Accepted]").await;
        let done = |text: &str| text == "1 test reviewed, 1 failure muted.";
        browser.read_until("[role=status]", done).await;
        let path = browser.client.current_url().await.unwrap();
        let query = path.query().unwrap();
        assert!(query.starts_with("result=Failed"), "{path}");
        assert_eq!(query.contains("reviewed"), !with_scripts, "{path}");

        if !with_scripts {
            browser.click(".row a").await;
            for (days, reason) in [(200, "90 days"), (-2, "in the future")] {
                browser.type_into("[name=until]", &in_days(days)).await;
                browser.click("#review [value=Rejected]").await;
                browser.read_until("[role=alert]", |text| text.contains(reason)).await;
            }
        }
        browser.client.clone().close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cause_is_muted_for_every_test_after_a_look_at_its_matches() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    for browser in [Browser::open().await, Browser::open_without_scripts().await] {
        reader.upload(&junit("", REFUSED)).await;
        let (execution, path) = reader.upload(&junit(REFUSED, "")).await;
        let failures = reader.api().get(&format!("{path}/failures")).await.ok();
        let fingerprint = failures[0]["Fingerprint"].as_str().unwrap();
        let cause = format!("/executions/{}?fingerprint={fingerprint}", id(&execution));
        reader.open(&browser, &cause).await;
        browser.click("input.all").await;
        browser.click("#review summary").await;
        let matches = "2 tests failed with this cause in the last 30 days";
        browser
            .read_until("#review details", |text| {
                text.starts_with(matches) && text.contains("pays by transfer")
            })
            .await;
        browser.click("[name=every]").await;
        browser.click("#review [value=Accepted]").await;
        browser.read_until("[role=alert]", |text| text.contains("until which")).await;
        browser.type_into("[name=until]", &in_days(30)).await;
        browser.click("#review [value=Accepted]").await;
        browser.read_until("[role=status]", |text| text.ends_with("1 failure muted.")).await;

        let (_, path) = reader.upload(&junit("", REFUSED)).await;
        let summary = reader.api().get(&format!("{path}/summary")).await.ok();
        assert_eq!(summary["Changes"]["Muted"], 1);
        browser.client.clone().close().await.unwrap();
    }
}

/// Returns a day as it is typed into a date field of the browser.
#[expect(clippy::disallowed_methods, reason = "a client has the clock of its machine")]
pub(super) fn in_days(days: i64) -> String {
    (Utc::now() + TimeDelta::days(days)).format("%m%d%Y").to_string()
}

#[tokio::test]
async fn a_page_says_which_failures_could_not_be_made_known_again() {
    let (reader, execution, path) = Reader::of_report(&junit(REFUSED, REFUSED)).await;
    let causes = reader.api().get(&format!("{path}/failures")).await.ok();
    let review = json!({
        "Causes": [causes[0]["Fingerprint"]], "Status": "Accepted",
        "Known": {"MutedUntil": crate::world::in_days(30)},
    });
    reader.api().put(&format!("{path}/reviews"), review).await.ok();
    let page = format!("/projects/{}/knownfailures", execution["ProjectId"].as_str().unwrap());
    let known = reader.api().get(&format!("/api{page}")).await.ok();
    let known = known.as_array().unwrap();
    assert_eq!(known.len(), 2);
    let send = async |action: &str, values: &[String], status: u16| {
        let request = reader.request(Method::POST, &format!("{page}/{action}"));
        let fields: Vec<_> = values.iter().map(|value| ("known", value.as_str())).collect();
        let answer = Answer::of(filled(request.header("origin", &reader.url), &fields)).await;
        String::from_utf8(answer.expect(status).body.clone()).unwrap()
    };
    let ids: Vec<_> = known.iter().map(|known| id(known).to_owned()).collect();
    let ended = send("end", &ids, 200).await;
    let form = ended.split("/knownfailures/restore\"").nth(1).unwrap().split("</form>").next();
    let values = form.unwrap().split("value=\"").skip(1);
    let values = values.map(|value| value.split('"').next().unwrap().replace("&quot;", "\""));
    let values: Vec<_> = values.collect();
    assert_eq!(values.len(), 2, "{ended}");

    // The second one cannot be known until a time in the past. It stays in a form, and the first one is known.
    let mut past: serde_json::Value = serde_json::from_str(&values[1]).unwrap();
    past["MutedUntil"] = json!("2020-01-01T00:00:00Z");
    let partly = send("restore", &[values[0].clone(), past.to_string()], 422).await;
    for said in ["1 failure known again.", "1 failure could not be made known again", "Try again"] {
        assert!(partly.contains(said), "{said}: {partly}");
    }
    let known = reader.api().get(&format!("/api{page}")).await.ok();
    assert_eq!(known.as_array().unwrap().len(), 1);

    // A form that is not valid changes nothing.
    send("end", &[id(&known[0]).to_owned(), "x".to_owned()], 404).await;
    let known = reader.api().get(&format!("/api{page}")).await.ok();
    assert_eq!(known.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judgement_that_was_sent_after_the_end_of_the_session_comes_back_after_the_login() {
    let (reader, execution, _) = Reader::of_report(&junit(REFUSED, "")).await;
    let browser = Browser::open().await;
    reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
    browser.click(".group .all").await;
    browser.type_into("[name=comment]", "the bank is closed").await;
    browser.client.delete_all_cookies().await.unwrap();
    browser.click("#review [value=Accepted]").await;
    browser.read_until(".login .alert", |text| text.starts_with("Your session has ended")).await;
    reader.log_in(&browser).await;
    browser.click(".group .all").await;
    let comment = browser.find("[name=comment]").await.prop("value").await.unwrap();
    assert_eq!(comment.as_deref(), Some("the bank is closed"));

    // Texts that have been sent do not come back when the session ends in another form.
    browser.click("#review [value=Accepted]").await;
    browser.read_until("#reviewed", |text| text == "1 test reviewed.").await;
    browser.client.delete_all_cookies().await.unwrap();
    browser.click(".undo button").await;
    browser.read_until(".login .alert", |text| text.starts_with("Your session has ended")).await;
    reader.log_in(&browser).await;
    browser.click(".group .all").await;
    browser.read_until("#selected", |text| text == "1 selected").await;
    let comment = browser.find("[name=comment]").await.prop("value").await.unwrap();
    assert_eq!(comment.as_deref(), Some(""));
    browser.client.clone().close().await.unwrap();
}
