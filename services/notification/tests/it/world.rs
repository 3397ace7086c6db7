//! A running notification service with NATS, and other services that publish events.

use std::time::Duration;

use anyhow::Result;
use assay_auth::{SealConfig, guard, new_seal_key};
use assay_database::{Database, DatabaseConfig};
use assay_events::{Event, Nats, NatsConfig, Relay, Stream, publish_all, unpublished};
use assay_fair::Shares;
use assay_notification::{
    LinkConfig, NotificationSignal, WebhookConfig, exchange_events, migrations, services,
};
use assay_proto::{
    Batch, DESCRIPTORS, NotificationId, Page,
    notification::{
        CreateNotificationRequest, DeleteNotificationRequest, ListNotificationsRequest,
        Notification, NotificationFilter, NotificationInput,
        notification_service_client::NotificationServiceClient,
        webhook_service_client::WebhookServiceClient,
    },
};
use assay_rpc::grpc::{self, Channel};
use assay_runtime::Runtime;
use assay_servers::DataDir;
use assay_testkit::{TestDatabase, TestKeys, TestUser, eventually, test_dir};
use async_nats::jetstream::{self, message::StreamMessage};
use clap::Parser;
use futures::TryStreamExt;
use secrecy::{ExposeSecret, SecretString};
use sqlx::PgPool;
use tokio::net::TcpListener;
use tonic::Status;

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    database: DatabaseConfig,
    #[command(flatten)]
    nats: NatsConfig,
    #[command(flatten)]
    seal: SealConfig,
    #[command(flatten)]
    webhooks: WebhookConfig,
    #[command(flatten)]
    links: LinkConfig,
}

pub(crate) struct World {
    pub(crate) db: PgPool,
    runtime: Runtime,
    keys: TestKeys,
    pub(crate) client: NotificationServiceClient<Channel>,
    pub(crate) webhooks: WebhookServiceClient<Channel>,
    pub(crate) seal: SealConfig,
    webhook_config: WebhookConfig,
    database: Database,
    pub(crate) database_url: SecretString,
    nats: Nats,
    _server: assay_servers::Nats,
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        Self::allowing("127.0.0.0/8").await
    }

    /// Starts a service whose webhooks may also access these networks.
    pub(crate) async fn allowing(networks: &str) -> Result<Self> {
        let keys = TestKeys::generate();
        let dir = test_dir()?.join(format!("notification-{}", NotificationId::new()));
        let server = assay_servers::Nats::start(&DataDir::lock(dir)?, None).await?;
        let database = TestDatabase::create("notification", &migrations()).await?;
        let encryption_keys = new_seal_key("1")?;
        let options = Options::try_parse_from([
            "test",
            &format!("--webhook-networks={networks}"),
            &format!("--encryption-keys={}", encryption_keys.expose_secret()),
            &format!("--database-url={}", database.url),
            &format!("--nats-url={}", server.url()),
            "--public-url=https://assay.test",
        ])?;

        let runtime = Runtime::new("assay-notification");
        let database = Database::open(&runtime, &options.database, migrations())?;
        let nats = Nats::connect(&options.nats, "test").await?;
        exchange_events(&runtime, &database, &nats, &options.links, &std::sync::Arc::default());
        let signal = NotificationSignal::subscribe(&runtime, nats.client().clone());
        let (seal, webhook_config) = (options.seal, options.webhooks);
        let services = services(&runtime, &database, signal, &seal, webhook_config.clone())?;
        let services = guard(services, keys.verifier(), &Shares::new(8));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = grpc::serve(&runtime, listener, services, DESCRIPTORS)?;
        runtime.ready().await;
        let channel = grpc::connect(&format!("http://{address}"))?;
        Ok(Self {
            db: database.pool().clone(),
            database,
            webhook_config,
            runtime,
            keys,
            client: NotificationServiceClient::new(channel.clone()),
            webhooks: WebhookServiceClient::new(channel),
            seal,
            database_url: options.database.database_url,
            nats,
            _server: server,
        })
    }

    /// Returns a user of a new customer, with the permissions to read and write.
    pub(crate) async fn user(&self) -> TestUser {
        self.user_who_may("Read, Write").await
    }

    pub(crate) async fn user_who_may(&self, permissions: &str) -> TestUser {
        self.keys.user(permissions).await
    }

    /// Returns another user of the customer of a user.
    pub(crate) async fn colleague(&self, user: &TestUser, permissions: &str) -> TestUser {
        self.keys.user_of(user.customer, permissions).await
    }

    pub(crate) async fn create(
        &self,
        user: &TestUser,
        notification: NotificationInput,
    ) -> Result<Notification, Status> {
        let request = CreateNotificationRequest { notification: Some(notification) };
        Ok(self.client.clone().create_notification(user.call(request)).await?.into_inner())
    }

    /// Adds a long history of unrelated notifications.
    pub(crate) async fn add_history(&self, user: &TestUser, count: i32) -> Result<()> {
        sqlx::query(
            "insert into notification
                 (customer_id, id, source, source_id, target, action, state)
             select $1, (lpad(to_hex(floor(extract(epoch from now()) * 1000)::bigint), 12, '0')
                         || lpad(to_hex(number), 8, '0')
                         || right(gen_random_uuid()::text, 12))::uuid,
                    'TestCase', '1', 'Project', 'Changed', 'None'
             from generate_series(1, $2) number",
        )
        .bind(user.customer)
        .bind(count)
        .execute(&self.db)
        .await?;
        Ok(())
    }

    pub(crate) async fn delete(&self, user: &TestUser, id: &str) -> Result<(), Status> {
        let request = DeleteNotificationRequest { id: id.to_owned() };
        self.client.clone().delete_notification(user.call(request)).await?;
        Ok(())
    }

    pub(crate) async fn list(&self, user: &TestUser) -> Result<Vec<Notification>, Status> {
        Ok(self.list_page(user, Page::default()).await?.0)
    }

    /// Lists a page, with the cursor of the next one.
    pub(crate) async fn list_page(
        &self,
        user: &TestUser,
        page: Page,
    ) -> Result<(Vec<Notification>, Option<String>), Status> {
        let request = ListNotificationsRequest { page: Some(page), ..Default::default() };
        let batches = self.client.clone().list_notifications(user.call(request)).await?;
        let batches: Vec<_> = batches.into_inner().try_collect().await?;
        let next = batches.iter().find_map(|batch| batch.next_cursor.clone());
        Ok((batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect(), next))
    }

    /// Lists the notifications of a kind of source and of an action.
    pub(crate) async fn list_of(
        &self,
        user: &TestUser,
        source: Option<&str>,
        action: Option<&str>,
    ) -> Result<Vec<Notification>, Status> {
        let [source, action] = [source, action].map(|text| text.map(ToOwned::to_owned));
        let filter = NotificationFilter { source, action, ..NotificationFilter::default() };
        self.list_filtered(user, filter).await
    }

    /// Lists the notifications that a filter selects.
    pub(crate) async fn list_filtered(
        &self,
        user: &TestUser,
        filter: NotificationFilter,
    ) -> Result<Vec<Notification>, Status> {
        let request = ListNotificationsRequest { page: None, filter: Some(filter) };
        let batches = self.client.clone().list_notifications(user.call(request)).await?;
        let batches: Vec<_> = batches.into_inner().try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
    }

    pub(crate) fn nats_client(&self) -> async_nats::Client {
        self.nats.client().clone()
    }

    /// Starts the background work of a second replica.
    pub(crate) fn second_replica(&self) -> Result<()> {
        let signal = NotificationSignal::subscribe(&self.runtime, self.nats.client().clone());
        services(&self.runtime, &self.database, signal, &self.seal, self.webhook_config.clone())?;
        Ok(())
    }

    /// Stops the service, and waits until the deliveries that have begun are over.
    pub(crate) async fn finish(&self) -> Result<()> {
        self.runtime.stop(Duration::from_secs(30)).await
    }

    pub(crate) fn stop(&self) {
        self.runtime.stopping().cancel();
    }

    /// Waits until the list has this number of notifications, and returns it.
    pub(crate) async fn wait_for(&self, user: &TestUser, count: usize) -> Vec<Notification> {
        eventually("notifications", || async {
            let list = self.list(user).await.expect("a list");
            (list.len() >= count).then_some(list)
        })
        .await
    }

    /// Waits until all notifications are published, and returns their messages.
    pub(crate) async fn published(&self) -> Result<Vec<StreamMessage>> {
        eventually("an empty outbox", || async {
            (unpublished(&self.db).await.expect("a count") == 0).then_some(())
        })
        .await;
        let jetstream = jetstream::new(self.nats.client().clone());
        let Ok(stream) = jetstream.get_stream("ASSAY_NOTIFICATIONS").await else {
            return Ok(Vec::new());
        };
        let mut messages = Vec::new();
        for sequence in 1..=stream.cached_info().state.last_sequence {
            messages.push(stream.get_raw_message(sequence).await?);
        }
        Ok(messages)
    }

    /// Starts another service, which publishes events.
    pub(crate) async fn service(&self, service: &'static str) -> Result<OtherService> {
        let database = TestDatabase::create("notification", &migrations()).await?;
        let db = PgPool::connect_with(database.options).await?;
        let relay = Relay::new(db.clone(), self.nats.clone(), Stream::of(service));
        let stopping = self.runtime.stopping();
        self.runtime.spawn("service", async move {
            relay.run(stopping).await;
            Ok(())
        });
        Ok(OtherService(db))
    }
}

/// Another service, reduced to its outbox.
pub(crate) struct OtherService(PgPool);

impl OtherService {
    pub(crate) async fn publish(&self, event: &Event) -> Result<()> {
        self.publish_all(std::slice::from_ref(event)).await
    }

    pub(crate) async fn publish_all(&self, events: &[Event]) -> Result<()> {
        let mut tx = assay_database::begin(&self.0).await?;
        publish_all(&mut tx, events.iter().cloned().map(Ok)).await?;
        Ok(tx.commit().await?)
    }
}

/// Input of a notification about a test case.
pub(crate) fn notification() -> NotificationInput {
    NotificationInput {
        source: "TestCase".to_owned(),
        source_id: "TC-1".to_owned(),
        target: "TestReport".to_owned(),
        target_id: Some("TR-1".to_owned()),
        action: "Created".to_owned(),
        state: Some("Submitted".to_owned()),
    }
}

/// Input of a notification with an action of its own.
pub(crate) fn numbered(number: usize) -> NotificationInput {
    NotificationInput { action: format!("Done{number}"), ..notification() }
}
