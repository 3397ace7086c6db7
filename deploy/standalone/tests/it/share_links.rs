//! Share links: readers without an account see one execution and nothing else.

use assay_testkit::{Answer, Api, eventually};
use chrono::{TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    world::{create_project, id},
};

/// Returns a body with an end this long after now.
#[expect(clippy::disallowed_methods, reason = "a client has the clock of its machine")]
fn ends_after(time: TimeDelta) -> Value {
    json!({"ExpiresAt": (Utc::now() + time).to_rfc3339()})
}

/// Texts of a customer that readers of a share link must not see.
const PRIVATE: [&str; 5] =
    ["ask-the-vendor", "SHOP-4711", "internal-tag", "https://ci.internal", "https://wiki.internal"];

/// An execution with a failure that has a file, a link elsewhere, a comment and a ticket.
async fn execution(api: &Api, project: &str) -> String {
    let open = json!({
        "Project": project.rsplit('/').next(), "TestSet": "Nightly", "Branch": "main",
        "Tags": "internal-tag", "CiUrl": "https://ci.internal/1",
    });
    let open = api.post("/api/executions", open).await.created();
    let at = format!("{project}/executions/{}", id(&open));
    let picture = format!("{at}/results/artifacts/shop.png");
    let picture = api.request(Method::PUT, &picture).header("Content-Type", "image/png");
    Answer::of(picture.body("a picture")).await.ok();
    let step = |text: &str| {
        json!([{
            "StepNr": 1, "Result": "Failed", "ActualResult": text,
            "Screenshots": ["shop.png", "https://wiki.internal/shop.png"],
        }])
    };
    let results = json!([
        {"Identifier": "pays", "Result": "Failed", "Steps": step("no answer"),
         "ReportUri": "https://wiki.internal/report"},
        {"Identifier": "logs-in", "Result": "Passed"},
    ]);
    api.post(&format!("{at}/results"), results).await.ok();
    api.post(&format!("{at}/complete"), json!({})).await.expect(200);
    let review = json!({
        "Result": "Failed", "Status": "Accepted", "Comment": "ask-the-vendor", "Ticket": "SHOP-4711",
    });
    api.put(&format!("{at}/reviews"), review).await.ok();
    at
}

/// Returns every answer that a reader of a share link can get.
async fn read(reader: &Api, token: &str) -> Vec<Value> {
    let of = format!("/api/shared/{token}");
    let mut answers = vec![
        reader.get(&of).await.ok(),
        reader.get(&format!("{of}/failures")).await.ok(),
        reader.get(&format!("{of}/reports")).await.ok(),
    ];
    for report in answers[2].clone().as_array().unwrap() {
        answers.push(reader.get(&format!("{of}/reports/{}", id(report))).await.ok());
    }
    answers
}

/// Waits until a shared execution is not found.
async fn ends(reader: &Api, path: &str) {
    let is_gone = || async { (reader.get(path).await.status == 404).then_some(()) };
    eventually("the end of a share link", is_gone).await;
}

#[tokio::test]
async fn readers_of_a_share_link_see_one_execution_and_nothing_else() {
    let customer = Customer::new().await;
    let (api, reader) = (&customer.api, customer.anonymous());
    let project = create_project(api).await;
    let earlier = execution(api, &project).await;
    let at = execution(api, &project).await;
    let share = api.post(&format!("{at}/shares"), json!({})).await.created();
    let token = share["Token"].as_str().unwrap();
    let url = share["Url"].as_str().unwrap();
    assert!(url.ends_with(&format!("/shared/{token}")), "{url}");

    let answers = read(&reader, token).await;
    assert_eq!(answers[0]["TestSetName"], "Nightly");
    assert_eq!(answers[0]["Statistic"]["TestCasesFailed"], 1);
    assert_eq!(answers[0]["Changes"]["Still"], 1);
    assert_eq!(answers[0]["Verdict"], "Passed");
    assert_eq!(answers[1][0]["Headline"], "no answer");
    assert_eq!(answers[1][0]["Reports"][0]["TestCaseIdentifier"], "pays");
    assert_eq!(answers[2].as_array().unwrap().len(), 2);
    let shown = answers[3]["Steps"][0]["Screenshots"].as_array().unwrap();
    assert_eq!(shown.len(), 1, "only the stored picture: {shown:?}");
    let picture = shown[0].as_str().unwrap();
    let picture = format!("/api/artifacts/{}", picture.split("/api/artifacts/").nth(1).unwrap());
    assert_eq!(reader.get(&picture).await.expect(200).body, b"a picture");
    let badge = reader.get(&format!("/api/shared/{token}/badge.svg")).await;
    let badge = String::from_utf8(badge.expect(200).body.clone()).unwrap();
    assert!(badge.contains("tests: passed"), "{badge}");

    let me = api.get("/api/users/current").await.ok();
    let names = [me["DisplayName"].as_str().unwrap(), earlier.rsplit('/').next().unwrap()];
    let whole = serde_json::to_string(&answers).unwrap();
    for private in PRIVATE.into_iter().chain(names) {
        assert!(!whole.contains(private), "{private} in {whole}");
    }
    let reports = api.get(&format!("{earlier}/reports")).await.ok();
    let other = format!("/api/shared/{token}/reports/{}", id(&reports[0]));
    reader.get(&other).await.expect(404);
}

#[tokio::test]
async fn a_share_link_ends_when_it_is_revoked_or_expires() {
    let customer = Customer::new().await;
    let (api, reader) = (&customer.api, customer.anonymous());
    let project = create_project(api).await;
    let at = execution(api, &project).await;
    let shares = format!("{at}/shares");
    let token = |share: &Value| share["Token"].as_str().unwrap().to_owned();

    let revoked = api.post(&shares, json!({})).await.created();
    let path = format!("/api/shared/{}", token(&revoked));
    reader.get(&path).await.ok();
    api.delete(&format!("{shares}/{}", id(&revoked))).await.expect(204);
    let refused = reader.get(&path).await.is_problem(404, "not_found");
    let unknown = reader.get("/api/shared/unknown").await.is_problem(404, "not_found");
    assert_eq!(refused["detail"], unknown["detail"]);

    let expiring = api.post(&shares, ends_after(TimeDelta::seconds(1))).await.created();
    let path = format!("/api/shared/{}", token(&expiring));
    ends(&reader, &path).await;
    assert_eq!(api.get(&shares).await.ok(), json!([]), "expired links are not listed");

    for days in [-1, 91] {
        api.post(&shares, ends_after(TimeDelta::days(days))).await.expect(422);
    }
    let last = api.post(&shares, json!({})).await.created();
    let listed = api.get(&shares).await.ok();
    assert_eq!(id(&listed[0]), id(&last));
    assert!(!listed.to_string().contains(&token(&last)), "{listed}");
    api.delete(&project).await.expect(204);
    let path = format!("/api/shared/{}", token(&last));
    ends(&reader, &path).await;
}

/// Returns the path of the picture in a shared execution.
async fn picture(reader: &Api, token: &str) -> String {
    let answers = read(reader, token).await;
    let link = answers[3]["Steps"][0]["Screenshots"][0].as_str().unwrap();
    format!("/api/artifacts/{}", link.split("/api/artifacts/").nth(1).unwrap())
}

#[tokio::test]
async fn files_are_shared_only_as_long_as_their_execution() {
    let customer = Customer::new().await;
    let (api, reader) = (&customer.api, customer.anonymous());
    let project = create_project(api).await;
    let shares = format!("{}/shares", execution(api, &project).await);
    let share = api.post(&shares, json!({})).await.created();
    let picture = picture(&reader, share["Token"].as_str().unwrap()).await;
    reader.get(&picture).await.expect(200);
    let (start, rest) = picture.split_once("share=").unwrap();
    let without = format!("{start}{}", rest.split_once('&').unwrap().1);
    reader.get(&without).await.is_problem(403, "forbidden");
    api.delete(&format!("{shares}/{}", id(&share))).await.expect(204);
    reader.get(&picture).await.is_problem(403, "forbidden");
}

#[tokio::test]
async fn share_links_of_an_archived_customer_grant_no_access() {
    let customer = Customer::new().await;
    let (api, reader) = (&customer.api, customer.anonymous());
    let project = create_project(api).await;
    let shares = format!("{}/shares", execution(api, &project).await);
    let share = api.post(&shares, json!({})).await.created();
    let token = share["Token"].as_str().unwrap();
    let (path, picture) = (format!("/api/shared/{token}"), picture(&reader, token).await);
    let current = api.get("/api/management/customers/current").await.ok();
    let record = format!("/api/management/customers/{}", id(&current));
    let archive = |archived: bool| customer.assay.api.put(&record, json!({"Archived": archived}));
    archive(true).await.ok();
    ends(&reader, &path).await;
    reader.get(&picture).await.is_problem(403, "forbidden");
    archive(false).await.ok();
    let is_back = || async { (reader.get(&path).await.status == 200).then_some(()) };
    eventually("the shared execution of a customer that is not archived any more", is_back).await;
}

#[tokio::test]
async fn sharing_is_for_those_who_may_execute_and_read_and_is_limited() {
    let customer = Customer::new().await;
    let project = create_project(&customer.api).await;
    let shares = format!("{}/shares", execution(&customer.api, &project).await);
    let viewer = customer.create_member("viewer", "Login, Read").await.api;
    viewer.post(&shares, json!({})).await.expect(403);
    let runner = customer.create_member("runner", "Login, Execute").await.api;
    runner.post(&shares, json!({})).await.expect(403);
    for _ in 0..100 {
        customer.api.post(&shares, json!({})).await.created();
    }
    customer.api.post(&shares, json!({})).await.expect(422);
    assert_eq!(viewer.get(&shares).await.ok().as_array().unwrap().len(), 100);
}
