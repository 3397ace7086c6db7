//! Tickets, which are links where the project says where they are.

use serde_json::json;

use super::{Reader, junit};
use crate::{
    customer::Customer,
    world::{id, in_days},
};

#[tokio::test]
async fn tickets_are_links_on_every_page_where_the_project_has_their_url() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let api = reader.api();
    let (execution, path) = reader.upload(&junit("no bank", "")).await;
    let report = api.get(&format!("{path}/reports")).await.ok()[0].clone();
    let review = json!({
        "Reports": [id(&report)], "Status": "Accepted", "Ticket": "SHOP-7",
        "Known": {"MutedUntil": in_days(30)},
    });
    api.put(&format!("{path}/reviews"), review).await.ok();
    let project = format!("/projects/{}", execution["ProjectId"].as_str().unwrap());
    let case = report["TestCaseId"].as_str().unwrap();
    let state = json!({"State": "Muted", "Until": in_days(30), "Ticket": "SHOP-7"});
    api.put(&format!("/api{project}/testcases/{case}/state"), state).await.ok();

    let execution = format!("/executions/{}", id(&execution));
    let pages = [
        format!("{execution}?view=all"),
        format!("{execution}?muted=true"),
        format!("/reports/{}", id(&report)),
        format!("/cases/{case}"),
        format!("{project}/knownfailures"),
    ];
    let link = r#"href="https://tickets.example/SHOP-7""#;
    for is_link in [false, true] {
        if is_link {
            let url = json!({"TicketUrl": "https://tickets.example/{ticket}"});
            api.put(&format!("/api{project}"), url).await.ok();
        }
        for page in &pages {
            let shown = reader.get(page).await;
            let shown = String::from_utf8_lossy(&shown.expect(200).body).into_owned();
            assert!(shown.contains("SHOP-7"), "{page}: {shown}");
            assert_eq!(shown.contains(link), is_link, "{page}: {shown}");
        }
    }
    let wrong = json!({"TicketUrl": "https://tickets.example/"});
    let problem = api.put(&format!("/api{project}"), wrong).await.is_problem(422, "invalid");
    assert_eq!(problem["errors"][0]["pointer"], "/TicketUrl", "{problem}");
}
