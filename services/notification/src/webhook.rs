//! `WebhookService`: clients manage webhooks and their deliveries.

pub(crate) mod events;
mod headers;
pub(crate) mod reseal;
mod rules;
pub(crate) mod store;
mod timing;
mod trial;

use std::time::Duration;

use assay_auth::{Caller, Seal};
use assay_database::begin;
use assay_fair::Shares;
use assay_proto::{
    Fault, NotificationId, WebhookId,
    notification::{
        CreateWebhookRequest, DeleteWebhookRequest, Delivery, DeliveryAttempt,
        DeliveryAttemptBatch, DeliveryBatch, DeliveryStatus, GetWebhookRequest,
        ListDeliveriesRequest, ListDeliveryAttemptsRequest, ListWebhooksRequest,
        RedeliverFailedRequest, RedeliverRequest, Redelivery, TestWebhookRequest,
        UpdateWebhookRequest, Webhook, WebhookBatch, WebhookInput, webhook_service_server,
    },
};
use assay_records::{Action, Change};
use assay_rpc::list::{self, Batches};
use sqlx::{PgExecutor, PgPool};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::{
    client::WebhookClient,
    customer, delivery,
    egress::EgressPolicy,
    secret::{self, MASK},
};

/// Maximum number of tests that are sent at once.
const MAX_TESTS: usize = 16;

/// Maximum time that a test waits for others. With that of the test itself, it is shorter than a call may take.
const TEST_WAIT: Duration = Duration::from_secs(3);

pub(crate) struct WebhookService {
    db: PgPool,
    seal: Seal,
    policy: EgressPolicy,
    client: WebhookClient,
    /// The tests that may be sent at once. They hold no share of the service, since receivers may be slow.
    tests: Shares,
}

impl WebhookService {
    pub(crate) fn new(db: PgPool, seal: Seal, policy: EgressPolicy, client: WebhookClient) -> Self {
        Self { db, seal, policy, client, tests: Shares::new(MAX_TESTS) }
    }
}

#[tonic::async_trait]
impl webhook_service_server::WebhookService for WebhookService {
    type ListWebhooksStream = Batches<WebhookBatch>;
    type ListDeliveriesStream = Batches<DeliveryBatch>;
    type ListDeliveryAttemptsStream = Batches<DeliveryAttemptBatch>;

    async fn list_webhooks(
        &self,
        request: Request<ListWebhooksRequest>,
    ) -> Result<Response<Self::ListWebhooksStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let db = self.db.clone();
        list::answer(request.into_inner().page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, &slice).await }
        })
        .await
    }

    async fn get_webhook(
        &self,
        request: Request<GetWebhookRequest>,
    ) -> Result<Response<Webhook>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = WebhookId::from_path(&request.get_ref().id)?;
        Ok(Response::new(store::get(&self.db, customer, id).await?))
    }

    async fn create_webhook(
        &self,
        request: Request<CreateWebhookRequest>,
    ) -> Result<Response<Webhook>, Status> {
        let customer = Caller::of(&request)?.customer;
        let input =
            rules::validate_new(request.into_inner().webhook.unwrap_or_default(), &self.policy)?;
        require_time_zone(&self.db, &input).await?;
        let id = WebhookId::new();
        let sealed = secret::close(&self.seal, id, &input.secret)?;
        let values = headers::merge(&input.headers, &[], true)?;
        let sealed_headers = secret::close_headers(&self.seal, id, &values)?;
        let input = WebhookInput { headers: headers::masked(&values), ..input };

        let mut tx = begin(&self.db).await?;
        customer::lock(&mut tx, customer).await?;
        let webhook =
            store::insert(&mut tx, customer, id, &input, &sealed, sealed_headers.as_deref())
                .await?;
        events::publish(&mut tx, customer, id, Action::Created.name()).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(Webhook { secret: input.secret, ..webhook }))
    }

    async fn update_webhook(
        &self,
        request: Request<UpdateWebhookRequest>,
    ) -> Result<Response<Webhook>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdateWebhookRequest { id, data_version, changes, fields } = request.into_inner();
        let id = WebhookId::from_path(&id)?;
        let change = Change { data_version, changes, fields };

        let mut tx = begin(&self.db).await?;
        let current = store::lock(&mut tx, customer, id).await?;
        let input = change.apply("webhook", &current, &current.data_version)?;
        let input = rules::validate(input, &self.policy)?;
        if input.time_zone != current.time_zone {
            require_time_zone(&mut *tx, &input).await?;
        }
        let is_new = input.secret != MASK;
        let sealed = is_new.then(|| secret::close(&self.seal, id, &input.secret)).transpose()?;
        let headers = self.headers(&mut tx, customer, id, &current, &input).await?;
        let sealed_headers = secret::close_headers(&self.seal, id, &headers)?;
        let input = WebhookInput { headers: headers::masked(&headers), ..input };
        let resets = rules::resets_failures(&current, &input);
        let secrets = (sealed.as_deref(), sealed_headers.as_deref());
        let webhook = store::update(&mut tx, customer, id, &input, secrets, resets).await?;
        let action = Action::of_change(current.archived, webhook.archived);
        events::publish(&mut tx, customer, id, action.name()).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(Webhook { secret: input.secret, ..webhook }))
    }

    async fn delete_webhook(
        &self,
        request: Request<DeleteWebhookRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = WebhookId::from_path(&request.get_ref().id)?;

        let mut tx = begin(&self.db).await?;
        store::delete(&mut tx, customer, id).await?;
        events::publish(&mut tx, customer, id, Action::Deleted.name()).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }

    async fn list_deliveries(
        &self,
        request: Request<ListDeliveriesRequest>,
    ) -> Result<Response<Self::ListDeliveriesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let ListDeliveriesRequest { webhook_id, page, status } = request.into_inner();
        let webhook = WebhookId::from_path(&webhook_id)?;
        let status = status.map(DeliveryStatus::try_from).transpose();
        let status = status.map_err(|_| Fault::invalid("status", "is not a delivery status"))?;
        store::get(&self.db, customer, webhook).await?;
        let db = self.db.clone();
        list::answer(page, move |slice| {
            let db = db.clone();
            async move { delivery::store::list(&db, customer, webhook, status, &slice).await }
        })
        .await
    }

    async fn list_delivery_attempts(
        &self,
        request: Request<ListDeliveryAttemptsRequest>,
    ) -> Result<Response<Self::ListDeliveryAttemptsStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let ListDeliveryAttemptsRequest { webhook_id, page, delivery_id } = request.into_inner();
        let webhook = WebhookId::from_path(&webhook_id)?;
        let of = delivery_id.as_deref().map(|id| NotificationId::from_field("deliveryId", id));
        let of = of.transpose()?;
        store::get(&self.db, customer, webhook).await?;
        let db = self.db.clone();
        list::answer(page, move |slice| {
            let db = db.clone();
            async move { delivery::attempt::list(&db, customer, webhook, of, &slice).await }
        })
        .await
    }

    async fn test_webhook(
        &self,
        request: Request<TestWebhookRequest>,
    ) -> Result<Response<DeliveryAttempt>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = WebhookId::from_path(&request.get_ref().id)?;
        let _turn = self.tests.acquire_within(customer, TEST_WAIT).await?;
        Ok(Response::new(self.test(customer, id).await?))
    }

    async fn redeliver(
        &self,
        request: Request<RedeliverRequest>,
    ) -> Result<Response<Delivery>, Status> {
        let customer = Caller::of(&request)?.customer;
        let RedeliverRequest { webhook_id, id } = request.into_inner();
        let (webhook, id) = (WebhookId::from_path(&webhook_id)?, NotificationId::from_path(&id)?);

        let mut tx = begin(&self.db).await?;
        let current = store::lock(&mut tx, customer, webhook).await?;
        let delivery = delivery::store::requeue(&mut tx, customer, webhook, id).await?;
        require_active(&current)?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(delivery))
    }

    async fn redeliver_failed(
        &self,
        request: Request<RedeliverFailedRequest>,
    ) -> Result<Response<Redelivery>, Status> {
        let customer = Caller::of(&request)?.customer;
        let webhook = WebhookId::from_path(&request.get_ref().webhook_id)?;

        let (mut count, mut after) = (0, Uuid::nil());
        loop {
            let mut tx = begin(&self.db).await?;
            require_active(&store::lock(&mut tx, customer, webhook).await?)?;
            let requeued =
                delivery::store::requeue_failed(&mut tx, customer, webhook, after).await?;
            tx.commit().await.map_err(Fault::from)?;
            // A delivery that has failed again meanwhile is not queued a second time.
            let Some((some, last)) = requeued else { break };
            (count, after) = (count + some, last);
        }
        Ok(Response::new(Redelivery { count }))
    }
}

/// Fails if PostgreSQL does not know the time zone of a webhook.
async fn require_time_zone(db: impl PgExecutor<'_>, input: &WebhookInput) -> Result<(), Fault> {
    if input.time_zone == "UTC" || store::is_time_zone(db, &input.time_zone).await? {
        return Ok(());
    }
    Err(Fault::invalid("TimeZone", "no such time zone; its name is one such as Europe/Berlin"))
}

/// Fails if the webhook is archived: nothing is delivered to it.
fn require_active(webhook: &Webhook) -> Result<(), Fault> {
    if !webhook.archived {
        return Ok(());
    }
    let reason =
        "the webhook is archived and receives no deliveries; set Archived to false".to_owned();
    Err(Fault::Conflict { code: "archived", reason })
}
