//! User groups and their permissions.

use serde_json::{Value, json};

use crate::{
    people::{GROUPS, Member, create_group, create_user},
    world::{World, id},
};

fn path(group: &Value) -> String {
    format!("{GROUPS}/{}", id(group))
}

/// A member of a new customer who manages users but lacks other permissions.
async fn manager(world: &World) -> Member {
    let admin = world.act_for_new_customer("acme").await;
    world.create_member(&admin, "grace@example.org", "Login, Read, UserManagement").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_created_changed_and_deleted() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let body = json!({
        "Name": "Nightly", "Description": null,
        "UsagePermission": "Write,Read ,  Reserved3,Login,Read", "Archived": true, "Id": "x",
    });
    let made = admin.post(GROUPS, body).await;
    let nightly = made.created();
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

    admin.delete(&path(&nightly)).await.expect(204);
    admin.delete(&path(&nightly)).await.is_problem(404, "not_found");
    admin.put(&path(&nightly), json!({"Name": "X"})).await.is_problem(404, "not_found");
    admin.get(&format!("{}/users", path(&nightly))).await.is_problem(404, "not_found");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_groups_are_rejected_with_their_fields() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    for (body, field) in [
        (json!({"Name": "A", "UsagePermission": ""}), "/UsagePermission"),
        (json!({"Name": "A", "UsagePermission": " , "}), "/UsagePermission"),
        (json!({"Name": "A"}), "/UsagePermission"),
        (json!({"Name": "A", "UsagePermission": "Read, Fly"}), "/UsagePermission"),
        (json!({"Name": "A", "UsagePermission": "read"}), "/UsagePermission"),
        (json!({"Name": "A", "UsagePermission": ["Read"]}), "/UsagePermission"),
        (json!({"Name": "", "UsagePermission": "Read"}), "/Name"),
        (json!({"UsagePermission": "Read"}), "/Name"),
    ] {
        let problem = admin.post(GROUPS, body.clone()).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], field, "{body}");
    }
    let twice = json!({"Name": "Testers", "UsagePermission": "Read"});
    admin.post(GROUPS, twice).await.is_problem(409, "already_exists");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_cannot_grant_permissions_that_they_lack() {
    let world = World::start().await;
    let grace = manager(&world).await;
    let own = create_group(&grace.api, "Readers", "Login, Read").await;
    let too_much = json!({"Name": "Writers", "UsagePermission": "Read, Write"});
    grace.api.post(GROUPS, too_much.clone()).await.is_problem(403, "forbidden");
    grace.api.put(&path(&own), too_much).await.is_problem(403, "forbidden");
    assert_eq!(
        grace.api.get("/api/users/current").await.ok()["UsagePermission"],
        "Login, Read, UserManagement"
    );

    let current = grace.api.get("/api/management/customers/current").await.ok();
    let groups = current["UserGroups"].as_array().unwrap();
    let administrators = groups.iter().find(|one| one["Name"] == "Administrators").unwrap();
    let joined = create_user(&grace.api, "eve@example.org", id(administrators)).await;
    joined.is_problem(403, "forbidden");
    let promotion = json!({"UserData": {"UserGroup": {"Id": id(administrators)}}});
    let own = format!("/api/users/{}", grace.id);
    grace.api.put(&own, promotion).await.is_problem(403, "forbidden");
    assert!(!world.has_mail(), "no invitation was sent");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_members_cannot_be_deleted() {
    let world = World::start().await;
    let grace = manager(&world).await;
    let readers = create_group(&grace.api, "Readers", "Login, Read").await;
    let alan = create_user(&grace.api, "alan@example.org", id(&readers)).await.created();
    assert_eq!(grace.api.delete(&path(&readers)).await.status, 409);
    grace.api.delete(&format!("/api/users/{}", id(&alan))).await.expect(204);
    grace.api.delete(&path(&readers)).await.expect(204);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_user_manager_cannot_be_removed() {
    let world = World::start().await;
    let grace = manager(&world).await;
    let api = &grace.api;
    let own_group = format!("{GROUPS}/{}", grace.group);
    let own = format!("/api/users/{}", grace.id);
    let readers = create_group(api, "Readers", "Login, Read").await;
    let move_away = json!({"UserData": {"UserGroup": {"Id": id(&readers)}}});

    let without = json!({"UsagePermission": "Login, Read"});
    for answer in [
        api.put(&own_group, without.clone()).await,
        api.put(&own, move_away.clone()).await,
        api.delete(&own).await,
    ] {
        assert_eq!(answer.status, 409, "{answer}");
    }
    assert_eq!(
        api.get("/api/users/current").await.ok()["UsagePermission"],
        "Login, Read, UserManagement"
    );

    let second = create_group(api, "Managers", "Login, UserManagement").await;
    create_user(api, "alan@example.org", id(&second)).await.created();
    api.put(&own, move_away.clone()).await.is_problem(409, "last_user_management");
    world.set_first_password("alan@example.org").await;
    api.put(&own, move_away).await.ok();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_users_of_other_customers_are_not_found() {
    let world = World::start().await;
    let grace = manager(&world).await;
    let foreign = world.act_for_new_customer("foreign").await;
    let alan = world.create_member(&foreign, "alan@example.org", "Login, Read").await;

    let body = |mut problem: Value| {
        let fields = problem.as_object_mut().unwrap();
        fields.remove("traceId");
        fields.remove("instance");
        problem
    };
    let mut seen = Vec::new();
    for id in [alan.group.as_str(), "01a1b2c3-0000-7000-8000-000000000001", "0", "no-id"] {
        let path = format!("{GROUPS}/{id}");
        for answer in [
            grace.api.get(&format!("{path}/users")).await,
            grace.api.put(&path, json!({"Name": "Mine"})).await,
            grace.api.delete(&path).await,
        ] {
            seen.push(body(answer.is_problem(404, "not_found")));
        }
    }
    for id in [alan.id.as_str(), "01a1b2c3-0000-7000-8000-000000000001", "0", "no-id"] {
        let path = format!("/api/users/{id}");
        for answer in [
            grace.api.put(&path, json!({"UserData": {"DisplayName": "Mine"}})).await,
            grace.api.delete(&path).await,
        ] {
            seen.push(body(answer.is_problem(404, "not_found")));
        }
    }
    seen.dedup();
    assert!(seen.len() <= 2, "one answer for groups and one for users: {seen:#?}");

    let mut refused = Vec::new();
    for group in [alan.group.as_str(), "01a1b2c3-0000-7000-8000-000000000001"] {
        let joined = create_user(&grace.api, "eve@example.org", group).await;
        refused.push(body(joined.is_problem(422, "invalid")));
    }
    assert_eq!(refused[0], refused[1]);
    alan.api.get("/api/users/current").await.ok();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_users_need_the_user_management_permission() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let everything_else = "Login, Read, Write, AccessSecrets, UserSettings";
    let grace = world.create_member(&admin, "grace@example.org", everything_else).await;
    let (group, user) = (format!("{GROUPS}/{}", grace.group), format!("/api/users/{}", grace.id));
    for (api, status, code) in
        [(&grace.api, 403, "forbidden"), (&world.anonymous(), 401, "unauthenticated")]
    {
        for answer in [
            api.post(GROUPS, json!({"Name": "A", "UsagePermission": "Read"})).await,
            api.put(&group, json!({"UsagePermission": "Read, UserManagement"})).await,
            api.delete(&group).await,
            api.get(&format!("{group}/users")).await,
            api.post("/api/users", json!({})).await,
            api.put(&user, json!({})).await,
            api.delete(&user).await,
            api.get("/api/management/audit").await,
        ] {
            answer.is_problem(status, code);
        }
    }
    world.stop().await;
}
