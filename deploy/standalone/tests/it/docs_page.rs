//! The documentation page in a browser.

use crate::{browser::Browser, customer::Customer, world::create_project};

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_can_be_tried_on_the_documentation_page() {
    let customer = Customer::new().await;
    let made = create_project(&customer.api).await;
    let browser = Browser::open().await;

    browser.client.goto(&format!("{}/docs/", customer.url())).await.unwrap();
    browser.read_until(".info .title", |title| title.starts_with("Assay")).await;
    browser.click("#operations-tag-Projects").await;
    browser.click("#operations-Projects-list_projects").await;
    let status = ".live-responses-table tbody .response-col_status";
    let execute = "#operations-Projects-list_projects .execute";
    browser.click(execute).await;
    browser.read_until(status, |status| status.starts_with("401")).await;

    browser.click(".btn.authorize").await;
    browser.type_into(".auth-container input", customer.api.token()).await;
    browser.click(".auth-container .btn.authorize").await;
    browser.click(".auth-container .btn-done").await;
    browser.click(execute).await;
    browser.read_until(status, |status| status.starts_with("200")).await;
    let id = made.rsplit('/').next().unwrap();
    browser
        .read_until(".live-responses-table tbody .response-col_description", |it| it.contains(id))
        .await;

    let elsewhere =
        |name: &String| !name.starts_with(&customer.url()) && !name.starts_with("data:");
    let loaded = browser.loaded().await;
    assert!(loaded.len() > 3, "{loaded:#?}");
    assert_eq!(loaded.into_iter().find(elsewhere), None);
    browser.client.clone().close().await.unwrap();
}
