//! Publication of notifications to other systems.

use anyhow::Result;
use async_nats::jetstream::message::StreamMessage;
use futures::future::try_join_all;
use serde_json::Value;
use tonic::Code;

use crate::world::{World, notification, numbered};

fn event(message: &StreamMessage) -> Result<Value> {
    Ok(serde_json::from_slice(&message.payload)?)
}

#[tokio::test]
async fn a_notification_is_published_once_with_its_id() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let created = world.create(&user, notification()).await?;

    let published = world.published().await?;
    let [message] = &published[..] else { panic!("{} messages", published.len()) };
    let subject = format!("assay.notifications.{}.client.testcase.created", user.customer);
    assert_eq!(message.subject.as_str(), subject);
    let header = |name| message.headers.get(name).map(ToString::to_string);
    assert_eq!(header("Nats-Msg-Id").as_ref(), Some(&created.id));
    assert_eq!(header("Content-Type").as_deref(), Some("application/cloudevents+json"));
    let event = event(message)?;
    assert_eq!((&event["specversion"], &event["id"]), (&"1.0".into(), &created.id.as_str().into()));
    assert_eq!(event["source"], format!("/assay/clients/{}", user.user));
    assert_eq!(event["type"], "io.assay.client.testcase.created.v1");
    assert_eq!(event["data"], serde_json::to_value(&created)?);
    Ok(())
}

#[tokio::test]
async fn a_notification_that_cannot_be_published_is_not_stored() -> Result<()> {
    assay_testkit::expect_failures();
    let world = World::new().await?;
    let user = world.user().await;
    sqlx::query("alter table outbox add constraint closed check (false)")
        .execute(&world.db)
        .await?;
    let refused = world.create(&user, numbered(1)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Internal);

    sqlx::query("alter table outbox drop constraint closed").execute(&world.db).await?;
    let created = world.create(&user, numbered(2)).await?;
    assert_eq!(world.list(&user).await?, [created]);
    assert_eq!(world.published().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn notifications_are_published_in_the_order_of_the_list() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    try_join_all((0..50).map(|number| world.create(&user, numbered(number)))).await?;

    let messages = world.published().await?;
    let published: Result<Vec<Value>> =
        messages.iter().rev().map(|message| Ok(event(message)?["id"].clone())).collect();
    let listed: Vec<Value> =
        world.list(&user).await?.into_iter().map(|notification| notification.id.into()).collect();
    assert_eq!(published?, listed);
    Ok(())
}

#[tokio::test]
async fn ids_grow_although_the_clock_of_another_replica_is_ahead() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    world.create(&user, numbered(1)).await?;
    let ahead = "update notification set id = overlay(id::text placing 'f' from 1 for 1)::uuid
                 returning id::text";
    let ahead: String = sqlx::query_scalar(ahead).fetch_one(&world.db).await?;
    let second = world.create(&user, numbered(2)).await?;
    assert!(second.id > ahead, "{} {ahead}", second.id);
    world.delete(&user, &second.id).await?;
    let third = world.create(&user, numbered(3)).await?;
    assert!(third.id > second.id, "a deleted notification counts, too");
    let listed: Vec<_> = world.list(&user).await?.into_iter().map(|one| one.id).collect();
    assert_eq!(listed, [third.id, ahead]);
    Ok(())
}
