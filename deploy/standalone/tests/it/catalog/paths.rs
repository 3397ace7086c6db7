//! Paths of records: a record is found only under its parents and by its customer.

use assay_testkit::Api;
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::records::{Record, of, records};
use crate::{
    customer::Customer,
    world::{create_project, id},
};

const UNKNOWN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// All requests for these records, as method, path and body.
fn requests(records: &[Record]) -> Vec<(Method, String, Option<Value>)> {
    let mut all = Vec::new();
    for record in records {
        all.push((Method::GET, record.path.clone(), None));
        all.push((Method::PUT, record.path.clone(), Some(json!({record.text: "new"}))));
        if record.noun != "test plan" {
            all.push((Method::DELETE, record.path.clone(), None));
        }
        if record.noun != "project" {
            all.push((Method::POST, record.list.clone(), Some(record.body.clone())));
        }
        if !matches!(record.noun, "project" | "test plan") {
            all.push((Method::GET, record.list.clone(), None));
            all.push((Method::GET, format!("{}/archive", record.list), None));
        }
        if matches!(record.noun, "test case" | "test set") {
            all.push((Method::GET, format!("{}/recent", record.list), None));
            all.push((Method::GET, format!("{}/favorites", record.list), None));
        }
    }
    let [case, set, plan] = ["test case", "test set", "test plan"].map(|noun| of(records, noun));
    let members = format!("{}/testcases", set.path);
    let reference = json!([{"Id": case.id()}]);
    all.extend([
        (Method::GET, members.clone(), None),
        (Method::POST, members.clone(), Some(reference.clone())),
        (Method::PUT, members.clone(), Some(reference.clone())),
        (Method::DELETE, members, Some(reference)),
        (Method::GET, set.path.clone(), Some(json!({"Name": "new"}))),
        (Method::GET, format!("{}/testsets", case.path), None),
        (Method::GET, format!("{}/testsets/archive", case.path), None),
        (Method::GET, format!("{}/automationSteps", plan.path), None),
        (Method::PUT, format!("{}/automationSteps", plan.path), Some(json!([]))),
        (Method::POST, format!("{}/transfer/Default", plan.path), None),
        (Method::POST, format!("{}/import", case.list), Some(json!([]))),
        (Method::GET, format!("{}/export", case.list), None),
    ]);
    all
}

async fn send(
    api: &Api,
    (method, path, body): (Method, String, Option<Value>),
) -> assay_testkit::Answer {
    let request = api.request(method, &path);
    assay_testkit::Answer::of(match body {
        Some(body) => request.json(&body),
        None => request,
    })
    .await
}

/// The content of all records, to compare.
async fn state(api: &Api, records: &[Record]) -> Vec<Value> {
    let mut state = Vec::new();
    for record in records {
        state.push(api.get(&record.path).await.ok());
    }
    state
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_unknown_and_malformed_ids_get_the_same_answer() {
    let api = &Customer::new().await.api;
    let mine = records(api).await;
    let before = state(api, &mine).await;
    let stranger = Customer::new().await.api;
    let mut bodies = std::collections::BTreeSet::new();
    let strip = |answer: &assay_testkit::Answer| {
        let mut problem = answer.is_problem(404, "not_found");
        for unique in ["instance", "traceId"] {
            problem.as_object_mut().expect("an object").remove(unique);
        }
        problem.to_string()
    };
    for (method, path, body) in requests(&mine) {
        let answer = send(&stranger, (method.clone(), path.clone(), body.clone())).await;
        bodies.insert(strip(&answer));
        // Replaces each id in the path: by an unknown id, a malformed one, and 0.
        let parts: Vec<&str> = path.split('/').collect();
        for index in (0..parts.len()).filter(|index| parts[*index].len() == UNKNOWN.len()) {
            for other in [UNKNOWN, "nonsense", "0"] {
                let mut parts = parts.clone();
                parts[index] = other;
                let path = parts.join("/");
                if is_permanent(&path) {
                    continue;
                }
                let answer = send(api, (method.clone(), path, body.clone())).await;
                bodies.insert(strip(&answer));
            }
        }
    }
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    for kind in ["project", "testcase", "testset"] {
        for id in [mine[0].id(), UNKNOWN, "nonsense"] {
            let body = json!({"ForeignId": id});
            let answer = stranger.post(&format!("/api/favorites/{kind}"), body).await;
            answer.is_problem(404, "not_found");
            let answer = stranger.delete(&format!("/api/favorites/{kind}/{id}")).await;
            answer.is_problem(404, "not_found");
        }
    }
    assert_eq!(state(api, &mine).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_reads_are_answered_for_their_own_caller() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let mut paths = Vec::new();
    for number in 0..20 {
        let case = json!({"Name": format!("Case {number}")});
        let case = api.post(&format!("{project}/testcases"), case).await.created();
        paths.push((case["Name"].clone(), format!("{project}/testcases/{}", id(&case))));
    }
    let writer = customer.create_member("writer", "Login, Write").await.api;
    let (stranger, visitor) = (Customer::new().await.api, customer.anonymous());
    let missing = format!("{project}/testcases/{UNKNOWN}");

    let reads = paths.iter().map(|(name, path)| {
        let missing = &missing;
        let (writer, stranger, visitor) = (&writer, &stranger, &visitor);
        async move {
            let (found, not_found, forbidden, foreign, anonymous) = tokio::join!(
                api.get(path),
                api.get(missing),
                writer.get(path),
                stranger.get(path),
                visitor.get(path)
            );
            assert_eq!(found.ok()["Name"], *name);
            not_found.is_problem(404, "not_found");
            forbidden.is_problem(403, "forbidden");
            foreign.is_problem(404, "not_found");
            anonymous.is_problem(401, "unauthenticated");
        }
    });
    join_all(reads).await;
}

/// Whether a path is a permanent URL, which has a 0 instead of the project.
fn is_permanent(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(2).collect();
    matches!(parts[..], ["projects", "0", "testcases" | "testsets", _])
}

#[tokio::test(flavor = "multi_thread")]
async fn references_to_records_outside_the_project_are_rejected() {
    let api = &Customer::new().await.api;
    let mine = records(api).await;
    let elsewhere = records(api).await;
    let stranger = Customer::new().await.api;
    let theirs = records(&stranger).await;
    let before = state(api, &mine).await;
    for (noun, field, target) in [
        ("subject", "BaseSubjectId", "subject"),
        ("environment", "ContainedSubject", "subject"),
        ("test set", "SelectedSubjectId", "subject"),
        ("test set", "SelectedEnvironmentId", "environment"),
        ("test set", "TestCases", "test case"),
    ] {
        let mut problems = std::collections::BTreeSet::new();
        let foreign = [of(&elsewhere, target).id(), of(&theirs, target).id(), UNKNOWN, "0"];
        for id in foreign {
            let value = if field == "TestCases" { json!([{"Id": id}]) } else { json!(id) };
            let record = of(&mine, noun);
            let mut body = record.body.clone();
            body[field] = value.clone();
            for answer in [
                api.put(&record.path, json!({field: value})).await,
                api.post(&record.list, body).await,
            ] {
                problems.insert(answer.is_problem(422, "invalid")["errors"].to_string());
            }
        }
        assert!(problems.len() <= 2, "{problems:#?}");
    }
    let members = format!("{}/testcases", of(&mine, "test set").path);
    let own = json!({"Id": of(&mine, "test case").id()});
    for other in [of(&elsewhere, "test case").id(), of(&theirs, "test case").id(), UNKNOWN] {
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            let request = (method, members.clone(), Some(json!([own, {"Id": other}])));
            let problem = send(api, request).await.is_problem(422, "invalid");
            assert_eq!(problem["errors"][0]["pointer"], "/1/Id");
        }
    }
    assert_eq!(state(api, &mine).await, before);
    assert!(api.get(&members).await.ok().as_array().is_some_and(Vec::is_empty));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_found_only_under_its_parents() {
    let api = &Customer::new().await.api;
    let [mine, other] = [records(api).await, records(api).await];
    for record in mine.iter().filter(|record| !matches!(record.noun, "project" | "test plan")) {
        let wrong_path = format!("{}/{}", of(&other, record.noun).list, record.id());
        api.get(&wrong_path).await.is_problem(404, "not_found");
        api.put(&wrong_path, json!({"Name": "new"})).await.is_problem(404, "not_found");
        api.delete(&wrong_path).await.is_problem(404, "not_found");
    }
    let plan = of(&mine, "test plan");
    let wrong_path = format!("{}/{}", of(&other, "test plan").list, plan.id());
    api.get(&wrong_path).await.is_problem(404, "not_found");
    api.get(&plan.path).await.ok();
    let second = api.post(&of(&mine, "test case").list, json!({"Name": "b"})).await.created();
    let wrong_path =
        format!("{}/{}/testplans/{}", of(&mine, "test case").list, id(&second), plan.id());
    api.get(&wrong_path).await.is_problem(404, "not_found");
}
