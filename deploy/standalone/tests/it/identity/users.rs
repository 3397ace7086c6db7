//! Users: accounts as members of customers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    customer::{Customer, unique},
    people::{GROUPS, create_group, create_user, password_of, reset_password},
    world::id,
};

fn path(user: &Value) -> String {
    format!("/api/users/{}", id(user))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_user_is_invited_and_sets_a_password() {
    let Customer { api: admin, assay, .. } = Customer::new().await;
    let email = format!("{}@example.org", unique("grace"));
    let readers = create_group(&admin, "Readers", "Login, Read").await;
    let body = json!({
        "email": email, "DisplayName": "Grace", "UserGroup": {"Id": id(&readers), "Name": "x"},
        "Password": "ignored", "UsagePermission": "UserManagement",
    });
    for (group, field) in [
        (json!(null), "/UserGroup"),
        (json!({}), "/UserGroup/Id"),
        (json!({"Id": "01a1b2c3-0000-7000-8000-000000000001"}), "/UserGroup/Id"),
    ] {
        let mut body = body.clone();
        body["UserGroup"] = group;
        let problem = admin.post("/api/users", body.clone()).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], field, "{body}");
    }
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

    let mail = assay.take_mail_to(&email).await;
    let customer = admin.get("/api/management/customers/current").await.ok();
    assert!(mail.header.contains(customer["Name"].as_str().unwrap()), "{}", mail.header);
    reset_password(&assay.anonymous(), mail.token(), &password_of(&email)).await.ok();
    let api = assay.log_in(&email).await;
    let current = api.get("/api/users/current").await.ok();
    assert_eq!((id(&current), &current["Email"]), (id(&grace), &json!(email)));
    assert!(current["LastLogin"].is_string() && current["PreviousLogin"].is_null(), "{current}");
    let again = assay.log_in(&email).await.get("/api/users/current").await.ok();
    assert_eq!(again["PreviousLogin"], current["LastLogin"]);

    let users = admin.get(&format!("{GROUPS}/{}/users", id(&readers))).await.ok();
    assert_eq!(users.as_array().unwrap().len(), 1);
    assert_eq!(id(&users[0]), id(&grace));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_changed_with_both_forms_of_input() {
    let admin = Customer::new().await.api;
    let email = format!("{}@example.org", unique("grace"));
    let readers = create_group(&admin, "Readers", "Login, Read").await;
    let writers = create_group(&admin, "Writers", "Login, Write").await;
    let grace = create_user(&admin, &email, id(&readers)).await.created();

    let change = json!({"UserData": {"DisplayName": "Grace Hopper"}});
    let changed = admin.put(&path(&grace), change).await.ok();
    assert_eq!(
        (&changed["DisplayName"], &changed["Email"]),
        (&json!("Grace Hopper"), &json!(email))
    );
    let change = json!({"UserGroup": {"Id": id(&writers)}, "DataVersion": changed["DataVersion"]});
    let moved = admin.put(&path(&grace), change.clone()).await.ok();
    assert_eq!(moved["UsagePermission"], "Login, Write");
    admin.put(&path(&grace), change).await.is_problem(409, "stale_data_version");
    let whole = json!({"UserData": changed});
    admin.put(&path(&grace), whole).await.is_problem(409, "stale_data_version");
    let corrected = format!("{}@example.org", unique("hopper"));
    let change = json!({"UserData": {"email": corrected}});
    assert_eq!(admin.put(&path(&grace), change).await.ok()["Email"], corrected.as_str());
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
}
