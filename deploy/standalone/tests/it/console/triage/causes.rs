//! The mode in which causes are triaged one after the other.

use std::time::{Duration, Instant};

use assay_testkit::Answer;
use reqwest::Method;
use serde_json::json;

use super::{Hands, report};
use crate::{
    browser::Browser,
    console::{
        Reader, filled,
        numbers::{between, next_page},
        tests,
    },
    customer::Customer,
    world::{id, in_days},
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

/// Number of failures, and of actions that their triage takes at most: it is opened, and each cause is judged once.
const FAILURES: usize = 60;
const MOST_ACTIONS: usize = 1 + CAUSES.len();

#[tokio::test(flavor = "multi_thread")]
async fn sixty_failures_are_triaged_cause_by_cause() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    for by_keys in [true, false] {
        let (execution, at) = reader.upload(&sixty()).await;
        let browser = Browser::open().await;
        reader.open(&browser, &format!("/executions/{}", id(&execution))).await;
        browser.read_until(".sentence", |text| text.starts_with("60 of 60 failed")).await;
        let mut hands = Hands { browser: &browser, actions: 0 };
        let (mut left, mut last, mut spent) = (FAILURES, 0, Duration::ZERO);
        let seen = reader.audit(id(&execution), FAILURES, left).await;
        assert_eq!(seen.len(), FAILURES, "each failure is behind a cause");
        let start = Instant::now();
        if by_keys {
            hands.press("t").await;
        } else {
            hands.click("[data-key=t]").await;
        }
        browser.read_until("#left", |text| text == "60 of 60 left").await;
        spent += start.elapsed();
        while left > 0 {
            let title = browser.text(".triage h2").await;
            let tests: usize = title.split(' ').next().unwrap().parse().unwrap();
            let start = Instant::now();
            if by_keys {
                hands.press("a").await;
            } else {
                hands.click("#review [value=Accepted]").await;
            }
            (left, last) = (left - tests, tests);
            let expected = match left {
                0 => "All 60 failures are judged".to_owned(),
                left => format!("{left} of 60 left"),
            };
            browser.read_until("#left", |text| text == expected).await;
            spent += start.elapsed();
            if left == 20 {
                reader.audit(id(&execution), FAILURES, left).await;
            }
        }
        let way = if by_keys { "keyboard" } else { "mouse" };
        println!("by {way}: {} actions, {spent:?} with the pages", hands.actions);
        assert!(hands.actions <= MOST_ACTIONS, "{} actions by {way}", hands.actions);
        assert_eq!(reader.judged(&at, "Accepted").await.len(), FAILURES);

        // The last one is taken back, and is the only one that is left.
        browser.press_here("z").await;
        browser.read_until("#undone", |text| text == "The review was taken back.").await;
        let taken_back = reader.api().get(&format!("{at}/failures?limit=100")).await.ok();
        let open = taken_back.as_array().unwrap().iter();
        let open: Vec<_> = open.filter(|cause| cause["Unreviewed"] != 0).collect();
        assert_eq!(open.len(), 1);
        reader.audit(id(&execution), FAILURES, last).await;
        let review = json!({"Causes": [open[0]["Fingerprint"]], "Status": "Accepted"});
        reader.api().put(&format!("{at}/reviews"), review).await.ok();
        reader.audit(id(&execution), FAILURES, 0).await;
        browser.client.clone().close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_the_run_before_is_offered_again() {
    let (reader, _, at) = Reader::of_report(&report()).await;
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

/// A report of tests that fail, each with a cause of its own: more than a page has.
fn many_causes() -> String {
    let words = CAUSES.map(|(word, _)| word);
    let pairs = words.iter().flat_map(|one| words.iter().map(move |other| (one, other)));
    let named = pairs.map(|(one, other)| {
        (format!("{one} {other}"), format!("Error: {one} does not answer {other}"))
    });
    let named: Vec<_> = named.collect();
    tests(named.iter().map(|(name, message)| (name.as_str(), message.as_str())))
}

impl Reader {
    /// Counts the causes on a page of the triage. Also returns the path of the next page.
    async fn causes_on(&self, path: &str) -> (usize, Option<String>) {
        let page = self.html(path).await;
        let list = between(&page, "aria-label=\"All causes\"", "</nav>").unwrap_or_default();
        (list.matches("<li").count(), next_page(&page))
    }

    /// Counts the causes on all pages of the triage.
    async fn all_causes(&self, path: &str) -> usize {
        let (mut next, mut count) = (Some(path.to_owned()), 0);
        while let Some(path) = next {
            let page = self.causes_on(&path).await;
            count += page.0;
            next = page.1;
        }
        count
    }
}

#[tokio::test]
async fn no_cause_is_left_out_of_a_triage_with_several_pages() {
    let (reader, execution, at) = Reader::of_report(&many_causes()).await;
    let page = format!("/executions/{}/triage", id(&execution));
    let (count, next) = reader.causes_on(&page).await;
    assert_eq!((count, reader.all_causes(&page).await), (100, 144));

    // The first page is judged: the others come first, and nothing is hidden by that.
    let causes = reader.api().get(&format!("{at}/failures?muted=false&limit=100")).await.ok();
    let causes: Vec<_> = causes.as_array().unwrap().clone();
    let fingerprints: Vec<_> = causes.iter().map(|cause| &cause["Fingerprint"]).collect();
    let review = json!({"Causes": fingerprints, "Status": "Accepted"});
    reader.api().put(&format!("{at}/reviews"), review).await.ok();
    assert!(reader.html(&page).await.contains("44 of 144 left"));
    assert_eq!(reader.causes_on(&page).await, (44, None));
    assert_eq!(reader.all_causes(&format!("{page}?all=yes")).await, 144);

    // A decision on the second page stays there.
    let next = next.unwrap();
    let second = reader.html(&next).await;
    let form = between(&second, "id=\"review\"", "</form>").unwrap();
    let cause = between(form, "name=\"cause\" value=\"", "\"").unwrap();
    let send = reader.request(Method::POST, &next).header("origin", &reader.url);
    let fields = [("cause", cause), ("status", "Rejected")];
    let judged = Answer::of(filled(send, &fields)).await;
    let judged = judged.expect(303).headers["location"].to_str().unwrap().to_owned();
    assert!(judged.starts_with(&next), "{judged}");
    assert_eq!(reader.causes_on(&judged).await, (43, None));
    // A judged cause can still be looked at.
    let first = fingerprints[0].as_str().unwrap();
    let again = reader.html(&format!("{page}?cause={first}")).await;
    assert!(again.contains(&format!("name=\"cause\" value=\"{first}\"")), "{again}");
}

#[tokio::test]
async fn the_causes_after_one_that_is_muted_meanwhile_are_listed() {
    let (reader, _, at) = Reader::of_report(&many_causes()).await;
    let list = format!("{at}/failures?muted=false&limit=10");
    let first = reader.api().get(&list).await;
    let link = first.headers["link"].to_str().unwrap();
    let second = link.trim_start_matches('<').split('>').next().unwrap();
    let first = first.ok();
    let tenth = first[9]["Fingerprint"].as_str().unwrap();
    let before = reader.api().get(second).await.ok();
    let mute = json!({
        "Causes": [tenth], "Status": "Accepted", "Ticket": "SHOP-9",
        "Known": {"MutedUntil": in_days(30)},
    });
    reader.api().put(&format!("{at}/reviews"), mute).await.ok();
    let after = reader.api().get(second).await.ok();
    let of = |causes: &serde_json::Value| {
        let causes = causes.as_array().unwrap().iter();
        causes.map(|cause| cause["Fingerprint"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((of(&after).len(), of(&after)), (10, of(&before)));
    let left = reader.api().get(&format!("{at}/failures?unreviewed=true")).await.ok();
    assert_eq!(left.as_array().unwrap().len(), 143);
}

#[tokio::test]
async fn a_judgement_that_is_refused_says_so_if_its_cause_was_muted_meanwhile() {
    let (reader, execution, at) = Reader::of_report(&report()).await;
    let causes = reader.api().get(&format!("{at}/failures")).await.ok();
    let first = causes[0]["Fingerprint"].as_str().unwrap();
    let mute = json!({
        "Causes": [first], "Status": "Accepted", "Known": {"MutedUntil": in_days(30)},
    });
    reader.api().put(&format!("{at}/reviews"), mute).await.ok();
    let page = format!("/executions/{}/triage?cause={first}", id(&execution));
    let send = reader.request(Method::POST, &page).header("origin", &reader.url);
    let fields = [("cause", first), ("status", "Accepted"), ("until", "tomorrow")];
    let refused = Answer::of(filled(send, &fields)).await;
    let refused = String::from_utf8_lossy(&refused.expect(422).body).into_owned();
    assert!(refused.contains("The judgement is not saved"), "{refused}");
    // A link to it says that another cause is shown; one to a cause of the list does not.
    let missing = "The cause of this address is not in this list";
    let other = causes[1]["Fingerprint"].as_str().unwrap();
    let shown = reader.html(&page).await;
    assert!(shown.contains(missing) && shown.contains("The first cause"), "{shown}");
    assert!(!reader.html(&page.replace(first, other)).await.contains(missing));
}

#[tokio::test]
async fn the_tests_behind_a_cause_are_as_many_as_it_counts_if_some_are_muted() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let named = ["one", "two", "three"].map(|name| (name, "Error: the bank does not answer"));
    let (execution, at) = reader.upload(&tests(named)).await;
    let reports = reader.api().get(&format!("{at}/reports?result=Failed")).await.ok();
    let mute = json!({
        "Reports": [id(&reports[0])], "Status": "Accepted", "Known": {"MutedUntil": in_days(30)},
    });
    reader.api().put(&format!("{at}/reviews"), mute).await.ok();
    let triage = reader.html(&format!("/executions/{}/triage", id(&execution))).await;
    assert!(triage.contains("2 tests with one cause"), "{triage}");
    let list =
        between(&triage, "<p class=\"more\"><a href=\"", "\"").unwrap().replace("&amp;", "&");
    assert_eq!(reader.rows(&list).await, 2, "{list}");
}
