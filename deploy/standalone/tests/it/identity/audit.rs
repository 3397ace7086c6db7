//! The audit log.

use assay_testkit::{Answer, Api, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    people::{
        create_group, create_user, password_of, request_password_reset, reset_password, try_login,
        try_login_from,
    },
    world::{World, create_project, id},
};

const AUDIT: &str = "/api/management/audit";
const GRACE: &str = "grace@example.org";

async fn entries(api: &Api, query: &str) -> Vec<Value> {
    api.get(&format!("{AUDIT}?{query}")).await.ok().as_array().unwrap().clone()
}

fn actions(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["Action"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_adds_an_audit_entry() {
    let world = World::start_with(|settings| {
        settings.edge.trusted_proxies = "127.0.0.0/8".parse().unwrap();
    })
    .await;
    let customer = world.create_customer("acme").await;
    let admin = world.act_for(&customer).await;
    let readers = create_group(&admin, "Readers", "Login, Read").await;
    let grace = create_user(&admin, GRACE, id(&readers)).await.created();
    let password = world.set_first_password(GRACE).await;
    let api = world.anonymous();
    try_login_from(&api, "192.0.2.7", GRACE, &password).await.ok();
    try_login_from(&api, "2001:db8::7", GRACE, "a canary in the mine")
        .await
        .is_problem(401, "unauthenticated");
    request_password_reset(&api, GRACE, "").await.ok();
    let mail = world.take_mail_to(GRACE).await;
    reset_password(&api, mail.token(), "a canary in the mine").await.ok();
    admin.put(&format!("/api/users/{}", id(&grace)), json!({"DisplayName": "Hopper"})).await.ok();
    admin.delete(&format!("/api/users/{}", id(&grace))).await.expect(204);

    let entries = entries(&admin, "").await;
    assert_eq!(
        actions(&entries),
        [
            "UserDeleted",
            "UserChanged",
            "PasswordReset",
            "PasswordResetPrepared",
            "LoginRefused",
            "LoggedIn",
            "InvitationAccepted",
            "UserCreated",
            "UserGroupCreated",
            "TokenRefined",
        ],
        "{entries:#?}"
    );
    let of = |action: &str| entries.iter().find(|entry| entry["Action"] == action).unwrap();
    let manager = world.api.get("/api/users/current").await.ok();
    assert_eq!(of("UserCreated")["UserId"], manager["Id"]);
    assert_eq!(of("UserCreated")["UserEmail"], manager["Email"]);
    assert_eq!(of("UserCreated")["Target"], "User");
    assert_eq!(of("UserCreated")["TargetId"], grace["Id"]);
    assert_eq!(of("LoggedIn")["UserId"], grace["Id"]);
    assert_eq!(of("LoggedIn")["Address"], "192.0.2.7");
    assert_eq!(of("LoginRefused")["Address"], "2001:db8::7");
    assert_eq!(of("LoginRefused")["UserEmail"], GRACE);
    assert!(of("UserChanged")["Details"].as_str().unwrap().contains("Hopper"), "{entries:#?}");
    let of_operator = self::entries(&world.api, "action=CustomerCreated").await;
    assert_eq!(of_operator[0]["TargetId"], customer["Id"], "the entry belongs to the operator");
    let all = serde_json::to_string(&entries).unwrap();
    for secret in ["canary", mail.token(), &password] {
        assert!(!all.contains(secret), "{all}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_can_be_filtered_and_paged() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let grace = world.create_member(&admin, GRACE, "Login, UserManagement").await;
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
    let foreign = world.act_for_new_customer("foreign").await;
    assert!(entries(&foreign, &format!("userId={}", grace.id)).await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_addresses_of_untrusted_clients_are_ignored() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    world.create_member(&admin, GRACE, "Login").await;
    let api = world.anonymous();
    try_login_from(&api, "192.0.2.7", GRACE, "guess").await.is_problem(401, "unauthenticated");
    let login = json!({"Email": GRACE, "Password": "guess"});
    for name in ["X-Client-Address", "X-Real-Ip", "Forwarded", "True-Client-Ip"] {
        let request = api.request(Method::POST, "/api/token/login").json(&login);
        Answer::of(request.header(name, "192.0.2.7")).await.expect(401);
    }
    try_login(&api, GRACE, &password_of(GRACE)).await.ok();
    let refused = entries(&admin, "action=LoginRefused").await;
    assert_eq!(refused.len(), 5);
    assert!(refused.iter().all(|entry| entry["Address"] == "127.0.0.1"), "{refused:#?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_a_secret_adds_an_audit_entry() {
    let world = World::start().await;
    let project = create_project(&world.api).await;
    let environments = format!("{project}/environments");
    let environment = json!({"Name": "Launch pad", "Password": "a canary in the mine"});
    let environment = world.api.post(&environments, environment).await.created();
    let seen = world.api.get(&format!("{environments}/{}", id(&environment))).await.ok();
    assert_eq!(seen["Password"], "a canary in the mine");

    let entry = eventually("the audit entry", || async {
        entries(&world.api, "action=SecretsSeen").await.into_iter().next()
    })
    .await;
    assert_eq!(entry["Target"], "Environment");
    assert_eq!(entry["TargetId"], environment["Id"]);
    assert_eq!(entry["UserId"], world.api.get("/api/users/current").await.ok()["Id"]);
    assert_eq!(entry["Address"], "127.0.0.1");
    assert!(!entry.to_string().contains("canary"), "{entry}");
    world.stop().await;
}
