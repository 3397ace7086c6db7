//! Users and user groups that a restored identity lacks, or has again.

use assay_testkit::eventually;

use super::{JUNIT, change, differences, has_no_differences, has_rows, project_with_set};
use crate::{
    junit::upload,
    people::{GROUPS, create_group, create_user},
    world::{World, id},
};

#[tokio::test(flavor = "multi_thread")]
async fn users_and_groups_of_a_restored_identity_are_compared_with_their_notifications() {
    let world = World::start().await;
    let api = &world.api;
    let (_, set) = project_with_set(api).await;
    upload(api, &set, JUNIT).await.expect(201);
    let [group, lost_group, deleted_group] = [
        create_group(api, "Reviewers", "Login, Read").await,
        create_group(api, "Auditors", "Login, Read").await,
        create_group(api, "Visitors", "Login, Read").await,
    ];
    let [lost_group, deleted_group] = [id(&lost_group), id(&deleted_group)];
    let [lost, deleted] = [
        create_user(api, "lost@example.org", id(&group)).await.created(),
        create_user(api, "deleted@example.org", id(&group)).await.created(),
    ];
    let [lost, deleted] = [id(&lost), id(&deleted)];
    for email in ["lost@example.org", "deleted@example.org"] {
        world.take_mail_to(email).await;
    }
    let [identity, _, _, notification] = world.databases();
    change(
        identity,
        &format!("create table kept as select * from membership where id = '{deleted}'"),
    )
    .await;
    api.delete(&format!("/api/users/{deleted}")).await.expect(204);
    api.delete(&format!("{GROUPS}/{deleted_group}")).await.expect(204);
    eventually("the notifications", async || {
        let all = "select from notification
                   where source in ('User', 'UserGroup') and action in ('Created', 'Deleted')
                   having count(*) = 7";
        has_rows(notification, all).await.then_some(())
    })
    .await;
    has_no_differences(&world).await;

    // The backup of identity is older than the users and groups that are lost, and than the deletion of the others.
    for statement in [
        format!("delete from membership where id = '{lost}'"),
        format!("delete from user_group where id = '{lost_group}'"),
        "insert into membership select * from kept".to_owned(),
        format!("update user_group set deleted_at = null where id = '{deleted_group}'"),
    ] {
        change(identity, &statement).await;
    }
    let found = differences(&world).await;
    let expected = [
        (format!("user {deleted} of customer "), ": was deleted, but identity has it again: "),
        (format!("user {lost} of customer "), ": was created, but identity lacks it: "),
        (format!("user group {deleted_group} of "), ": was deleted, but identity has it again: "),
        (format!("user group {lost_group} of "), ": was created, but identity lacks it: "),
    ];
    for (record, difference) in &expected {
        let matches = |one: &String| one.starts_with(record) && one.contains(difference);
        assert!(found.iter().any(matches), "{record}: {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    world.stop().await;
}
