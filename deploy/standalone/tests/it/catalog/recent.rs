//! Favorites and recently opened records.

use assay_testkit::{Api, eventually};
use serde_json::json;

use super::records::{of, records};
use crate::customer::Customer;

async fn ids(api: &Api, list: &str) -> Vec<String> {
    let list = api.get(list).await.ok();
    let records = list.as_array().unwrap().iter();
    records.map(|record| record["Id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_user_has_separate_favorites_and_openings_without_archived_records() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let colleague = customer.create_member("bob", "Login, Read").await.api;
    let records = records(api).await;
    for (noun, kind) in [("test case", "testcase"), ("test set", "testset"), ("project", "project")]
    {
        let record = of(&records, noun);
        let favorites = format!("{}/favorites", record.list);
        let recent = format!("{}/recent", record.list);
        for _ in 0..2 {
            let body = json!({"ForeignId": record.id()});
            let added = api.post(&format!("/api/favorites/{kind}"), body).await;
            assert_eq!(added.expect(204).body, b"");
        }
        api.get(&record.path).await.ok();
        assert_eq!(ids(api, &favorites).await, [record.id()]);
        eventually("the opening to be stored", || async {
            (ids(api, &recent).await == [record.id()]).then_some(())
        })
        .await;
        assert!(ids(&colleague, &favorites).await.is_empty());
        assert!(ids(&colleague, &recent).await.is_empty());

        api.put(&record.path, json!({"Archived": true})).await.ok();
        assert!(ids(api, &favorites).await.is_empty());
        assert!(ids(api, &recent).await.is_empty());
        api.put(&record.path, json!({"Archived": false})).await.ok();
        assert_eq!(ids(api, &favorites).await, [record.id()]);
        assert_eq!(ids(api, &recent).await, [record.id()]);

        let favorite = format!("/api/favorites/{kind}/{}", record.id());
        for _ in 0..2 {
            assert_eq!(api.delete(&favorite).await.expect(204).body, b"");
        }
        assert!(ids(api, &favorites).await.is_empty());
        api.delete(&record.path).await.expect(204);
        if noun != "project" {
            assert!(ids(api, &recent).await.is_empty());
        }
        api.delete(&favorite).await.is_problem(404, "not_found");
    }
}
