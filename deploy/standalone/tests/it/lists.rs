//! Lists of any length.

use serde_json::{Value, json};

use crate::{
    junit::{report, upload},
    world::{World, id, project},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_project_with_20000_test_cases_lists_whole_and_in_pages() {
    let world = World::start().await;
    let project = project(&world.api).await;
    let set = json!({"Name": "Everything"});
    let set = world.api.post(&format!("{project}/testsets"), set).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    upload(&world.api, &set, report(20_000)).await.expect(201);

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
