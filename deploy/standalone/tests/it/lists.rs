//! Lists of any length.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::{World, id, project};

#[tokio::test(flavor = "multi_thread")]
async fn a_project_with_20000_test_cases_lists_whole_and_in_pages() {
    let world = World::start().await;
    let project = project(&world.api).await;
    let set = json!({"Name": "Everything"});
    let set = world.api.post(&format!("{project}/testsets"), set).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    upload(&world.api, &format!("{set}/results"), 20_000).await;

    let whole = world.api.get(&format!("{project}/testcases")).await.ok();
    let whole = whole.as_array().unwrap();
    assert_eq!(whole.len(), 20_000);
    let details = world.api.get(&set).await.ok();
    assert_eq!(details["TestCases"].as_array().unwrap().len(), 20_000);

    let mut next = Some(format!("{project}/testcases?limit=1000"));
    let mut paged: Vec<Value> = Vec::new();
    while let Some(path) = next {
        let page = world.api.get(&path).await;
        paged.append(page.ok().as_array_mut().unwrap());
        next = page.headers.get("link").map(|link| {
            let link = link.to_str().unwrap();
            link.trim_start_matches('<').split('>').next().unwrap().to_owned()
        });
    }
    assert!(paged == *whole, "the pages together are not the whole list");
    world.stop().await;
}

/// Uploads a report with that many tests.
async fn upload(api: &Api, path: &str, count: usize) {
    let tests: String = (0..count)
        .map(|n| {
            format!(r#"<testcase classname="suite" name="test {n}" time="0.{:03}"/>"#, n % 999)
        })
        .collect();
    let report = format!(r#"<testsuite name="many">{tests}</testsuite>"#);
    let request = api.request(Method::POST, path);
    Answer::of(request.header("Content-Type", "application/xml").body(report)).await.expect(201);
}
