//! A developer shares an execution with a reader who has no account.

use assay_testkit::Answer;
use fantoccini::Locator;
use reqwest::Method;
use serde_json::json;
use url::Url;

use super::{Reader, filled, junit};
use crate::{
    browser::Browser,
    customer::Customer,
    world::{id, in_days},
};

impl Reader {
    /// Creates a share link of an execution with the form of its page, and returns its path.
    pub(super) async fn share(&self, browser: &Browser, execution: &str) -> String {
        self.open(browser, &format!("/executions/{execution}")).await;
        browser.click(".head a.button[href$='/shares']").await;
        browser.click("form.filters button.primary").await;
        let link = browser.find(".done pre").await.text().await.unwrap();
        Url::parse(&link).unwrap().path().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_without_an_account_sees_a_shared_execution_until_the_link_is_revoked() {
    let customer = Customer::new().await;
    let developer = Reader::new(&customer).await;
    developer.upload(&junit("", "")).await;
    let (execution, _) = developer.upload(&junit("no bank", "no printer")).await;
    let browser = Browser::open().await;
    let path = developer.share(&browser, id(&execution)).await;

    let visitor = Browser::open().await;
    let url = format!("{}{path}", developer.url);
    visitor.client.goto(&url).await.unwrap();
    assert_eq!(visitor.find("h1").await.text().await.unwrap(), "Every night");
    let causes = visitor.client.find_all(Locator::Css(".group")).await.unwrap();
    assert_eq!(causes.len(), 2, "one for each message");
    let shown = visitor.client.source().await.unwrap();
    assert!(!shown.contains(&developer.member.email) && !shown.contains("Log out"), "{shown}");
    visitor.click(".row.test a").await;
    let text = visitor.find(".text.failed pre").await.text().await.unwrap();
    assert!(["no bank", "no printer"].contains(&text.as_str()), "{text}");
    visitor.click("a[rel=up]").await;
    visitor.find(".tabs a[href*='view=all']").await.click().await.unwrap();
    visitor.find(".row.test a").await;
    visitor.client.goto(&format!("{}/executions/{}", developer.url, id(&execution))).await.unwrap();
    visitor.find("form.login").await;

    let page = developer.client.get(&url).send().await.unwrap();
    assert_eq!(page.headers()["referrer-policy"], "no-referrer");
    assert_eq!(page.headers()["x-robots-tag"], "noindex");
    browser.click("form.time button").await;
    browser.find(".empty").await;
    assert_eq!(developer.client.get(&url).send().await.unwrap().status(), 404);
    for browser in [browser, visitor] {
        browser.client.clone().close().await.unwrap();
    }
}

#[tokio::test]
async fn a_share_link_that_is_refused_stays_in_the_form() {
    let (reader, execution, at) = Reader::of_report(&junit("no bank", "")).await;
    let page = format!("/executions/{}/shares", id(&execution));
    let send = async |day: &str| {
        let request = reader.request(Method::POST, &page).header("origin", &reader.url);
        Answer::of(filled(request, &[("expires", day), ("expiresOffset", "-540")])).await
    };
    let refused = send("2020-01-01").await;
    let html = String::from_utf8_lossy(&refused.expect(422).body).into_owned();
    assert!(html.contains("must be in the future"), "{html}");
    assert!(html.contains("value=\"2020-01-01\"") && html.contains("Create a link"), "{html}");

    // A link ends with the day of the reader, here in Tokyo.
    let day = in_days(30).split('T').next().unwrap().to_owned();
    send(&day).await.expect(200);
    let links = reader.api().get(&format!("{at}/shares")).await.ok();
    assert_eq!(links[0]["ExpiresAt"], format!("{day}T15:00:00.000000Z"));

    // It is revoked in two tabs.
    for _ in 0..2 {
        let revoke = format!("{page}/{}/delete", id(&links[0]));
        let revoke = reader.request(Method::POST, &revoke).header("origin", &reader.url);
        assert_eq!(Answer::of(revoke).await.expect(303).headers["location"], page);
    }
}

#[tokio::test]
async fn every_answer_below_a_share_link_keeps_the_link_to_itself() {
    let (reader, _, at) = Reader::of_report(&junit("no bank", "")).await;
    let share = reader.api().post(&format!("{at}/shares"), json!({})).await.created();
    let token = share["Token"].as_str().unwrap();
    let report = "019cade2-11c0-7c16-bf3e-17fae47e173e";
    for path in [
        format!("/shared/{token}"),
        format!("/shared/{token}?limit=x&cursor=x"),
        format!("/shared/{token}/reports/{report}"),
        format!("/shared/{token}/reports/not-an-id"),
        format!("/shared/{token}/reports/{report}/content"),
        format!("/shared/{token}/unknown"),
        "/shared/unknown".to_owned(),
        format!("/api/shared/{token}"),
        format!("/api/shared/{token}/badge.svg"),
        format!("/api/shared/{token}/reports/{report}"),
    ] {
        let answer = Answer::of(reader.client.get(format!("{}{path}", reader.url))).await;
        for (name, value) in [
            ("referrer-policy", "no-referrer"),
            ("x-robots-tag", "noindex"),
            ("cache-control", "no-store"),
        ] {
            let found = answer.headers.get(name).map(|value| value.to_str().unwrap());
            assert_eq!(found, Some(value), "{name} of {path}: {}", answer.status);
        }
    }
}
