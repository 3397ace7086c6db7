//! Customers that identity has changed, deleted or lacks, after its restore.

use assay_testkit::eventually;
use serde_json::json;

use super::{JUNIT, change, differences, has_no_differences, has_rows, project_with_set};
use crate::{
    junit::upload,
    world::{World, create_project, id},
};

/// Starts an Assay in which the operator's customer has an execution.
async fn world_with_an_execution() -> World {
    let world = World::start().await;
    let (_, set) = project_with_set(&world.api).await;
    upload(&world.api, &set, JUNIT).await.expect(201);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn appliances_and_archives_that_identity_does_not_have_are_found_and_repaired() {
    let world = world_with_an_execution().await;
    let customer = world.create_customer("acme").await;
    let customer = id(&customer);
    let path = format!("/api/management/customers/{customer}");
    world.api.put(&path, json!({"Appliances": "linux"})).await.ok();
    world.api.put(&path, json!({"Archived": true})).await.ok();
    let [identity, catalog, execution, _] = world.databases();
    let archived =
        format!("select from customer_state where customer_id = '{customer}' and is_archived");
    eventually("the archived customer", async || {
        has_rows(execution, &archived).await.then_some(())
    })
    .await;
    has_no_differences(&world).await;

    // The backup of identity is older than both changes.
    let restore = format!(
        "update customer set appliances = null, archived = false, revision = revision - 2
         where id = '{customer}'"
    );
    change(identity, &restore).await;
    let found = differences(&world).await;
    assert_eq!(found.len(), 3, "{found:#?}");
    let appliances = format!("customer {customer}: the appliances are linux of revision ");
    for service in ["(in the catalog)", "(in the execution service)"] {
        let of_service = |one: &String| one.starts_with(&appliances) && one.ends_with(service);
        assert!(found.iter().any(of_service), "{service}: {found:#?}");
    }
    let state = format!(
        "customer {customer}: is not archived in identity, but its share links grant no access (in \
         the execution service)"
    );
    assert!(found.contains(&state), "{found:#?}");
    assert_eq!(assay::rebuild(world.databases()).await.unwrap(), 3);
    assert_eq!(differences(&world).await, [""; 0]);

    // The next change has an earlier revision than the lost ones.
    world.api.put(&path, json!({"Appliances": "mac"})).await.ok();
    let changed = "select from appliances where target_groups = '{mac}'";
    for database in [catalog, execution] {
        eventually("the changed appliances", async || {
            has_rows(database, changed).await.then_some(())
        })
        .await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn customers_that_a_restored_identity_lacks_or_has_again_are_found() {
    let world = world_with_an_execution().await;
    let [lost, back] = [world.create_customer("lost").await, world.create_customer("back").await];
    for customer in [&lost, &back] {
        create_project(&world.act_for(customer).await).await;
    }
    let [lost, back] = [id(&lost), id(&back)];
    world.api.delete(&format!("/api/management/customers/{back}")).await.expect(204);
    let [identity, catalog, execution, notification] = world.databases();
    let deleted = format!("select from deleted_customer where customer_id = '{back}'");
    let purged = format!("select from customer where id = '{back}' and purged_at is not null");
    for (database, applied) in [
        (catalog, deleted.clone()),
        (execution, format!("select from deletion where customer_id = '{back}'")),
        (notification, deleted),
        (identity, purged),
    ] {
        eventually("the deletion", async || has_rows(database, &applied).await.then_some(())).await;
    }
    has_no_differences(&world).await;

    // The backup of identity is older than both the one and the deletion of the other.
    for statement in [
        format!("update customer set deleted_at = null, purged_at = null where id = '{back}'"),
        format!("delete from user_group where customer_id = '{lost}'"),
        format!("delete from customer where id = '{lost}'"),
    ] {
        change(identity, &statement).await;
    }
    let found = differences(&world).await;
    let mut expected = vec![
        format!("customer {lost}: the catalog has records of it, but identity lacks it"),
        format!(
            "customer {lost}: the notification service has records of it, but identity lacks it"
        ),
    ];
    for service in ["the catalog", "the execution service", "the notification service"] {
        expected
            .push(format!("customer {back}: {service} has deleted it, but identity has it again"));
    }
    for expected in &expected {
        assert!(found.iter().any(|one| one.starts_with(expected)), "{expected}: {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    world.stop().await;
}
