//! Users who have forgotten their password choose a new one.

use super::Reader;
use crate::{browser::Browser, customer::Customer};

const NEW: &str = "an altogether different phrase";

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_password_is_replaced_by_the_link_in_a_mail() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let browser = Browser::open().await;
    let email = &reader.member.email;

    browser.client.goto(&format!("{}/login", reader.url)).await.unwrap();
    browser.click("form.login a").await;
    browser.type_into("#email", email).await;
    browser.click(".login button").await;
    browser.read_until(".bare", |text| text.contains("is on its way")).await;
    let mail = customer.assay.take_mail_to(email).await;

    let link = format!("{}/reset-password#token={}", reader.url, mail.token());
    browser.client.goto(&link).await.unwrap();
    browser.type_into("#password", NEW).await;
    browser.type_into("#again", NEW).await;
    browser.click("form button").await;
    browser.read_until("h1", |text| text == "Done").await;
    browser.click("main a").await;
    browser.type_into("#email", email).await;
    browser.type_into("#password", NEW).await;
    browser.click(".login button").await;
    browser.find(".user").await;
    browser.client.clone().close().await.unwrap();
}
