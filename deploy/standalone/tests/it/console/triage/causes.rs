//! The mode in which causes are triaged one after the other.

use serde_json::json;

use super::report;
use crate::{
    browser::Browser,
    console::{Reader, tests},
    customer::Customer,
    world::id,
};

/// Causes, and the numbers of tests that fail with them: 60 in total.
const CAUSES: [(&str, usize); 12] = [
    ("alpha", 24),
    ("bravo", 10),
    ("charlie", 6),
    ("delta", 4),
    ("echo", 3),
    ("foxtrot", 3),
    ("golf", 2),
    ("hotel", 2),
    ("india", 2),
    ("juliet", 2),
    ("kilo", 1),
    ("lima", 1),
];

/// A report of tests that fail with these causes.
fn sixty() -> String {
    let named = CAUSES.iter().flat_map(|(word, count)| {
        let message = format!("Error: service {word} is not reachable");
        (0..*count).map(move |nr| (format!("{word} {nr}"), message.clone()))
    });
    let named: Vec<_> = named.collect();
    tests(named.iter().map(|(name, message)| (name.as_str(), message.as_str())))
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_failures_are_triaged_cause_by_cause() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    for by_keys in [true, false] {
        let (execution, at) = reader.upload(&sixty()).await;
        let browser = Browser::open().await;
        reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
        browser.read_until(".sentence", |text| text.starts_with("60 of 60 failed")).await;
        let mut actions = 1;
        if by_keys {
            browser.press_here("t").await;
        } else {
            browser.click("[data-key=t]").await;
        }
        browser.read_until("#left", |text| text == "60 of 60 left").await;
        let mut left = 60;
        while left > 0 {
            let title = browser.text(".triage h2").await;
            let tests: i64 = title.split(' ').next().unwrap().parse().unwrap();
            if by_keys {
                browser.press_here("a").await;
            } else {
                browser.click("#review [value=Accepted]").await;
            }
            actions += 1;
            left -= tests;
            let expected = match left {
                0 => "All 60 failures are judged".to_owned(),
                left => format!("{left} of 60 left"),
            };
            browser.read_until("#left", |text| text == expected).await;
        }
        assert_eq!(actions, 1 + CAUSES.len(), "one action for each cause");
        assert_eq!(reader.judged(&at, "Accepted").await.len(), 60);

        // The last one is taken back, and is the only one that is left.
        browser.press_here("z").await;
        browser.read_until("#undone", |text| text == "The review was taken back.").await;
        let taken_back = reader.api().get(&format!("{at}/failures?limit=100")).await.ok();
        let open = taken_back.as_array().unwrap().iter();
        assert_eq!(open.filter(|cause| cause["Unreviewed"] != 0).count(), 1);
        browser.client.clone().close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_the_run_before_is_offered_again() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (_, at) = reader.upload(&report()).await;
    let causes = reader.api().get(&format!("{at}/failures")).await.ok();
    let review = json!({
        "Causes": [causes[0]["Fingerprint"]], "Status": "Rejected", "Ticket": "SHOP-77",
        "Comment": "the bank is closed",
    });
    reader.api().put(&format!("{at}/reviews"), review).await.ok();
    let (execution, at) = reader.upload(&report()).await;
    let browser = Browser::open_without_scripts().await;
    reader.open(&browser, &format!("/executions/{}/triage", id(&execution))).await;
    let decision = |text: &str| text.contains("Rejected") && text.contains("SHOP-77");
    browser.read_until(".review", decision).await;
    browser.click("#review [value=Rejected]").await;
    browser.read_until("#left", |text| text == "1 of 8 left").await;
    let reports = reader.api().get(&format!("{at}/reports?status=Rejected")).await.ok();
    assert_eq!(reports.as_array().unwrap().len(), 7);
    assert_eq!(
        (&reports[0]["Ticket"], &reports[0]["Comment"]),
        (&json!("SHOP-77"), &json!("the bank is closed"))
    );
    browser.client.clone().close().await.unwrap();
}
