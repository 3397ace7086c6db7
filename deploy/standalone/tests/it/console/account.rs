//! API tokens and customers of a user.

use assay_testkit::Answer;
use reqwest::Method;

use super::{Reader, filled};
use crate::{
    browser::Browser,
    customer::Customer,
    people::{Member, create_user},
    world::id,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_api_token_is_created_shown_once_and_deleted() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let browser = Browser::open().await;

    reader.open(&browser, "/account").await;
    browser.type_into("[name=name]", "Nightly build").await;
    browser.click(".filters button").await;
    let secret = browser.read_until(".done pre", |text| text.starts_with("assay_")).await;
    let job = customer.anonymous().with_token(secret);
    job.get("/api/projects").await.ok();

    reader.open(&browser, "/account").await;
    browser.read_until(".rows", |text| text.contains("Nightly build")).await;
    let html = browser.client.source().await.unwrap();
    assert!(!html.contains(job.token()));
    browser.click(".rows button").await;
    browser.read_until("main", |text| !text.contains("Nightly build")).await;
    assay_testkit::eventually("the revocation", || async {
        (job.get("/api/projects").await.status == 401).then_some(())
    })
    .await;
    browser.client.clone().close().await.unwrap();
}

#[tokio::test]
async fn a_refused_token_leads_back_to_the_form_with_the_reason() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let request = reader.request(Method::POST, "/account/tokens").header("origin", &reader.url);
    let fields = [("name", "Nightly"), ("permissions", "Read"), ("expires", "2020-02-30")];
    let refused = Answer::of(filled(request, &fields)).await;
    let page = String::from_utf8_lossy(&refused.expect(422).body).into_owned();
    let (_, alert) = page.split_once("role=\"alert\"").expect(&page);
    assert!(alert.contains("ExpiresAt") && page.contains("API tokens"), "{page}");
    assert!(page.contains("value=\"Nightly\"") && page.contains("value=\"2020-02-30\""), "{page}");

    // A token ends with the day of the reader, here in Los Angeles.
    let request = reader.request(Method::POST, "/account/tokens").header("origin", &reader.url);
    let expires = [("expires", "2099-12-31"), ("expiresOffset", "480")];
    let fields = [&fields[..2], &expires[..]].concat();
    Answer::of(filled(request, &fields)).await.expect(200);
    let tokens = reader.api().get("/api/users/current/tokens").await.ok();
    assert_eq!(tokens[0]["ExpiresAt"], "2100-01-01T08:00:00.000000Z");

    // It is deleted in two tabs.
    for _ in 0..2 {
        let delete = format!("/account/tokens/{}/delete", id(&tokens[0]));
        let delete = reader.request(Method::POST, &delete).header("origin", &reader.url);
        assert_eq!(Answer::of(delete).await.expect(303).headers["location"], "/account");
    }
}

#[tokio::test]
async fn a_user_switches_to_another_customer() {
    let (one, other) = (Customer::new().await, Customer::new().await);
    let reader = Reader::new(&one).await;
    let Member { group, .. } = other.create_member("linus", "Login, Read").await;
    create_user(&other.api, &reader.member.email, &group).await.created();
    let invited = reader.get("/account").await;
    let invited = String::from_utf8_lossy(&invited.expect(200).body).into_owned();
    let (_, accept) = invited.split_once("action=\"/account/memberships/").unwrap();
    let accept = format!("/account/memberships/{}", accept.split('"').next().unwrap());
    let accept = reader.request(Method::POST, &accept).header("origin", &reader.url);
    assert_eq!(Answer::of(accept).await.expect(303).headers["location"], "/account");

    let page = reader.get("/account").await;
    let html = String::from_utf8_lossy(&page.expect(200).body).into_owned();
    let (_, choice) = html.split_once("Customers</h2>").unwrap();
    let memberships = reader.api().get("/api/users/current/memberships").await.ok();
    let target = memberships.as_array().unwrap().iter().find(|one| one["Current"] == false);
    let target = target.unwrap()["CustomerId"].as_str().unwrap();
    assert!(choice.contains(target), "{choice}");

    let request = reader.request(Method::POST, "/account/customer").header("origin", &reader.url);
    let switched = Answer::of(filled(request, &[("customer", target)])).await;
    let cookie = switched.expect(303).headers["set-cookie"].to_str().unwrap();
    let token = cookie.trim_start_matches("assay=").split(';').next().unwrap();
    let current = customer_of(&reader, token).await;
    assert_eq!(current, target);
}

async fn customer_of(reader: &Reader, token: &str) -> String {
    let api = reader.api().with_token(token);
    let memberships = api.get("/api/users/current/memberships").await.ok();
    let current = memberships.as_array().unwrap().iter().find(|one| one["Current"] == true);
    current.unwrap()["CustomerId"].as_str().unwrap().to_owned()
}
