//! Users: accounts as members of customers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::revocation::time_until_revoked;
use crate::{
    people::{
        GROUPS, create_group, create_user, password_of, refine_token, reset_password, try_login,
    },
    world::{World, id, log_in},
};

const GRACE: &str = "grace@example.org";

fn path(user: &Value) -> String {
    format!("/api/users/{}", id(user))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_user_is_invited_and_sets_a_password() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let readers = create_group(&admin, "Readers", "Login, Read").await;
    let body = json!({
        "email": GRACE, "DisplayName": "Grace", "UserGroup": {"Id": id(&readers), "Name": "x"},
        "Password": "ignored", "UsagePermission": "UserManagement",
    });
    let made = admin.post("/api/users", body).await;
    let grace = made.created();
    assert_eq!(made.headers["location"], path(&grace).as_str());
    let fields: BTreeSet<_> = grace.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "Id",
        "Email",
        "DisplayName",
        "UsagePermission",
        "Features",
        "Password",
        "PreviousLogin",
        "LastLogin",
        "Profile",
        "UserGroup",
        "DataVersion",
        "Archived",
    ];
    assert_eq!(fields, BTreeSet::from(expected));
    assert_eq!((&grace["Password"], &grace["LastLogin"]), (&json!(null), &json!(null)));
    assert_eq!(grace["UsagePermission"], "Login, Read");
    assert_eq!(grace["UserGroup"], readers);

    let mail = world.take_mail_to(GRACE).await;
    assert!(mail.header.contains("ACME"), "{}", mail.header);
    reset_password(&world.anonymous(), mail.token(), &password_of(GRACE)).await.ok();
    let api = world.log_in(GRACE).await;
    let current = api.get("/api/users/current").await.ok();
    assert_eq!((id(&current), &current["Email"]), (id(&grace), &json!(GRACE)));
    assert!(current["LastLogin"].is_string() && current["PreviousLogin"].is_null(), "{current}");
    let again = world.log_in(GRACE).await.get("/api/users/current").await.ok();
    assert_eq!(again["PreviousLogin"], current["LastLogin"]);

    let users = admin.get(&format!("{GROUPS}/{}/users", id(&readers))).await.ok();
    assert_eq!(users.as_array().unwrap().len(), 1);
    assert_eq!(id(&users[0]), id(&grace));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_changed_with_both_forms_of_input() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let readers = create_group(&admin, "Readers", "Login, Read").await;
    let writers = create_group(&admin, "Writers", "Login, Write").await;
    let grace = create_user(&admin, GRACE, id(&readers)).await.created();

    let change = json!({"UserData": {"DisplayName": "Grace Hopper"}});
    let changed = admin.put(&path(&grace), change).await.ok();
    assert_eq!(
        (&changed["DisplayName"], &changed["Email"]),
        (&json!("Grace Hopper"), &json!(GRACE))
    );
    let change = json!({"UserGroup": {"Id": id(&writers)}, "DataVersion": changed["DataVersion"]});
    let moved = admin.put(&path(&grace), change.clone()).await.ok();
    assert_eq!(moved["UsagePermission"], "Login, Write");
    admin.put(&path(&grace), change).await.is_problem(409, "stale_data_version");
    let whole = json!({"UserData": changed});
    admin.put(&path(&grace), whole).await.is_problem(409, "stale_data_version");
    let change = json!({"UserData": {"email": "hopper@example.org"}});
    assert_eq!(admin.put(&path(&grace), change).await.ok()["Email"], "hopper@example.org");
    admin.put(&path(&grace), json!({})).await.ok();

    for (body, field) in [
        (json!({"UserData": 7}), "/UserData"),
        (json!({"UserData": {"DisplayName": null}}), "/UserData/DisplayName"),
        (json!({"UserData": {"DisplayName": ""}}), "/UserData/DisplayName"),
        (json!({"UserData": {"email": "nobody"}}), "/UserData/Email"),
        (json!({"UserData": {"UserGroup": {"Id": "0"}}}), "/UserData/UserGroup/Id"),
        (json!({"Email": "nobody", "UserData": {"DisplayName": "Grace"}}), "/Email"),
        (json!({"Email": "nobody"}), "/Email"),
        (json!({"Email": null}), "/Email"),
        (json!({"Email": "a@example.org\r\nBcc: eve@example.org"}), "/Email"),
        (json!({"UserGroup": null}), "/UserGroup"),
        (json!({"UserGroup": {"Id": "0"}}), "/UserGroup/Id"),
        (json!({"UserGroup": "Readers"}), "/UserGroup"),
    ] {
        let problem = admin.put(&path(&grace), body.clone()).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], field, "{body}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_two_customers_has_separate_data_at_each() {
    let world = World::start().await;
    let (first, second) =
        (world.act_for_new_customer("first").await, world.act_for_new_customer("second").await);
    let grace = world.create_member(&first, GRACE, "Login, Read").await;
    let writers = create_group(&second, "Writers", "Login, Write").await;
    let body = json!({
        "Email": "GRACE@example.org", "DisplayName": "Miss Hopper",
        "UserGroup": {"Id": id(&writers)},
    });
    let there = second.post("/api/users", body.clone()).await.created();
    assert_ne!(id(&there), grace.id);
    assert_eq!(there["DisplayName"], "Miss Hopper");
    assert_eq!(there["Email"], "GRACE@example.org", "the address is shown as the manager wrote it");
    let here = grace.api.get("/api/users/current").await.ok();
    assert_eq!((&here["DisplayName"], &here["Email"]), (&json!("Grace"), &json!(GRACE)));
    second.post("/api/users", body).await.is_problem(409, "already_exists");

    let memberships = "/api/users/current/memberships";
    let seen = grace.api.get(memberships).await.ok();
    let customer = seen[0]["CustomerId"].as_str().unwrap();
    assert_eq!((&seen[0]["Id"], &seen[0]["Pending"]), (&there["Id"], &json!(true)));
    assert_eq!((&seen[1]["Id"], &seen[1]["Pending"]), (&json!(grace.id), &json!(false)));
    refine_token(&grace.api, customer).await.is_problem(403, "forbidden");
    let mail = world.take_mail_to("GRACE@example.org").await;
    let accept = json!({"Token": mail.token()});
    world.anonymous().put("/api/users/reset/accept", accept.clone()).await.ok();
    world
        .anonymous()
        .put("/api/users/reset/accept", accept)
        .await
        .is_problem(422, "invalid_reset_token");
    let refined = refine_token(&grace.api, customer).await.ok();
    let elsewhere = grace.api.with_token(refined["token"].as_str().unwrap());
    assert_eq!(elsewhere.get("/api/users/current").await.ok()["Id"], there["Id"]);

    let rename = json!({"Email": "other@example.org"});
    let refused = second.put(&path(&there), rename.clone()).await;
    refused.is_problem(409, "email_of_other_customers");
    second.delete(&path(&there)).await.expect(204);
    second.delete(&path(&there)).await.is_problem(404, "not_found");
    grace.api.get("/api/users/current").await.ok();

    first.delete(&format!("/api/users/{}", grace.id)).await.expect(204);
    let rejected = try_login(&world.anonymous(), GRACE, &password_of(GRACE)).await;
    rejected.is_problem(401, "unauthenticated");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_address_is_used_after_its_mailbox_has_accepted() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let grace = world.create_member(&admin, GRACE, "Login, Read").await;
    let own = format!("/api/users/{}", grace.id);
    let token = json!({"Name": "CI", "UsagePermission": "Read"});
    let token = grace.api.post("/api/users/current/tokens", token).await.created();
    let machine = world.anonymous().with_token(token["Secret"].as_str().unwrap());
    machine.get("/api/projects").await.ok();

    let renamed = admin.put(&own, json!({"UserData": {"email": "hopper@example.org"}})).await.ok();
    assert_eq!(renamed["Email"], GRACE);
    let notice = world.take_mail_to(GRACE).await;
    assert!(notice.body.contains("change the email address"), "{}", notice.body);
    grace.api.get("/api/users/current").await.ok();
    let mail = world.take_mail_to("hopper@example.org").await;
    let new = "an altogether different phrase";
    reset_password(&world.anonymous(), mail.token(), new).await.ok();

    time_until_revoked(&grace.api).await;
    time_until_revoked(&machine).await;
    let old = try_login(&world.anonymous(), GRACE, &password_of(GRACE)).await;
    old.is_problem(401, "unauthenticated");
    let hopper = log_in(&world.anonymous(), "hopper@example.org", new).await;
    assert_eq!(hopper.get("/api/users/current").await.ok()["Id"], grace.id.as_str());
    world.stop().await;
}

/// A manager changes the address of an account to one that another customer invites later.
#[tokio::test(flavor = "multi_thread")]
async fn changing_an_address_cannot_take_over_an_account() {
    let world = World::start().await;
    let victim = world.create_customer("victim").await;
    let (attacker, manager) =
        (world.act_for_new_customer("attacker").await, world.act_for(&victim).await);
    let mallory =
        world.create_member(&attacker, "mallory@evil.example", "Login, UserManagement").await;
    let rename = json!({"Email": "ceo@victim.example"});
    mallory.api.put(&format!("/api/users/{}", mallory.id), rename).await.ok();
    world.take_mail_to("ceo@victim.example").await;
    let ceos = create_group(&manager, "Chiefs", "Login, Read").await;
    create_user(&manager, "ceo@victim.example", id(&ceos)).await.created();

    let password = password_of("mallory@evil.example");
    let api = world.anonymous();
    try_login(&api, "ceo@victim.example", &password).await.is_problem(401, "unauthenticated");
    refine_token(&mallory.api, id(&victim)).await.is_problem(403, "forbidden");
    let mail = world.take_mail_to("ceo@victim.example").await;
    assert!(mail.header.contains("VICTIM"), "{}", mail.header);
    reset_password(&api, mail.token(), &password_of("ceo@victim.example")).await.ok();
    let ceo = world.log_in("ceo@victim.example").await;
    ceo.get("/api/projects").await.ok();
    try_login(&api, "ceo@victim.example", &password).await.is_problem(401, "unauthenticated");
    refine_token(&mallory.api, id(&victim)).await.is_problem(403, "forbidden");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_users_are_rejected_with_their_fields() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let readers = create_group(&admin, "Readers", "Login, Read").await;
    let good = json!({"Email": GRACE, "DisplayName": "Grace", "UserGroup": {"Id": id(&readers)}});
    for (name, value, field) in [
        ("Email", json!("nobody"), "/Email"),
        ("Email", json!(""), "/Email"),
        ("Email", json!(7), "/Email"),
        ("Email", json!("a@example.org, eve@example.org"), "/Email"),
        ("Email", json!("a@example.org\nBcc: eve@example.org"), "/Email"),
        ("DisplayName", json!(""), "/DisplayName"),
        ("DisplayName", json!("x".repeat(256)), "/DisplayName"),
        ("UserGroup", json!(null), "/UserGroup"),
        ("UserGroup", json!({}), "/UserGroup/Id"),
        ("UserGroup", json!({"Id": "01a1b2c3-0000-7000-8000-000000000001"}), "/UserGroup/Id"),
    ] {
        let mut body = good.clone();
        body[name] = value;
        let problem = admin.post("/api/users", body.clone()).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], field, "{body}");
    }
    assert!(!world.has_mail(), "an invitation was sent");
    admin.post("/api/users", good).await.created();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_escaped_in_mails() {
    let world = World::start().await;
    let odd = json!({"Name": "<b>Acme</b> & \"Sons\" Bcc: eve@example.org", "Subdomain": "odd"});
    let customer = world.api.post("/api/management/customers", odd).await.created();
    let admin = world.act_for(&customer).await;
    let readers = create_group(&admin, "Readers", "Login, Read").await;
    create_user(&admin, GRACE, id(&readers)).await.created();
    let mail = world.take_mail_to(GRACE).await;
    assert!(!mail.header.lines().any(|line| line.starts_with("Bcc")), "{}", mail.header);
    assert!(mail.body.contains("&lt;b&gt;Acme"), "{}", mail.body);
    world.stop().await;
}
