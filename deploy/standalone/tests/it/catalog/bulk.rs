//! Imports and exports of test cases.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{customer::Customer, world::create_project};

async fn import(api: &Api, project: &str, media_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    let request = api.request(Method::POST, &format!("{project}/testcases/import"));
    Answer::of(request.header("Content-Type", media_type).body(body.into())).await
}

/// Identifier, name and description of the test cases of a project, sorted.
async fn cases(api: &Api, project: &str) -> Vec<(String, String, String)> {
    let cases = api.get(&format!("{project}/testcases")).await.ok();
    let text = |case: &Value, field: &str| case[field].as_str().unwrap().to_owned();
    let cases = cases.as_array().unwrap().iter();
    let mut cases: Vec<_> = cases
        .map(|case| (text(case, "Identifier"), text(case, "Name"), text(case, "Description")))
        .collect();
    cases.sort();
    cases
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_can_be_imported_in_every_format() {
    let api = &Customer::new().await.api;
    let origin = create_project(api).await;
    let rows = json!([
        {"Identifier": "a", "Name": "Log in, \"quickly\"", "Description": "one\ntwo\r\nthree"},
        {"Identifier": "b;c", "Name": "Prüfung ☃", "Description": "=1+1"},
        {"Name": " spaces "},
    ]);
    let rows = import(api, &origin, "application/json", rows.to_string()).await.ok();
    let actions: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["Action"]).collect();
    assert_eq!(actions, ["Created", "Created", "Created"]);
    assert_eq!((&rows[2]["Row"], &rows[2]["Identifier"]), (&json!(3), &json!("TC-1")));
    let path = format!("{origin}/testcases/{}", rows[0]["Id"].as_str().unwrap());
    assert_eq!(api.get(&path).await.ok()["Identifier"], "a");

    for (format, media_type) in
        [("json", "application/json"), ("ndjson", "application/x-ndjson"), ("csv", "text/csv")]
    {
        let export = format!("{origin}/testcases/export");
        let exported = api.get(&format!("{export}?format={format}")).await;
        exported.expect(200);
        assert_eq!(exported.headers["content-type"], media_type);
        let name = format!("attachment; filename=\"testcases.{format}\"");
        assert_eq!(exported.headers["content-disposition"], name);
        let accepted = api.request(Method::GET, &export).header("Accept", media_type);
        assert_eq!(Answer::of(accepted).await.expect(200).body, exported.body);

        let copy = create_project(api).await;
        let rows = import(api, &copy, media_type, exported.body.clone()).await.ok();
        assert_eq!(rows.as_array().unwrap().len(), 3, "{format}");
        assert_eq!(cases(api, &copy).await, cases(api, &origin).await, "{format}");
        let again = import(api, &origin, media_type, exported.body).await.ok();
        assert!(again.as_array().unwrap().iter().all(|row| row["Action"] == "Unchanged"));
    }
    for (query, description) in [("", ",'=1+1,"), ("&exact=true", ",=1+1,")] {
        let exported = api.get(&format!("{origin}/testcases/export?format=csv{query}")).await;
        let exported = String::from_utf8(exported.expect(200).body.clone()).unwrap();
        assert!(exported.contains(description), "{exported}");
    }
    let filtered = api.get(&format!("{origin}/testcases/export?q=quick")).await.ok();
    assert_eq!(filtered.as_array().unwrap().len(), 1);
    let wrong = api.get(&format!("{origin}/testcases/export?format=xlsx")).await;
    assert_eq!(wrong.is_problem(422, "invalid")["errors"][0]["pointer"], "/format");
    let request = api.request(Method::GET, &format!("{origin}/testcases/export"));
    Answer::of(request.header("Accept", "image/png")).await.is_problem(406, "not_acceptable");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_atomic() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    import(api, &project, "text/csv", "Identifier,Name\na,A\n").await.ok();
    let before = cases(api, &project).await;

    let wrong = "Identifier,Name\na,changed\nb,\n,c\nb,twice\n";
    let problem = import(api, &project, "text/csv", wrong).await.is_problem(422, "invalid");
    let pointers: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/1/Name", "/3/Identifier"]);
    for (media_type, body, status) in [
        ("application/json", "[{\"Name\": \"a\"}", 400),
        ("application/json", "{}", 422),
        ("application/x-ndjson", "{\"Name\": \"a\"}\n{", 400),
        ("text/csv", "", 400),
        ("text/csv", "a,b\n1,2\n", 400),
        ("application/xml", "<a/>", 415),
    ] {
        import(api, &project, media_type, body).await.expect(status);
    }
    assert_eq!(cases(api, &project).await, before);

    let reader = customer.create_member("bob", "Login, Read").await.api;
    import(&reader, &project, "text/csv", "Name\nA\n").await.is_problem(403, "forbidden");
}
