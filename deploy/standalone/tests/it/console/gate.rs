//! The page of a gate: other rules are tried, and saved.

use assay_testkit::Answer;
use reqwest::Method;

use super::{Reader, filled, junit};
use crate::{customer::Customer, world::id};

#[tokio::test]
async fn rules_are_tried_over_the_last_days_and_saved() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    reader.upload(&junit("", "")).await;
    let (red, _) = reader.upload(&junit("no bank", "")).await;
    let (project, set) = (&red["ProjectId"], &red["TestSetId"]);
    let set = format!("/projects/{}/sets/{}", project.as_str().unwrap(), set.as_str().unwrap());
    let gate = format!("{set}/gate");
    let text = async |reader: &Reader, path: &str| {
        let page = reader.get(path).await;
        String::from_utf8_lossy(&page.expect(200).body).into_owned()
    };
    assert!(text(&reader, &set).await.contains(&format!("href=\"{gate}\"")));
    let present = text(&reader, &gate).await;
    assert!(present.contains("Try it on the past") && !present.contains("Let through"));

    let tried = format!("{gate}?maxNewFailures=1&allowKnownFailures=true&minPassRate=&replay=true");
    let tried = text(&reader, &tried).await;
    assert!(tried.contains("<b>2</b> of 2 executions pass"), "{tried}");
    let row = tried.split("<li").find(|row| row.contains("Let through")).unwrap();
    assert!(row.contains(&format!("/executions/{}", id(&red))), "{row}");
    assert!(row.contains("1 new failure, at most 0 allowed"), "{row}");

    let viewer = Reader::with(&customer, "vera", "Login, Read").await;
    let read_only = text(&viewer, &gate).await;
    assert!(!read_only.contains("Save") && read_only.contains("value=\"0\""), "{read_only}");
    let save = reader.request(Method::POST, &gate).header("origin", &reader.url);
    let rules = [("maxNewFailures", "1"), ("minPassRate", "97.5"), ("replay", "")];
    Answer::of(filled(save, &rules)).await.expect(303);
    let path = format!("/api{}", set.replace("/sets/", "/testsets/"));
    let saved = reader.api().get(&path).await.ok()["Gate"].clone();
    assert_eq!((&saved["MaxNewFailures"], &saved["MinPassRate"]), (&1.into(), &97.5.into()));
    assert_eq!(saved["AllowKnownFailures"], false);

    let wrong = [("maxNewFailures", "7"), ("flakyWithinRuns", "4")];
    let save = reader.request(Method::POST, &gate).header("origin", &reader.url);
    let refused = Answer::of(filled(save, &wrong)).await;
    let refused = String::from_utf8_lossy(&refused.expect(422).body).into_owned();
    assert!(refused.contains("FlakyWithinRuns") && refused.contains("value=\"7\""), "{refused}");
}
