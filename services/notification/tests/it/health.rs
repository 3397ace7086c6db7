//! Outcomes that say nothing about the receiver of a webhook now: of requests before a change, and of long ago.

use std::sync::Arc;

use anyhow::Result;
use assay_proto::notification::{Delivery, DeliveryStatus, WebhookHeader, WebhookInput};
use tokio::sync::Semaphore;

use crate::{
    receiver::{Behaviour, Receiver},
    world::{World, notification},
};

#[tokio::test]
async fn the_answer_to_a_request_before_a_change_does_not_count_for_the_webhook() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let with_key = |value: &str| {
        let key = WebhookHeader { name: "X-Key".to_owned(), value: value.to_owned() };
        WebhookInput { headers: vec![key], ..WebhookInput::default() }
    };
    for (status, batch_size) in [(410, 1), (410, 10), (500, 1)] {
        let permits = Arc::new(Semaphore::new(0));
        let receiver = Receiver::start(Behaviour::Late(permits.clone(), status)).await?;
        let old = WebhookInput { batch_size, batch_window_in_sec: 1, ..with_key("old") };
        let webhook = world.subscribe_with(&user, &receiver, old).await?;
        world.create(&user, notification()).await?;
        receiver.receives(1).await;
        let webhook = world.change(&user, &webhook, &["Headers"], with_key("new")).await?;
        receiver.set(Behaviour::Answer(200));
        permits.add_permits(1);
        let is_answered = |one: &Delivery| one.response_status == Some(i32::from(status));
        let answered = world.delivery(&user, &webhook, is_answered).await;
        assert_eq!((answered.status(), answered.attempts), (DeliveryStatus::Pending, 1));
        let seen = world.webhook(&user, &webhook.id).await?;
        assert_eq!((seen.archived, seen.failing_since), (false, None), "{status} {batch_size}");

        world.skip_delays().await?;
        let requests = receiver.receives(2).await;
        assert_eq!(requests[1].header("x-key"), "new");
        let is_delivered = |one: &Delivery| one.status() == DeliveryStatus::Delivered;
        assert_eq!(world.delivery(&user, &webhook, is_delivered).await.attempts, 2);
        world.delete_webhook(&user, &webhook.id).await?;
    }
    assert_eq!(world.list_of(&user, Some("Webhook"), Some("Disabled")).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_failure_after_a_day_without_attempts_does_not_continue_an_earlier_one() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(503)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    world.create(&user, notification()).await?;
    world.delivery(&user, &webhook, |one| one.attempts == 1).await;
    let idle = "update webhook set failing_since = now() - interval '6 days',
                                   attempted_at = now() - interval '25 hours'";
    sqlx::query(idle).execute(&world.db).await?;
    world.skip_delays().await?;
    world.delivery(&user, &webhook, |one| one.attempts == 2).await;
    assert!(!world.webhook(&user, &webhook.id).await?.archived);
    let begins_again = "select failing_since > now() - interval '1 hour'
                               and rests_until < now() + interval '10 seconds' from webhook";
    let begins_again: bool = sqlx::query_scalar(begins_again).fetch_one(&world.db).await?;
    assert!(begins_again, "the receiver begins to fail, and rests as briefly as at first");
    Ok(())
}
