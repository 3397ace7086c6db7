//! The state of a test case on its page.

use assay_testkit::Answer;
use reqwest::Method;

use super::{Reader, conflict::values, filled, junit};
use crate::{customer::Customer, world::in_days};

/// Sends the form of a test case, and returns the answer.
async fn set(reader: &Reader, case: &str, fields: &[(&str, &str)]) -> Answer {
    let request = reader.request(Method::POST, &format!("/cases/{case}/state"));
    Answer::of(filled(request.header("origin", &reader.url), fields)).await
}

async fn read(reader: &Reader, page: &str) -> String {
    String::from_utf8_lossy(&reader.get(page).await.expect(200).body).into_owned()
}

#[tokio::test]
async fn a_test_is_muted_skipped_and_enabled_on_its_page() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.upload(&junit("no bank", "")).await;
    let reports = reader.api().get(&format!("{path}/reports")).await.ok();
    let case = reports[0]["TestCaseId"].as_str().unwrap();
    let page = format!("/cases/{case}");
    assert!(read(&reader, &page).await.contains("Mute or skip this test"));

    let until = in_days(30);
    let until = &until[..10];
    let mute =
        [("state", "Muted"), ("until", until), ("ticket", "SHOP-7"), ("reason", "<b>odd</b>")];
    set(&reader, case, &mute).await.expect(303);
    let shown = read(&reader, &page).await;
    for text in ["<b>Muted</b>", "SHOP-7", "&lt;b&gt;odd&lt;/b&gt;", "Grace", "Enable this test"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let project = execution["ProjectId"].as_str().unwrap();
    let listed = read(&reader, &format!("/projects/{project}/knownfailures")).await;
    assert!(listed.contains("Muted and skipped tests") && listed.contains(&page), "{listed}");
    let (_, path) = reader.upload(&junit("no bank", "")).await;
    let summary = reader.api().get(&format!("{path}/summary")).await.ok();
    assert_eq!(summary["Changes"]["Muted"], 1);

    for (day, reason) in [("soon", "yyyy-mm-dd"), ("2020-01-01", "must be in the future")] {
        let refused = set(&reader, case, &[("state", "Skipped"), ("until", day)]).await;
        let refused = String::from_utf8_lossy(&refused.expect(422).body).into_owned();
        assert!(refused.contains(reason), "{refused}");
    }
    set(&reader, case, &[("state", "Skipped"), ("until", until)]).await.expect(303);
    assert!(read(&reader, &page).await.contains("<b>Skipped</b>"));
    set(&reader, case, &[("state", "Enabled")]).await.expect(303);
    assert!(!read(&reader, &page).await.contains("Enable this test"));

    let viewer = Reader::with(&customer, "vera", "Login, Read").await;
    assert!(!read(&viewer, &page).await.contains("Mute or skip this test"));
    set(&viewer, case, &mute).await.expect(403);
}

#[tokio::test]
async fn a_state_that_was_set_since_is_replaced_only_by_a_user_who_confirms_it() {
    let customer = Customer::new().await;
    let grace = Reader::new(&customer).await;
    let tom = Reader::with(&customer, "tom", super::DEVELOPER).await;
    let (execution, path) = grace.upload(&junit("no bank", "")).await;
    let reports = grace.api().get(&format!("{path}/reports")).await.ok();
    let case = reports[0]["TestCaseId"].as_str().unwrap();
    let project = execution["ProjectId"].as_str().unwrap();
    let state = async || {
        let path = format!("/api/projects/{project}/testcases/{case}/state");
        grace.api().get(&path).await.ok()["State"].clone()
    };
    let page = format!("/cases/{case}");
    let opened = values(&read(&tom, &page).await, "version");
    let [enabled] = &opened[..] else { panic!("{opened:?}") };
    let until = in_days(30);
    let mute = [("state", "Muted"), ("until", &until[..10]), ("version", enabled)];
    set(&grace, case, &mute).await.expect(303);

    let skip = [
        ("state", "Skipped"),
        ("until", &until[..10]),
        ("reason", "slow <b>"),
        ("version", enabled),
    ];
    let refused = set(&tom, case, &skip).await;
    let refused = String::from_utf8_lossy(&refused.expect(409).body).into_owned();
    for text in ["Somebody else has changed this state", "value=\"slow &lt;b&gt;\"", &until[..10]] {
        assert!(refused.contains(text), "{text}: {refused}");
    }
    assert_eq!(state().await, "Muted");
    let muted = values(&refused, "replaced").remove(0);
    let confirmed = [&skip[..], &[("replaced", &muted)]].concat();
    set(&tom, case, &confirmed).await.expect(303);
    assert_eq!(state().await, "Skipped");

    let enable = [("state", "Enabled"), ("version", muted.as_str())];
    let refused = set(&grace, case, &enable).await;
    let refused = String::from_utf8_lossy(&refused.expect(409).body).into_owned();
    assert!(refused.contains("Somebody else has changed this state"), "{refused}");
    assert_eq!(state().await, "Skipped");
}

#[tokio::test]
async fn a_change_of_a_state_keeps_the_filter_of_the_page() {
    let (reader, _, path) = Reader::of_report(&junit("no bank", "")).await;
    let reports = reader.api().get(&format!("{path}/reports")).await.ok();
    let page = format!("/cases/{}", reports[0]["TestCaseId"].as_str().unwrap());
    let shown = read(&reader, &format!("{page}?branch=main")).await;
    let action = format!("{page}/state?branch=main");
    assert!(shown.contains(&format!("action=\"{action}\"")), "{shown}");
    let request = reader.request(Method::POST, &action).header("origin", &reader.url);
    let until = in_days(30);
    let fields = [("state", "Muted"), ("until", &until[..10])];
    let changed = Answer::of(filled(request, &fields)).await;
    assert_eq!(changed.expect(303).headers["location"], format!("{page}?branch=main").as_str());
}
