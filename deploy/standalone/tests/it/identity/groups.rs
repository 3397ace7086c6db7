//! User groups and their permissions.

use serde_json::{Value, json};

use crate::{
    customer::{Customer, unique},
    people::{GROUPS, create_user},
    world::id,
};

fn path(group: &Value) -> String {
    format!("{GROUPS}/{}", id(group))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_created_changed_and_deleted() {
    let admin = Customer::new().await.api;
    let body = json!({
        "Name": "Nightly", "Description": null,
        "UsagePermission": "Write,Read ,  Reserved3,Login,Read", "Archived": true, "Id": "x",
    });
    let invalid = admin.post(GROUPS, json!({"UsagePermission": "read"})).await;
    let problem = invalid.is_problem(422, "invalid");
    let fields = problem["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]);
    assert_eq!(fields.collect::<Vec<_>>(), ["/Name", "/UsagePermission"], "{problem}");
    let made = admin.post(GROUPS, body.clone()).await;
    let nightly = made.created();
    admin.post(GROUPS, body).await.is_problem(409, "already_exists");
    assert_eq!(made.headers["location"], path(&nightly).as_str());
    assert_eq!(nightly["UsagePermission"], "Login, Read, Write, Reserved3");
    assert_eq!((&nightly["Description"], &nightly["Archived"]), (&json!(null), &json!(false)));

    let change = json!({"Description": "At night", "DataVersion": nightly["DataVersion"]});
    let changed = admin.put(&path(&nightly), change.clone()).await.ok();
    assert_eq!(changed["Description"], "At night");
    assert_eq!(changed["UsagePermission"], nightly["UsagePermission"]);
    admin.put(&path(&nightly), change).await.is_problem(409, "stale_data_version");
    let current = admin.get("/api/management/customers/current").await.ok();
    assert!(current["UserGroups"].as_array().unwrap().contains(&changed), "{current}");

    let email = format!("{}@example.org", unique("grace"));
    let member = create_user(&admin, &email, id(&nightly)).await.created();
    admin.delete(&path(&nightly)).await.is_problem(409, "user_group_has_members");
    admin.delete(&format!("/api/users/{}", id(&member))).await.expect(204);
    admin.delete(&path(&nightly)).await.expect(204);
    admin.delete(&path(&nightly)).await.is_problem(404, "not_found");
    admin.put(&path(&nightly), json!({"Name": "X"})).await.is_problem(404, "not_found");
    admin.get(&format!("{}/users", path(&nightly))).await.is_problem(404, "not_found");
}
