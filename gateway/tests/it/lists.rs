//! Lists over HTTP.

use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::api::{Api, ID};

#[tokio::test]
async fn a_list_of_several_batches_is_one_array() {
    let api = Api::start().await;
    let list = api.get("/api/projects").await;
    let names: Vec<_> = list.ok().as_array().unwrap().iter().map(|p| p["Name"].clone()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(list.header("content-type"), "application/json");
    assert_eq!(list.header("link"), "");
    assert_eq!(api.get("/api/projects?q=nothing").await.ok(), json!([]));
}

#[tokio::test]
async fn a_page_links_to_the_next_one() {
    let api = Api::start().await;
    let page = api.get("/api/projects?cursor=old&limit=2&q=x%20y").await;
    assert_eq!(page.ok().as_array().unwrap().len(), 2);
    let next = r#"</api/projects?limit=2&q=x%20y&cursor=b%2F2>; rel="next""#;
    assert_eq!(page.header("link"), next);
    let page = api.get("/api/projects?%63ursor=old&limit=2&q=x%20y").await;
    assert_eq!(page.header("link"), next);
}

#[tokio::test]
async fn a_limit_is_between_1_and_1000() {
    let api = Api::start().await;
    for limit in ["1", "1000"] {
        api.get(&format!("/api/projects?limit={limit}")).await.ok();
    }
    // An empty parameter counts as absent.
    api.get("/api/projects?limit=&q=&cursor=").await.ok();
    for limit in ["0", "1001", "-1", "x"] {
        let answer = api.get(&format!("/api/projects?limit={limit}")).await;
        assert_eq!(answer.invalid_fields(), ["/limit"]);
    }
}

#[tokio::test]
async fn parameters_beside_an_empty_one_count_however_long_they_are() {
    let api = Api::start().await;
    let long = "(".repeat(30_000);
    let answer = api.get(&format!("/api/projects?cursor=&q={long}&limit=0")).await;
    assert_eq!(answer.invalid_fields(), ["/limit"]);
}

#[tokio::test]
async fn a_misspelt_parameter_is_refused_by_every_operation_and_others_are_ignored() {
    let api = Api::start().await;
    let document = serde_json::to_value(assay_gateway::openapi()).unwrap();
    let mut refused = 0;
    for (path, method, operation) in operations(&document) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            let misspelt = name.to_uppercase();
            let request = api.request(&method, &format!("{path}?{misspelt}=x"));
            let answer = api.send(request, Body::empty()).await;
            if answer.status == StatusCode::FORBIDDEN {
                continue;
            }
            assert_eq!(answer.invalid_fields(), [format!("/{misspelt}")], "{method} {path}");
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused}");

    let answer = api.get("/api/projects?limti=1").await;
    let detail = &answer.problem(422, "invalid")["errors"][0]["detail"];
    assert_eq!(detail, "no such parameter; did you mean `limit`?");
    for query in ["_=1732950000", "utm_source=mail", &"x=1&".repeat(5_000)] {
        api.get(&format!("/api/projects?{query}")).await.ok();
    }
}

/// Returns the paths, methods and descriptions of the operations.
fn operations(document: &Value) -> impl Iterator<Item = (String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        let path = path.split('/').map(|part| if part.starts_with('{') { ID } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        let operations = item.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (path.clone(), method.to_uppercase(), operation))
    })
}

#[tokio::test]
async fn control_characters_in_parameters_are_rejected_by_every_list() {
    let api = Api::start().await;
    for (path, field) in [
        ("/api/projects?q=a%00b", "/q"),
        ("/api/projects?limit=1&cursor=%0A", "/cursor"),
        ("/api/notifications?source=%00", "/source"),
        ("/api/notifications?action=%C2%85", "/action"),
        ("/api/notifications/stream?source=%00", "/source"),
        ("/api/management/audit?action=%00", "/action"),
        ("/api/management/audit?userId=%00", "/userId"),
        ("/api/webhooks/w/deliveries?status=%00", "/status"),
        ("/api/projects/p/testsets/s/stats?tag=%00", "/tag"),
        ("/api/projects/p/testsets/s/stats?fromDate=%00", "/fromDate"),
    ] {
        assert_eq!(api.get(path).await.invalid_fields(), [field], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_do_not_block_others() {
    let api = Api::start().await;
    let mut unread = Vec::new();
    for _ in 0..50 {
        let list = api.request("GET", "/api/projects?q=endless");
        unread.push(api.open(list).await);
        let other = timeout(Duration::from_secs(5), api.get("/api/projects/p"));
        other.await.unwrap_or_else(|_| panic!("{} unread answers block others", unread.len())).ok();
    }
}

#[tokio::test]
async fn a_failure_before_the_first_record_is_a_problem() {
    let answer = Api::start().await.get("/api/projects?q=fails").await;
    assert_eq!(answer.invalid_fields(), ["/cursor"]);
}

#[tokio::test]
async fn a_failure_after_the_first_record_aborts_the_answer() {
    let answer = Api::start().await.get("/api/projects?q=breaks%20off").await;
    assert!(!answer.is_complete);
}
