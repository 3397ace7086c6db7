//! The page of hours of execution and statements.

use assay_testkit::eventually;
use serde_json::json;

use super::{Reader, junit};
use crate::{browser::Browser, customer::Customer, world::id};

/// The permission to read pages, with those for hours and statements.
const ACCOUNTANT: &str = "Login, Read, ExecutionTimes, Invoicing";

#[tokio::test(flavor = "multi_thread")]
async fn hours_of_a_month_are_read_and_downloaded_with_their_statement() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.upload(&junit("", "")).await;
    let ended = reader.api().get(&path).await.ok();
    let month = ended["CompletionDateTime"].as_str().unwrap()[..7].to_owned();
    let current = customer.api.get("/api/management/customers/current").await.ok();
    let record = format!("/api/management/customers/{}", id(&current));
    let figures =
        json!({"PricePerHour": 4, "MinimumConsumptionInH": 10, "Tax": 10, "Discounts": "50"});
    customer.assay.api.put(&record, figures).await.ok();
    let accountant = Reader::with(&customer, "ivy", ACCOUNTANT).await;
    eventually("the hours of the execution", || async {
        let times = accountant.api().get("/api/executiontimes").await.ok();
        (times != json!([])).then_some(())
    })
    .await;

    let browser = Browser::open_without_scripts().await;
    accountant.open(&browser, "/").await;
    browser.click("a[href='/usage']").await;
    browser
        .read_until("[aria-label='Hours by test set']", |text| text.contains("Every night"))
        .await;
    browser.read_until("[aria-label='Hours by project']", |text| text.contains("Shop")).await;
    browser
        .read_until("[aria-label='Hours by target group']", |text| {
            text.contains("Reported from elsewhere")
        })
        .await;
    browser
        .read_until("[aria-labelledby=statement]", |text| {
            text.contains("22.00 EUR") && text.contains("preliminary")
        })
        .await;
    browser.click(".filters button").await;
    let to = browser.find("[name=to]").await.prop("value").await.unwrap();
    assert_eq!(to.as_deref(), Some(month.as_str()));
    browser.client.clone().close().await.unwrap();

    let hours = accountant.get(&format!("/usage/executiontimes?from={month}&to={month}")).await;
    assert_eq!(hours.expect(200).json()[0]["TestSetId"], execution["TestSetId"]);
    let statement = accountant.get(&format!("/usage/statement?month={month}")).await;
    assert_eq!(statement.expect(200).json()["TotalAmount"], json!(22.0));
    let project = execution["ProjectId"].as_str().unwrap();
    let other = accountant.text("/usage?from=2020-01&to=2020-02").await;
    assert!(other.contains("No execution ended in this time"), "{other}");
    // The months that are shown stay chosen, and those before them can be chosen.
    for option in ["2020-01\" selected", "2020-02\" selected", "2018-02\""] {
        assert!(other.contains(&format!("<option value=\"{option}")), "{option}: {other}");
    }
    let same = accountant.text(&format!("/usage?projectId={project}&from={month}")).await;
    assert!(same.contains("Every night"), "{same}");
}

#[tokio::test]
async fn hours_and_statements_need_their_permissions() {
    let customer = Customer::new().await;
    let developer = Reader::new(&customer).await;
    assert!(!developer.text("/").await.contains("href=\"/usage\""));
    developer.get("/usage").await.expect(403);
    developer.get("/usage/statement?month=2026-11").await.expect(403);
    let clerk = Reader::with(&customer, "clara", "Login, Invoicing").await;
    let page = clerk.text("/usage").await;
    assert!(page.contains("Statement of") && !page.contains("By month"), "{page}");
    clerk.get("/usage/executiontimes").await.expect(403);
    let planner = Reader::with(&customer, "pia", "Login, ExecutionTimes").await;
    assert!(!planner.text("/usage").await.contains("Statement of"));
}
