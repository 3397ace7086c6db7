//! Webhooks as clients manage them.

use anyhow::Result;
use assay_notification::reseal;
use assay_proto::{
    Batch as _, Page, WebhookId,
    notification::{
        CreateWebhookRequest, DeleteWebhookRequest, DeliveryStatus, GetWebhookRequest,
        ListDeliveriesRequest, ListDeliveryAttemptsRequest, ListWebhooksRequest, NotificationInput,
        RedeliverFailedRequest, RedeliverRequest, TestWebhookRequest, UpdateWebhookRequest,
        Webhook, WebhookInput,
    },
};
use assay_testkit::TestUser;
use futures::TryStreamExt;
use secrecy::ExposeSecret;
use tonic::{Code, Status};

use crate::world::{World, notification};

const MASK: &str = "********";

impl World {
    pub(crate) async fn manager(&self) -> TestUser {
        self.user_who_may("Read, Write, UserManagement").await
    }

    pub(crate) async fn add_webhook(
        &self,
        user: &TestUser,
        webhook: WebhookInput,
    ) -> Result<Webhook, Status> {
        let request = CreateWebhookRequest { webhook: Some(webhook) };
        Ok(self.webhooks.clone().create_webhook(user.call(request)).await?.into_inner())
    }

    pub(crate) async fn webhook(&self, user: &TestUser, id: &str) -> Result<Webhook, Status> {
        let request = GetWebhookRequest { id: id.to_owned() };
        Ok(self.webhooks.clone().get_webhook(user.call(request)).await?.into_inner())
    }

    /// Changes the named fields of a webhook.
    pub(crate) async fn change(
        &self,
        user: &TestUser,
        webhook: &Webhook,
        fields: &[&str],
        changes: WebhookInput,
    ) -> Result<Webhook, Status> {
        let request = UpdateWebhookRequest {
            id: webhook.id.clone(),
            data_version: Some(webhook.data_version.clone()),
            changes: Some(changes),
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
        };
        Ok(self.webhooks.clone().update_webhook(user.call(request)).await?.into_inner())
    }

    async fn webhooks(&self, user: &TestUser) -> Result<Vec<Webhook>, Status> {
        let request = ListWebhooksRequest::default();
        let batches = self.webhooks.clone().list_webhooks(user.call(request)).await?.into_inner();
        let batches: Vec<_> = batches.try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
    }

    pub(crate) async fn delete_webhook(&self, user: &TestUser, id: &str) -> Result<(), Status> {
        let request = DeleteWebhookRequest { id: id.to_owned() };
        self.webhooks.clone().delete_webhook(user.call(request)).await?;
        Ok(())
    }

    /// Lists the actions of the notifications about webhooks, oldest first.
    async fn actions(&self, user: &TestUser) -> Result<Vec<String>, Status> {
        let mut notifications = self.list_of(user, Some("Webhook"), None).await?;
        notifications.reverse();
        Ok(notifications.into_iter().map(|notification| notification.action).collect())
    }
}

pub(crate) fn webhook_to(url: &str) -> WebhookInput {
    WebhookInput { url: url.to_owned(), ..WebhookInput::default() }
}

const URL: &str = "https://ci.example.org/assay";

/// A webhook that no notification matches.
fn unmatched() -> WebhookInput {
    WebhookInput { events: vec!["Client.Nothing.Happens".to_owned()], ..webhook_to(URL) }
}

#[tokio::test]
async fn a_webhook_shows_its_secret_only_when_it_is_set() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let created = world.add_webhook(&user, unmatched()).await?;
    assert!(created.secret.starts_with("whsec_"));
    assert_eq!((created.url.as_str(), created.archived), (URL, false));
    let seen = Webhook { secret: MASK.to_owned(), ..created.clone() };
    assert_eq!(world.webhook(&user, &created.id).await?, seen);
    assert_eq!(world.webhooks(&user).await?, std::slice::from_ref(&seen));

    // A client sends back the whole record, with one change.
    let record = WebhookInput {
        events: vec!["Client.Build.*".into()],
        secret: MASK.into(),
        ..webhook_to(URL)
    };
    let fields = ["Url", "Events", "Secret", "Archived"];
    let changed = world.change(&user, &seen, &fields, record).await?;
    assert_eq!(
        (&changed.events[..], changed.secret.as_str()),
        (&["Client.Build.*".to_owned()][..], MASK)
    );
    let stale = world.change(&user, &seen, &["Archived"], WebhookInput::default()).await;
    assert_eq!(stale.unwrap_err().code(), Code::Aborted);

    let renewed = world.change(&user, &changed, &["Secret"], WebhookInput::default()).await?;
    assert!(renewed.secret.starts_with("whsec_") && renewed.secret != created.secret);
    let archived = WebhookInput { archived: true, ..WebhookInput::default() };
    assert!(world.change(&user, &renewed, &["Archived"], archived).await?.archived);
    world.delete_webhook(&user, &created.id).await?;
    assert_eq!(world.webhook(&user, &created.id).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(world.webhooks(&user).await?, []);
    let actions = ["Created", "Changed", "Changed", "Archived", "Deleted"];
    assert_eq!(world.actions(&user).await?, actions);
    Ok(())
}

#[tokio::test]
async fn webhooks_belong_to_a_customer_and_need_user_management() -> Result<()> {
    let world = World::new().await?;
    let (user, stranger) = (world.manager().await, world.manager().await);
    let created = world.add_webhook(&user, unmatched()).await?;
    let (webhook_id, id) = (created.id.clone(), WebhookId::new().to_string());
    let mut client = world.webhooks.clone();
    let redeliver = RedeliverRequest { webhook_id: webhook_id.clone(), id };
    let deliveries = ListDeliveriesRequest { webhook_id: webhook_id.clone(), ..Default::default() };
    let refused = [
        world.webhook(&stranger, &created.id).await.unwrap_err(),
        world.change(&stranger, &created, &["Archived"], webhook_to("")).await.unwrap_err(),
        world.delete_webhook(&stranger, &created.id).await.unwrap_err(),
        client.list_deliveries(stranger.call(deliveries)).await.unwrap_err(),
        client.redeliver(stranger.call(redeliver)).await.unwrap_err(),
        client
            .redeliver_failed(stranger.call(RedeliverFailedRequest { webhook_id }))
            .await
            .unwrap_err(),
    ];
    for refused in refused {
        assert_eq!((refused.code(), refused.message()), (Code::NotFound, "no such webhook"));
    }
    assert_eq!(world.webhooks(&stranger).await?, []);

    let reader = world.user_who_may("Read, Write, AccessSecrets").await;
    let refused = [
        world.webhooks(&reader).await.map(drop).unwrap_err(),
        world.add_webhook(&reader, webhook_to(URL)).await.map(drop).unwrap_err(),
        world.webhook(&reader, &created.id).await.map(drop).unwrap_err(),
    ];
    assert!(refused.iter().all(|refused| refused.code() == Code::PermissionDenied));
    Ok(())
}

#[tokio::test]
async fn a_manager_without_read_gets_no_notifications_through_webhooks() -> Result<()> {
    let world = World::new().await?;
    let reader = world.manager().await;
    let webhook = world.add_webhook(&reader, unmatched()).await?;
    let user = world.colleague(&reader, "Write, UserManagement").await;
    let webhook_id = webhook.id.clone();
    let deliveries = ListDeliveriesRequest { webhook_id: webhook_id.clone(), ..Default::default() };
    let attempts =
        ListDeliveryAttemptsRequest { webhook_id: webhook_id.clone(), ..Default::default() };
    let test = TestWebhookRequest { id: webhook_id.clone() };
    let id = WebhookId::new().to_string();
    let redeliver = RedeliverRequest { webhook_id: webhook_id.clone(), id };
    let redeliver_failed = RedeliverFailedRequest { webhook_id };
    let mut client = world.webhooks.clone();
    let results = [
        world.add_webhook(&user, unmatched()).await.map(drop),
        world.change(&user, &webhook, &["Url"], webhook_to(URL)).await.map(drop),
        client.list_deliveries(user.call(deliveries)).await.map(drop),
        client.list_delivery_attempts(user.call(attempts)).await.map(drop),
        client.test_webhook(user.call(test)).await.map(drop),
        client.redeliver(user.call(redeliver)).await.map(drop),
        client.redeliver_failed(user.call(redeliver_failed)).await.map(drop),
    ];
    for result in results {
        assert_eq!(result.unwrap_err().code(), Code::PermissionDenied);
    }
    assert_eq!(world.webhooks(&user).await?.len(), 1);
    world.delete_webhook(&user, &webhook.id).await?;
    Ok(())
}

#[tokio::test]
async fn a_customer_has_at_most_fifty_webhooks() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    for _ in 0..50 {
        world.add_webhook(&user, unmatched()).await?;
    }
    let refused = world.add_webhook(&user, unmatched()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("delete one"), "{}", refused.message());
    world.delete_webhook(&user, &world.webhooks(&user).await?[0].id).await?;
    world.add_webhook(&user, unmatched()).await?;
    Ok(())
}

#[tokio::test]
async fn secrets_are_encrypted_and_reseal_changes_their_key() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let created = world.add_webhook(&user, unmatched()).await?;
    let rotated = world.change(&user, &created, &["Secret"], WebhookInput::default()).await?;
    let stored = async || -> Result<[String; 2]> {
        let stored = "select secret, previous_secret from webhook";
        let (current, previous) = sqlx::query_as(stored).fetch_one(&world.db).await?;
        Ok([current, previous])
    };
    for sealed in stored().await? {
        assert!(sealed.starts_with("1."));
        assert!(!sealed.contains(&created.secret) && !sealed.contains(&rotated.secret));
    }

    let mut seal = world.seal.clone();
    let newer = assay_auth::new_seal_key("2")?;
    let keys = [newer.expose_secret(), seal.encryption_keys.expose_secret()].join(",");
    seal.encryption_keys = keys.into();
    assert_eq!(reseal(&world.database_url, &seal).await?, 1);
    assert_eq!(reseal(&world.database_url, &seal).await?, 0);
    assert!(stored().await?.iter().all(|sealed| sealed.starts_with("2.")));
    Ok(())
}

#[tokio::test]
async fn a_search_finds_rare_deliveries_in_a_long_history() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let webhook = world.add_webhook(&user, unmatched()).await?;
    let rare = || NotificationInput { source: "Build".to_owned(), ..notification() };
    let first = world.create(&user, rare()).await?;
    world.add_history(&user, 25_000).await?;
    let last = world.create(&user, rare()).await?;
    let delivered = "insert into webhook_delivery
                         (webhook_id, notification_id, next_attempt_at, delivered_at)
                     select $1::uuid, id, null, now() from notification where customer_id = $2";
    let delivered = sqlx::query(delivered).bind(&webhook.id).bind(user.customer);
    delivered.execute(&world.db).await?;

    for status in [None, Some(DeliveryStatus::Delivered)] {
        let (mut found, mut cursor) = (Vec::new(), None);
        for _ in 0..2 {
            let page = Page { limit: Some(1), q: Some("build".to_owned()), cursor: cursor.take() };
            let (webhook_id, status) = (webhook.id.clone(), status.map(Into::into));
            let request = ListDeliveriesRequest { webhook_id, status, page: Some(page) };
            let batches = world.webhooks.clone().list_deliveries(user.call(request)).await?;
            let batches: Vec<_> = batches.into_inner().try_collect().await?;
            cursor = batches.iter().find_map(|batch| batch.next_cursor.clone());
            let page = batches.into_iter().flat_map(|batch| batch.parse().unwrap());
            found.extend(page.map(|delivery| delivery.id));
        }
        assert_eq!((&found[..], cursor), (&[last.id.clone(), first.id.clone()][..], None));
    }
    Ok(())
}
