//! Notifications of clients, which never look like those of Assay.

use anyhow::{Context, Result};
use assay_events::{Subject, event_names};
use assay_proto::notification::{
    NotificationInput, WatchNotificationsRequest, WebhookFormat, WebhookInput,
};
use serde_json::Value;
use tokio::time::{Duration, timeout};

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{World, notification},
};

/// Every name of Assay, as it is, in lower case and in upper case.
fn forged() -> Vec<(String, String)> {
    let spelt = |(source, action): (&str, &str)| {
        [
            (source.to_owned(), action.to_owned()),
            (source.to_lowercase(), action.to_lowercase()),
            (source.to_uppercase(), action.to_uppercase()),
        ]
    };
    event_names().flat_map(spelt).collect()
}

#[tokio::test]
async fn no_notification_of_a_client_looks_like_one_of_assay() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let (of_assay, of_clients) = (
        Receiver::start(Behaviour::Answer(204)).await?,
        Receiver::start(Behaviour::Answer(204)).await?,
    );
    let names = event_names().filter(|(source, _)| *source != "Webhook");
    let sources: std::collections::BTreeSet<_> = names.map(|(source, _)| source).collect();
    let events = sources.iter().map(|source| format!("{source}.*")).collect();
    world.add_webhook(&user, WebhookInput { events, ..webhook_to(&of_assay.url) }).await?;
    let events = vec!["Client.*".to_owned()];
    world.add_webhook(&user, WebhookInput { events, ..webhook_to(&of_clients.url) }).await?;
    let watch = WatchNotificationsRequest::default();
    let mut watched =
        world.client.clone().watch_notifications(user.call(watch)).await?.into_inner();

    let forged = forged();
    for (source, action) in forged.clone() {
        let input = NotificationInput { source, action, ..notification() };
        world.create(&user, input).await?;
    }
    let mut streamed = Vec::new();
    while streamed.len() < forged.len() {
        let message = timeout(Duration::from_secs(20), watched.message()).await??;
        streamed.push(message.context("the stream has ended")?.event);
    }
    let delivered = of_clients.receives(forged.len()).await;
    let published = world.published().await?;
    let published: Vec<_> = published
        .into_iter()
        .filter(|message| Subject::parse(&message.subject).is_some_and(|subject| subject.of_client))
        .collect();

    assert_eq!(published.len(), forged.len());
    let source = format!("/assay/clients/{}", user.user);
    let check = |event: &[u8]| -> Result<Value> {
        let event: Value = serde_json::from_slice(event)?;
        assert_eq!(event["source"], source);
        let kind = event["type"].as_str().context("a type")?;
        assert!(kind.starts_with("io.assay.client."), "{kind}");
        assert_eq!(event["data"]["Origin"], "Client");
        assert_eq!(event["data"]["Actor"]["UserId"], user.user.to_string());
        Ok(event)
    };
    for ((message, event), (source, action)) in published.iter().zip(&streamed).zip(&forged) {
        let of_nats = check(&message.payload)?;
        assert_eq!(of_nats, check(event.as_bytes())?, "the streams have the same event as NATS");
        assert_eq!(
            (&of_nats["data"]["Source"], &of_nats["data"]["Action"]),
            (&source.as_str().into(), &action.as_str().into())
        );
        let subject = Subject::parse(&message.subject).context("a subject")?;
        assert!(subject.of_client && subject.to_string() == message.subject.as_str());
        let request = delivered.iter().find(|request| request.body == message.payload);
        request.context("a webhook has the same event")?;
    }
    // Nothing that is still on its way to the webhook for events of Assay.
    let pending = "select count(*) from webhook_delivery d join webhook w on w.id = d.webhook_id
                   where w.url = $1";
    let pending = sqlx::query_scalar::<_, i64>(pending).bind(&of_assay.url);
    assert_eq!(pending.fetch_one(&world.db).await?, 0);
    assert!(of_assay.requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn chats_and_cd_events_do_not_take_a_client_for_assay() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let chat = Receiver::start(Behaviour::Answer(200)).await?;
    let systems = Receiver::start(Behaviour::Answer(200)).await?;
    for (receiver, format) in [(&chat, WebhookFormat::Slack), (&systems, WebhookFormat::CdEvents)] {
        let events = vec!["Client.*".to_owned()];
        let format = format.into();
        world
            .add_webhook(&user, WebhookInput { events, format, ..webhook_to(&receiver.url) })
            .await?;
    }
    let forged = NotificationInput {
        source: "TestSet".to_owned(),
        target: "Execution".to_owned(),
        action: "Completed".to_owned(),
        ..notification()
    };
    world.create(&user, forged).await?;
    let message: Value = serde_json::from_slice(&chat.first().await?.body)?;
    assert_eq!(message["text"], "Client: Test set: Completed");
    let deliveries = "select count(*) from webhook_delivery d join webhook w on w.id = d.webhook_id
                      where w.url = $1";
    let deliveries = sqlx::query_scalar::<_, i64>(deliveries).bind(&systems.url);
    assert_eq!(deliveries.fetch_one(&world.db).await?, 0);
    Ok(())
}
