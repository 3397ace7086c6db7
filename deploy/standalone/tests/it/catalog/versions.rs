//! Concurrent changes of a record.

use assay_testkit::Answer;
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

use super::records::records;
use crate::customer::Customer;

#[tokio::test(flavor = "multi_thread")]
async fn one_of_fifty_concurrent_updates_of_a_version_succeeds() {
    let api = &Customer::new().await.api;
    for record in records(api).await {
        let version = api.get(&record.path).await.ok()["DataVersion"].clone();
        let updates = (0..50).map(|number| {
            let body = json!({"DataVersion": version, record.text: format!("text {number}")});
            api.put(&record.path, body)
        });
        let answers = join_all(updates).await;
        let made: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(made.len(), 1, "{}", record.noun);
        for refused in answers.iter().filter(|answer| answer.status != 200) {
            refused.is_problem(409, "stale_data_version");
        }
        let now = api.get(&record.path).await.ok();
        assert_eq!(now[record.text], made[0].json()[record.text], "{}", record.noun);
        assert_ne!(now["DataVersion"], version, "{}", record.noun);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_in_a_tag_is_a_condition_of_requests() {
    let api = &Customer::new().await.api;
    for record in records(api).await {
        let read = api.get(&record.path).await;
        let version = read.ok()["DataVersion"].as_str().unwrap().to_owned();
        let tag = read.headers["etag"].to_str().unwrap().to_owned();
        assert!(tag.starts_with(&format!("\"{version}.")), "{}: {tag}", record.noun);

        let known = api.request(Method::GET, &record.path).header("If-None-Match", &tag);
        let unchanged = Answer::of(known).await;
        assert_eq!(unchanged.expect(304).body, b"", "{}", record.noun);
        assert_eq!(unchanged.headers["etag"], tag);
        let put = |tag: &str, text: &str| {
            let request = api.request(Method::PUT, &record.path).header("If-Match", tag);
            Answer::of(request.json(&json!({record.text: text})))
        };
        let changed = put(&tag, "changed").await;
        assert_eq!(changed.ok()[record.text], "changed", "{}", record.noun);
        let next = changed.headers["etag"].to_str().unwrap();
        assert_eq!(put(next, "changed again").await.ok()[record.text], "changed again");
        put(&tag, "too late").await.is_problem(412, "stale_data_version");
        put("*", "any version").await.ok();
        // Without a version, the last writer wins.
        api.put(&record.path, json!({record.text: "last"})).await.ok();
        let known = api.request(Method::GET, &record.path).header("If-None-Match", &tag);
        assert_eq!(Answer::of(known).await.ok()[record.text], "last", "{}", record.noun);
    }
}
