//! Archives and deletions over HTTP.

use assay_testkit::Api;
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    world::{create_project, id},
};

/// Creates a record; returns its path and its id.
async fn create(api: &Api, list: &str, body: Value) -> (String, String) {
    let id = id(&api.post(list, body).await.created()).to_owned();
    (format!("{list}/{id}"), id)
}

/// The ids of the records in a list.
async fn ids(api: &Api, list: &str) -> Vec<String> {
    let list = api.get(list).await.ok();
    list.as_array().unwrap().iter().map(|record| id(record).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_archived_and_deleted() {
    let api = &Customer::new().await.api;
    let project = create_project(api).await;
    let page = json!({
        "Identifier": "1.0", "Name": "Shop", "SubjectType": "Webpage", "Uri": "https://shop.test"
    });
    let lab = json!({"Name": "Lab"});
    let (subject, subject_id) = create(api, &format!("{project}/subjects"), page).await;
    let (environment, lab_id) = create(api, &format!("{project}/environments"), lab).await;
    let (case, case_id) =
        create(api, &format!("{project}/testcases"), json!({"Name": "Log in"})).await;
    let nightly = json!({
        "Name": "Nightly", "TestCases": [{"Id": case_id}],
        "SelectedSubjectId": subject_id, "SelectedEnvironmentId": lab_id
    });
    let (set, set_id) = create(api, &format!("{project}/testsets"), nightly).await;
    assert_eq!(ids(api, &format!("{case}/testsets")).await, [set_id.as_str()]);

    for (path, list) in [
        (&case, format!("{project}/testcases")),
        (&subject, format!("{project}/subjects")),
        (&environment, format!("{project}/environments")),
        (&set, format!("{project}/testsets")),
        (&project, "/api/projects".to_owned()),
    ] {
        let (_, record) = path.rsplit_once('/').unwrap();
        let archive = format!("{list}/archive");
        assert!(ids(api, &archive).await.is_empty(), "{archive}");
        api.put(path, json!({"Archived": true})).await.ok();
        assert_eq!(ids(api, &archive).await, [record]);
        assert!(!ids(api, &list).await.iter().any(|id| id == record), "{list}");
        if path == &case {
            let sets = format!("{case}/testsets/archive");
            assert_eq!(ids(api, &sets).await, [set_id.as_str()]);
        }
        if path == &set {
            let set = api.get(path).await.ok();
            assert_eq!(set["SelectedSubjectId"], Value::Null);
            assert_eq!(set["SelectedEnvironmentId"], Value::Null);
        }
        assert_eq!(api.delete(path).await.expect(204).body, b"");
        if path != &project {
            assert!(ids(api, &archive).await.is_empty(), "{archive}");
        }
        api.get(path).await.is_problem(404, "not_found");
        api.delete(path).await.is_problem(404, "not_found");
    }
    api.get(&format!("{project}/testcases/archive")).await.is_problem(404, "not_found");
    assert!(ids(api, "/api/projects/archive").await.is_empty());
}
