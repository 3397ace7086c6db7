//! Long lists, complete and in pages.

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::world::{World, create_project, id};

/// Adds this number of copies of the only test case to the only test set.
async fn add_copies(world: &World, count: i32) {
    let [catalog, _] = world.catalog_and_execution();
    let mut catalog = PgConnection::connect(catalog.expose_secret()).await.unwrap();
    sqlx::query(
        "with copy as (
             insert into test_case (customer_id, id, project_id, identifier, name, description)
             select customer_id, gen_random_uuid(), project_id, 'copy-' || number, name, description
             from test_case, generate_series(1, $1) as number
             returning customer_id, id
         )
         insert into test_set_case
         select copy.customer_id, test_set.id, copy.id, row_number() over () from copy, test_set",
    )
    .bind(count)
    .execute(&mut catalog)
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_test_cases_are_listed_completely_and_in_pages() {
    let world = World::start().await;
    let project = create_project(&world.api).await;
    let case = json!({"Name": "Copied"});
    world.api.post(&format!("{project}/testcases"), case).await.created();
    let set = json!({"Name": "Everything"});
    let set = world.api.post(&format!("{project}/testsets"), set).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    add_copies(&world, 19_999).await;

    let whole = world.api.get(&format!("{project}/testcases")).await.ok();
    let whole = whole.as_array().unwrap();
    assert_eq!(whole.len(), 20_000);
    let details = world.api.get(&set).await.ok();
    assert_eq!(details["TestCases"].as_array().unwrap().len(), 19_999);

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
    assert!(paged == *whole, "the pages differ from the complete list");
    world.stop().await;
}
