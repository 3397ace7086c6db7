//! The pages of monitors: one is tried dry, switched on, changed and deleted.

use assay_testkit::{Answer, eventually};
use reqwest::Method;
use serde_json::json;

use super::{Reader, filled, junit};
use crate::{browser::Browser, customer::Customer};

impl Reader {
    pub(super) async fn text(&self, path: &str) -> String {
        let page = self.get(path).await;
        String::from_utf8_lossy(&page.expect(200).body).into_owned()
    }

    pub(super) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let request = self.request(Method::POST, path).header("origin", &self.url);
        Answer::of(filled(request, fields)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_is_tried_dry_then_switched_on_and_deleted() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, _) = reader.upload(&junit("", "")).await;
    let project = execution["ProjectId"].as_str().unwrap().to_owned();
    let monitors = format!("/projects/{project}/monitors");
    let browser = Browser::open_without_scripts().await;
    reader.open(&browser, &format!("/projects/{project}")).await;
    browser.click(&format!("a[href='{monitors}']")).await;
    browser.read_until(".empty", |text| text == "This project has no monitors.").await;
    browser.type_into("[name=name]", "Flaky tests").await;
    browser.find("[name=threshold]").await.clear().await.unwrap();
    browser.type_into("[name=threshold]", "2").await;
    browser.click(".filters button").await;
    browser.read_until(".done", |text| text == "Saved.").await;
    let page = browser.client.current_url().await.unwrap().path().to_owned();
    browser.read_until(".badge", |text| text == "Dry run").await;
    browser.read_until(".empty", |text| text.starts_with("Nothing in the last 90 days")).await;

    // It is flaky. The monitor says what it would have done.
    for message in ["", "no bank", "", "no bank", "", "no bank"] {
        reader.upload(&junit(message, "")).await;
    }
    eventually("what the monitor would have done", || async {
        let text = reader.text(&page).await;
        let said = ["Actions it would have taken", "Would have muted", "recovered 2 times"];
        (said.iter().all(|said| text.contains(said)) && text.contains("pays by card")).then_some(())
    })
    .await;
    let states = format!("/api/projects/{project}/testcasestates");
    assert_eq!(reader.api().get(&states).await.ok(), json!([]));

    // It is switched on, and acts.
    reader.open(&browser, &page).await;
    browser.click("[name=dryRun]").await;
    browser.click(".filters button").await;
    browser.read_until(".badge", |text| text == "On").await;
    for message in ["", "no bank"] {
        reader.upload(&junit(message, "")).await;
    }
    eventually("the state of the test", || async {
        let states = reader.api().get(&states).await.ok();
        (states[0]["Owner"] == "monitor Flaky tests").then_some(())
    })
    .await;
    assert!(reader.text(&page).await.contains(">Muted<"));

    // A monitor that is refused stays in the form, and a change of somebody else is not lost.
    let wrong = [("name", "Odd"), ("measure", "Recoveries"), ("action", "Mute"), ("runs", "3")];
    let refused = reader.post(&monitors, &wrong).await;
    let refused = String::from_utf8_lossy(&refused.expect(422).body).into_owned();
    assert!(refused.contains("Runs") && refused.contains("value=\"Odd\""), "{refused}");
    let old = [
        ("name", "Late"),
        ("measure", "Recoveries"),
        ("threshold", "2"),
        ("action", "Mute"),
        ("version", "1"),
    ];
    let refused = reader.post(&page, &old).await;
    let refused = String::from_utf8_lossy(&refused.expect(422).body).into_owned();
    assert!(refused.contains("Somebody else") && refused.contains("value=\"Late\""), "{refused}");

    let viewer = Reader::with(&customer, "vera", "Login, Read").await;
    let read_only = viewer.text(&page).await;
    assert!(!read_only.contains("<h2>Change</h2>") && read_only.contains("Actions taken"));
    viewer.post(&page, &old).await.expect(403);
    viewer.post(&format!("{page}/delete"), &[]).await.expect(403);

    reader.open(&browser, &page).await;
    browser.click("details summary").await;
    browser.click("details button").await;
    browser.read_until(".done", |text| text == "Deleted.").await;
    reader.get(&page).await.expect(404);
    reader.post(&format!("{page}/delete"), &[]).await.expect(303);
    browser.client.clone().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_is_tried_on_the_past_before_it_is_created() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, _) = reader.upload(&junit("", "")).await;
    for message in ["", "no bank", "", "no bank", "", "no bank"] {
        reader.upload(&junit(message, "")).await;
    }
    let project = execution["ProjectId"].as_str().unwrap();
    let monitors = format!("/projects/{project}/monitors");
    let tried = |runs: &str| {
        format!(
            "{monitors}?name=&measure=Recoveries&threshold=2&runs={runs}&branch=&action=Mute\
             &recoverAfter=10&dryRun=true&replay=true"
        )
    };
    // Executions are judged soon after their ends.
    let answer = eventually("what it would have muted", || async {
        let text = reader.text(&tried("20")).await;
        let said = ["7 executions of its branch", "Would have muted"];
        said.iter().all(|said| text.contains(said)).then_some(text)
    })
    .await;
    let row = answer.split("<li").find(|row| row.contains("Would have muted")).unwrap();
    for part in ["pays by card", "recovered 2 times", "href=\"/cases/", "href=\"/executions/"] {
        assert!(row.contains(part), "{part}: {row}");
    }

    // The form keeps what was typed. A monitor that is tried is not created.
    let browser = Browser::open_without_scripts().await;
    reader.open(&browser, &monitors).await;
    browser.type_into("[name=name]", "Flaky tests").await;
    browser.find("[name=threshold]").await.clear().await.unwrap();
    browser.type_into("[name=threshold]", "2").await;
    browser.click("button[name=replay]").await;
    browser
        .read_until("section[aria-labelledby=replayed] .rows", |text| {
            text.contains("pays by card") && text.contains("Would have muted")
        })
        .await;
    let at = browser.client.current_url().await.unwrap();
    assert_eq!(at.fragment(), Some("replayed"));
    let name = browser.find("[name=name]").await.prop("value").await.unwrap();
    assert_eq!(name.as_deref(), Some("Flaky tests"));
    let list = format!("/api{monitors}");
    assert_eq!(reader.api().get(&list).await.ok(), json!([]));
    browser.click(".filters button").await;
    browser.read_until(".done", |text| text == "Saved.").await;

    // A change is tried with the version that the user has seen.
    browser.find("[name=threshold]").await.clear().await.unwrap();
    browser.type_into("[name=threshold]", "50").await;
    browser.click("button[name=replay]").await;
    browser
        .read_until("section[aria-labelledby=replayed] .facts", |text| {
            text.contains("0 times a test would have reached the threshold")
        })
        .await;
    browser.click(".filters button").await;
    browser.read_until(".done", |text| text == "Saved.").await;
    assert_eq!(reader.api().get(&list).await.ok()[0]["Threshold"], json!(50.0));
    browser.client.clone().close().await.unwrap();

    let refused = reader.get(&tried("3")).await;
    let refused = String::from_utf8_lossy(&refused.expect(422).body).into_owned();
    assert!(refused.contains("Runs") && refused.contains("value=\"3\""), "{refused}");
    let viewer = Reader::with(&customer, "vera", "Login, Read").await;
    assert!(!viewer.text(&tried("20")).await.contains("replayed"));
}
