//! Long lists, complete and in pages.

use serde_json::{Value, json};

use crate::{
    junit::{report, upload},
    world::{World, create_project, id},
};

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_test_cases_are_listed_completely_and_in_pages() {
    let world = World::start().await;
    let project = create_project(&world.api).await;
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
    // Results are still being projected into the cases, so only the ids are compared.
    let ids = |cases: &[Value]| cases.iter().map(|case| id(case).to_owned()).collect::<Vec<_>>();
    assert!(ids(&paged) == ids(whole), "the pages differ from the complete list");
    world.stop().await;
}
