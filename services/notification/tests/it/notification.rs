//! Notifications as clients add, list and delete them.

use anyhow::Result;
use assay_proto::{
    NotificationOrigin, Page,
    notification::{Notification, NotificationInput},
};
use tonic::Code;

use crate::world::{World, notification, numbered};

#[tokio::test]
async fn notifications_are_listed_newest_first() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let mut created = Vec::new();
    for number in 0..3 {
        created.push(world.create(&user, numbered(number)).await?);
    }

    created.reverse();
    assert_eq!(world.list(&user).await?, created);
    let Notification { id, .. } = created[0].clone();
    let expected = Notification {
        id,
        source: "TestCase".to_owned(),
        source_id: "TC-1".to_owned(),
        target: "TestReport".to_owned(),
        target_id: Some("TR-1".to_owned()),
        action: "Done2".to_owned(),
        state: "Submitted".to_owned(),
        data_version: "1".to_owned(),
        archived: false,
        origin: NotificationOrigin::Client.into(),
        actor: created[0].actor.clone(),
        ..Notification::default()
    };
    assert_eq!(created[0], expected);
    Ok(())
}

#[tokio::test]
async fn a_missing_target_id_is_absent_and_a_missing_state_is_none() -> Result<()> {
    let world = World::new().await?;
    let input = NotificationInput { target_id: None, state: None, ..notification() };
    let created = world.create(&world.user().await, input).await?;
    assert_eq!((created.target_id, created.state.as_str()), (None, "None"));
    Ok(())
}

#[tokio::test]
async fn pages_cover_the_list_without_gaps_or_repetitions() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    for number in 0..5 {
        world.create(&user, numbered(number)).await?;
    }

    let (mut paged, mut cursor) = (Vec::new(), None);
    loop {
        let page = Page { limit: Some(2), cursor, q: None };
        let (items, next) = world.list_page(&user, page).await?;
        paged.extend(items);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(paged, world.list(&user).await?);
    let unknown = Page { cursor: Some("nowhere".to_owned()), ..Page::default() };
    let refused = world.list_page(&user, unknown).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    Ok(())
}

#[tokio::test]
async fn a_search_matches_kinds_actions_and_states() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    for number in [1, 2] {
        world.create(&user, numbered(number)).await?;
    }
    for (q, count) in [("done2", 1), ("TESTCASE", 2), ("submit", 2), ("%", 0), ("", 2)] {
        let page = Page { q: Some(q.to_owned()), ..Page::default() };
        assert_eq!(world.list_page(&user, page).await?.0.len(), count, "{q}");
    }
    Ok(())
}

#[tokio::test]
async fn an_invalid_notification_is_rejected_and_neither_stored_nor_published() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    for (input, field) in [
        (NotificationInput { source: "a\nb".to_owned(), ..notification() }, "Source"),
        (NotificationInput { source_id: "a\0".to_owned(), ..notification() }, "SourceId"),
        (NotificationInput { target: String::new(), ..notification() }, "Target"),
        (NotificationInput { target_id: Some("x".repeat(256)), ..notification() }, "TargetId"),
        (NotificationInput { action: "x".repeat(129), ..notification() }, "Action"),
        (NotificationInput { state: Some("\0".to_owned()), ..notification() }, "State"),
    ] {
        let refused = world.create(&user, input).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().starts_with(&format!("{field}: ")), "{refused}");
    }
    assert_eq!(world.list(&user).await?, []);
    assert_eq!(world.published().await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn any_name_of_one_line_is_accepted_and_becomes_a_token_of_the_subject() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let input = NotificationInput {
        source: "build job".to_owned(),
        target: "Prüfung.>".to_owned(),
        action: "* was done".to_owned(),
        state: Some(String::new()),
        ..notification()
    };
    let created = world.create(&user, input).await?;
    assert_eq!((created.source.as_str(), created.state.as_str()), ("build job", "None"));
    assert_eq!(world.list_of(&user, Some("build job"), Some("* was done")).await?, [created]);
    let published = world.published().await?;
    let subject = format!("assay.notifications.{}.client.build_job.__was_done", user.customer);
    assert_eq!(published[0].subject.as_str(), subject);
    Ok(())
}

#[tokio::test]
async fn filters_and_searches_find_rare_notifications_in_a_long_history() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let rare = NotificationInput { source: "Build".to_owned(), ..notification() };
    let first = world.create(&user, rare).await?;
    world.add_history(&user, 25_000).await?;
    let last = world
        .create(&user, NotificationInput { source: "Build".to_owned(), ..notification() })
        .await?;

    assert_eq!(world.list_of(&user, Some("Build"), None).await?, [last.clone(), first.clone()]);
    let page = Page { limit: Some(1), q: Some("build".to_owned()), cursor: None };
    let (found, cursor) = world.list_page(&user, page).await?;
    assert_eq!(found, [last]);
    let page = Page { limit: Some(1), q: Some("build".to_owned()), cursor };
    assert_eq!(world.list_page(&user, page).await?, (vec![first], None));
    assert_eq!(world.list_of(&user, Some("Nothing"), None).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_deleted_notification_is_not_listed() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let (one, other) =
        (world.create(&user, numbered(1)).await?, world.create(&user, numbered(2)).await?);

    world.delete(&user, &one.id).await?;
    assert_eq!(world.list(&user).await?, [other]);
    assert_eq!(world.delete(&user, &one.id).await.unwrap_err().code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn another_customers_notification_is_not_found() -> Result<()> {
    let world = World::new().await?;
    let (owner, stranger) = (world.user().await, world.user().await);
    let created = world.create(&owner, notification()).await?;

    assert_eq!(world.list(&stranger).await?, []);
    for id in [created.id.as_str(), &created.id.to_uppercase(), "0", ""] {
        assert_eq!(world.delete(&stranger, id).await.unwrap_err().code(), Code::NotFound);
    }
    assert_eq!(world.list(&owner).await?, [created]);
    Ok(())
}

#[tokio::test]
async fn reading_needs_read_and_writing_needs_write() -> Result<()> {
    let world = World::new().await?;
    let reader = world.user_who_may("Read").await;
    let writer = world.user_who_may("Write").await;

    let refusals = [
        world.create(&reader, notification()).await.err(),
        world.delete(&reader, "0").await.err(),
        world.list(&writer).await.err(),
    ];
    for refused in refusals {
        assert_eq!(refused.expect("a refusal").code(), Code::PermissionDenied);
    }
    Ok(())
}
