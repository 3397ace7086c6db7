//! Complete and paged lists.

use assay_testkit::Api;
use serde_json::{Value, json};

use super::records::{Record, of, records};
use crate::{customer::Customer, world::id};

/// The names of the records in a list, read page by page.
async fn in_pages(api: &Api, list: &str, limit: usize) -> Vec<Value> {
    let mut names = Vec::new();
    let mut next = Some(format!("{list}?limit={limit}"));
    while let Some(path) = next {
        let page = api.get(&path).await;
        let records = page.ok();
        let records = records.as_array().unwrap();
        assert!(records.len() <= limit, "{path}");
        names.extend(records.iter().map(|record| record["Name"].clone()));
        next = page.headers.get("link").map(|link| {
            let (target, relation) = link.to_str().unwrap().split_once(';').unwrap();
            assert_eq!(relation.trim(), "rel=\"next\"");
            target.trim_start_matches('<').trim_end_matches('>').to_owned()
        });
    }
    names
}

async fn complete(api: &Api, list: &str) -> Vec<Value> {
    let answer = api.get(list).await;
    assert!(!answer.headers.contains_key("link"), "a complete list has no next page");
    answer.ok().as_array().unwrap().iter().map(|record| record["Name"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_can_be_read_completely_in_pages_and_filtered() {
    let api = &Customer::new().await.api;
    let records = records(api).await;
    let [case, set] = ["test case", "test set"].map(|noun| of(&records, noun));
    let mut lists = Vec::new();
    // Test plans have no list to filter, there is one known failure of a cause, and monitors and pools have no
    // archive.
    let others = ["test plan", "known failure", "monitor", "pool"];
    let listed = |record: &&Record| !others.contains(&record.noun);
    for record in records.iter().filter(listed) {
        let noun = record.noun;
        let favorite = match noun {
            "project" => "project",
            "test case" => "testcase",
            "test set" => "testset",
            _ => "",
        };
        for number in 0..6 {
            let mut body = record.body.clone();
            body["Name"] = json!(format!("{noun} {number}"));
            if noun == "test case" {
                body["Identifier"] = json!(format!("case-{number}"));
            }
            let made = api.post(&record.list, body).await.created();
            let path = format!("{}/{}", record.list, id(&made));
            if number % 2 == 1 {
                api.put(&path, json!({"Archived": true})).await.ok();
                continue;
            }
            if !favorite.is_empty() {
                let body = json!({"ForeignId": id(&made)});
                api.post(&format!("/api/favorites/{favorite}"), body).await.expect(204);
            }
            let member = json!({"Id": id(&made)});
            if noun == "test case" {
                api.post(&format!("{}/testcases", set.path), member).await.ok();
            } else if noun == "test set" {
                let body = json!({"Id": case.id()});
                api.post(&format!("{path}/testcases"), body).await.ok();
            }
        }
        lists.extend([record.list.clone(), format!("{}/archive", record.list)]);
        if !favorite.is_empty() {
            lists.push(format!("{}/favorites", record.list));
        }
    }
    lists.extend([format!("{}/testcases", set.path), format!("{}/testsets", case.path)]);
    for list in lists {
        let all = complete(api, &list).await;
        assert!(all.len() >= 3, "{list}: {all:?}");
        for limit in [1, 2, 1000] {
            assert_eq!(in_pages(api, &list, limit).await, all, "{list} by {limit}");
        }
        // Each name ends with its number.
        let name = all[1].as_str().unwrap().to_uppercase();
        let filtered = complete(api, &format!("{list}?q={}", name.replace(' ', "%20"))).await;
        assert_eq!(filtered, [all[1].clone()], "{list} of {name}");
        for (query, pointer) in [
            ("limit=0", "/limit"),
            ("limit=x", "/limit"),
            ("limit=1001", "/limit"),
            ("limit=1&cursor=x", "/cursor"),
        ] {
            let problem = api.get(&format!("{list}?{query}")).await.is_problem(422, "invalid");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{list}?{query}");
        }
    }
}
