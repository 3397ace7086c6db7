//! Failures are triaged one after the other, or by their causes; nothing is missed or lost.

mod audit;
mod causes;
mod draft;
mod keys;
mod left;
mod undo;

use fantoccini::Locator;
use serde_json::{Value, json};

use super::{Reader, tests};
use crate::{browser::Browser, customer::Customer, world::id};

const REFUSED: &str = "Error: connect ECONNREFUSED 127.0.0.1:38231";

/// Names of tests: more than a cause shows.
const NAMES: [&str; 7] = ["t1", "t2", "t3", "t4", "t5", "t6", "t7"];

/// A report of tests that fail for one cause, and one that fails for another.
fn report() -> String {
    let refused = NAMES.iter().map(|name| (*name, REFUSED));
    tests(refused.chain([("prints", "no printer")]))
}

impl Browser {
    async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// Presses keys at the element with the focus.
    async fn press_here(&self, key: &str) {
        self.client.active_element().await.unwrap().send_keys(key).await.unwrap();
    }

    async fn text(&self, css: &str) -> String {
        self.find(css).await.text().await.unwrap()
    }
}

impl Reader {
    /// Returns the names of the tests of an execution with a status.
    async fn judged(&self, at: &str, status: &str) -> Vec<String> {
        let reports = self.api().get(&format!("{at}/reports?status={status}")).await.ok();
        let reports = reports.as_array().unwrap().iter();
        reports.map(|report| report["TestCaseName"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_visits_every_failure_of_the_list() {
    let (reader, execution, at) = Reader::of_report(&report()).await;
    for browser in [Browser::open().await, Browser::open_without_scripts().await] {
        reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
        browser.click(".group .row a").await;
        for (number, name) in NAMES.iter().chain([&"prints"]).enumerate() {
            browser.read_until("h1", |text| text == *name).await;
            let place = format!("{} of 8", number + 1);
            assert!(browser.text(".walk").await.starts_with(&place), "{place}");
            if number == 5 {
                browser.click("#review [value=Accepted]").await;
                browser.read_until("#reviewed", |text| text == "1 test reviewed.").await;
            }
            browser.click("a[rel=next]").await;
        }
        let end = "That was the last one: 1 of 8 reviewed.";
        browser.read_until(".done", |text| text == end).await;
        browser.client.clone().close().await.unwrap();
    }
    assert_eq!(reader.judged(&at, "Accepted").await, ["t6"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_box_of_a_cause_selects_all_of_its_tests() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    for (browser, with_scripts) in
        [(Browser::open().await, true), (Browser::open_without_scripts().await, false)]
    {
        let (execution, at) = reader.upload(&report()).await;
        reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
        browser.click(".group .all").await;
        if with_scripts {
            browser.read_until("#selected", |text| text == "7 selected").await;
            // Without one of its tests, a cause is not selected as a whole.
            browser.click(".group .row [type=checkbox]").await;
            browser.read_until("#selected", |text| text == "4 selected").await;
            browser.click(".group .all").await;
        }
        browser.type_into("[name=ticket]", "SHOP-1").await;
        browser.click("#review [value=Accepted]").await;
        browser.read_until("#reviewed", |text| text == "7 tests reviewed.").await;
        assert_eq!(reader.judged(&at, "Accepted").await, NAMES);
        browser.client.clone().close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judgement_can_be_undone_for_some_seconds_and_reset_later() {
    let (reader, execution, at) = Reader::of_report(&report()).await;
    let browser = Browser::open().await;
    let page = format!("/executions/{}", id(&execution));

    // A judgement of one test: its former one comes back.
    let reports = reader.api().get(&format!("{at}/reports?result=Failed")).await.ok();
    let first = json!({
        "Reports": [id(&reports[0])], "Status": "Rejected", "Comment": "a real bug",
        "Ticket": "SHOP-1",
    });
    reader.api().put(&format!("{at}/reviews"), first).await.ok();
    reader.open(&browser, &format!("/reports/{}", id(&reports[0]))).await;
    browser.press_here("a").await;
    browser.read_until(".review", |text| text.starts_with("Accepted")).await;
    browser.click(".undo button").await;
    browser.read_until(".review", |text| text.starts_with("Rejected")).await;
    let stored = reader.api().get(&format!("{at}/reports?status=Rejected")).await.ok();
    assert_eq!(
        (&stored[0]["Comment"], &stored[0]["Ticket"]),
        (&json!("a real bug"), &json!("SHOP-1"))
    );

    // One of a list: nobody has judged these tests before.
    reader.open(&browser, &page).await;
    let boxes = Locator::Css(".row.test input[type=checkbox]");
    for row in &browser.client.find_all(boxes).await.unwrap()[1..3] {
        row.click().await.unwrap();
    }
    browser.type_into("[name=ticket]", "SHOP-2").await;
    browser.click("#review [value=Accepted]").await;
    browser.read_until("#reviewed", |text| text == "2 tests reviewed.").await;
    browser.click(".undo button").await;
    browser.read_until("#undone", |text| text == "The review was taken back.").await;
    let ticket = browser.find("[name=ticket]").await.prop("value").await.unwrap();
    assert_eq!(ticket.as_deref(), Some("SHOP-2"), "what was typed comes back");
    let tickets = reader.api().get(&format!("{at}/reports?status=InReview")).await.ok();
    let tickets =
        tickets.as_array().unwrap().iter().map(|report| report["Ticket"].as_str().unwrap());
    assert_eq!(tickets.collect::<String>(), "");
    browser.client.clone().close().await.unwrap();

    // Without scripts, a judgement is reset.
    let browser = Browser::open_without_scripts().await;
    reader.open(&browser, &format!("/reports/{}", id(&reports[0]))).await;
    browser.click("#review [value=InReview]").await;
    browser.read_until(".done", |text| text == "1 test to review again.").await;
    assert!(reader.judged(&at, "Rejected").await.is_empty());
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_muted_until_the_end_of_the_day_of_the_reader() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    // Zones without summer time.
    for (zone, end) in
        [("America/Phoenix", "T07:00:00"), ("Asia/Tokyo", "T15:00:00"), ("UTC", "T00:00:00")]
    {
        let (execution, _) = reader.upload(&report()).await;
        let browser = Browser::open_at(zone).await;
        let page = format!("/executions/{}?result=Failed", id(&execution));
        reader.open(&browser, &page).await;
        browser.click(".row.test input[type=checkbox]").await;
        let day = browser.run("return document.querySelector('[name=until]').max").await;
        let max = day.as_str().unwrap();
        let set = format!(
            "const field = document.querySelector('[name=until]'); field.value = '{max}';
             field.dispatchEvent(new Event('change', {{bubbles: true}}))"
        );
        browser.run(&set).await;
        browser.click("#review [value=Accepted]").await;
        browser.read_until("#reviewed", |text| text.ends_with("1 failure muted.")).await;
        let project = execution["ProjectId"].as_str().unwrap();
        let known = reader.api().get(&format!("/api/projects/{project}/knownfailures")).await.ok();
        let until = known[0]["MutedUntil"].as_str().unwrap();
        assert!(until.contains(end), "{zone}: {until}");
        let known = format!("/api/projects/{project}/knownfailures/{}", id(&known[0]));
        reader.api().delete(&known).await.expect(204);
        browser.client.clone().close().await.unwrap();
    }
}

/// A report of sixty failures with twelve causes.
fn sixty() -> String {
    let names: Vec<_> = (0..60).map(|nr| format!("test {nr:02}")).collect();
    let messages: Vec<_> =
        (0..60).map(|nr| format!("no {}", "abcdefghijkl".split_at(nr / 5 + 1).0)).collect();
    tests(names.iter().map(String::as_str).zip(messages.iter().map(String::as_str)))
}

/// Counts what a person does.
struct Hands<'a> {
    browser: &'a Browser,
    actions: usize,
}

impl Hands<'_> {
    async fn click(&mut self, css: &str) {
        self.actions += 1;
        self.browser.click(css).await;
    }

    async fn press(&mut self, key: &str) {
        self.actions += 1;
        self.browser.press_here(key).await;
    }

    /// Waits for the page after a judgement.
    async fn see_judged(&self, causes: usize) {
        let judged = format!("{} to review", 60 - 5 * causes);
        let is_shown = |text: &str| {
            if causes == 12 { !text.contains("review") } else { text.contains(&judged) }
        };
        self.browser.read_until(".legend", is_shown).await;
        self.browser.find("#reviewed").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_failures_are_triaged_by_their_twelve_causes() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    for by_mouse in [true, false] {
        let (execution, at) = reader.upload(&sixty()).await;
        let browser = Browser::open().await;
        reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
        let mut hands = Hands { browser: &browser, actions: 0 };
        let start = std::time::Instant::now();
        for cause in 1..=12 {
            if by_mouse {
                hands.click(&format!(".group:nth-of-type({cause}) .all")).await;
                hands.click("#review [value=Accepted]").await;
            } else {
                for key in ["n", "c", "a"] {
                    hands.press(key).await;
                }
            }
            hands.see_judged(cause).await;
        }
        println!("by mouse: {by_mouse}: {} actions, {:?}", hands.actions, start.elapsed());
        assert_eq!(reader.judged(&at, "Accepted").await.len(), 60);
        assert_eq!(hands.actions, if by_mouse { 24 } else { 36 });
        browser.client.clone().close().await.unwrap();
    }
}
