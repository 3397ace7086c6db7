//! The audit log.

use assay_testkit::{Answer, Api, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    people::{create_group, password_of, try_login, try_login_from},
    world::{create_project, id},
};

const AUDIT: &str = "/api/management/audit";

pub(super) async fn entries(api: &Api, query: &str) -> Vec<Value> {
    api.get(&format!("{AUDIT}?{query}")).await.ok().as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_can_be_filtered_and_paged() {
    let customer = Customer::new().await;
    let grace = customer.create_member("grace", "Login, UserManagement").await;
    for n in 0..5 {
        create_group(&grace.api, &format!("Group {n}"), "Login").await;
    }
    let api = &grace.api;
    let all = entries(api, "").await;
    let of_grace = entries(api, &format!("userId={}", grace.id)).await;
    assert!(of_grace.len() >= 5 && of_grace.len() < all.len(), "{of_grace:#?}");
    assert!(of_grace.iter().all(|entry| entry["UserId"] == grace.id.as_str()));
    assert_eq!(entries(api, "action=UserGroupCreated").await.len(), 6);
    let both = format!("action=UserGroupCreated&userId={}", grace.id);
    assert_eq!(entries(api, &both).await.len(), 5);

    let middle = all[3]["Time"].as_str().unwrap();
    assert_eq!(entries(api, &format!("from={middle}")).await, all[..4]);
    assert_eq!(entries(api, &format!("to={middle}")).await, all[4..]);

    let (mut paged, mut next) = (Vec::new(), Some(format!("{AUDIT}?{both}&limit=2")));
    while let Some(path) = next {
        let page = api.get(&path).await;
        paged.append(page.ok().as_array_mut().unwrap());
        next = page.headers.get("link").map(|link| {
            let link = link.to_str().unwrap();
            link.trim_start_matches('<').split('>').next().unwrap().to_owned()
        });
    }
    assert_eq!(paged, entries(api, &both).await);

    for (query, field) in
        [("from=yesterday", "/from"), ("to=2026-13-01T00:00:00Z", "/to"), ("userId=x", "/userId")]
    {
        let problem = api.get(&format!("{AUDIT}?{query}")).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], field);
    }
    let operator = &customer.assay.api;
    assert!(entries(operator, &format!("userId={}", grace.id)).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_addresses_of_untrusted_clients_are_ignored() {
    let customer = Customer::new().await;
    let email = customer.create_member("grace", "Login").await.email;
    let api = customer.anonymous();
    try_login_from(&api, "192.0.2.7", &email, "guess").await.is_problem(401, "unauthenticated");
    let login = json!({"Email": email, "Password": "guess"});
    for name in ["X-Client-Address", "X-Real-Ip", "Forwarded", "True-Client-Ip"] {
        let request = api.request(Method::POST, "/api/token/login").json(&login);
        Answer::of(request.header(name, "192.0.2.7")).await.expect(401);
    }
    try_login(&api, &email, &password_of(&email)).await.ok();
    let refused = entries(&customer.api, "action=LoginRefused").await;
    assert_eq!(refused.len(), 5);
    assert!(refused.iter().all(|entry| entry["Address"] == "127.0.0.1"), "{refused:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_pools_are_shown_to_nobody_and_add_no_audit_entry() {
    let api = Customer::new().await.api;
    let project = create_project(&api).await;
    let content = json!({"Name": "PIN", "Content": "a canary in the mine", "IsSecured": true});
    let pool = json!({"Name": "cards", "Values": [{"Contents": [content]}]});
    let pool = api.post(&format!("{project}/pools"), pool).await.created();
    let path = format!("{project}/pools/{}", id(&pool));
    let read = api.get(&path).await.ok();
    let written = api.put(&path, json!({"Name": "credit cards"})).await.ok();
    let listed = api.get(&format!("{project}/pools")).await.ok();
    for pool in [&pool, &read, &written, &listed[0]] {
        assert_eq!(pool["Values"][0]["Contents"][0]["Content"], "********", "{pool:#}");
    }

    // Entries about one customer come in their order, and the first is about the environment.
    let environment = json!({"Name": "Launch pad", "Password": "sesame"});
    let environment = api.post(&format!("{project}/environments"), environment).await.created();
    api.get(&format!("{project}/environments/{}", id(&environment))).await.ok();
    let entries = eventually("the audit entry", || async {
        Some(entries(&api, "action=SecretsSeen").await).filter(|entries| !entries.is_empty())
    })
    .await;
    assert!(entries.iter().all(|entry| entry["Target"] == "Environment"), "{entries:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_a_secret_adds_an_audit_entry() {
    let api = Customer::new().await.api;
    let project = create_project(&api).await;
    let environments = format!("{project}/environments");
    let environment = json!({"Name": "Launch pad", "Password": "a canary in the mine"});
    let environment = api.post(&environments, environment).await.created();
    let seen = api.get(&format!("{environments}/{}", id(&environment))).await.ok();
    assert_eq!(seen["Password"], "a canary in the mine");

    let entry = eventually("the audit entry", || async {
        entries(&api, "action=SecretsSeen").await.into_iter().next()
    })
    .await;
    assert_eq!(entry["Target"], "Environment");
    assert_eq!(entry["TargetId"], environment["Id"]);
    assert_eq!(entry["UserId"], api.get("/api/users/current").await.ok()["Id"]);
    assert_eq!(entry["Address"], "127.0.0.1");
    assert!(!entry.to_string().contains("canary"), "{entry}");
}
