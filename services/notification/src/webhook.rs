//! `WebhookService`: clients manage webhooks and their deliveries.

pub(crate) mod events;
pub(crate) mod reseal;
mod rules;
pub(crate) mod secret;
pub(crate) mod store;

use assay_auth::{Caller, Seal};
use assay_database::begin;
use assay_proto::{
    Fault, NotificationId, WebhookId,
    notification::{
        CreateWebhookRequest, DeleteWebhookRequest, Delivery, DeliveryBatch, DeliveryStatus,
        GetWebhookRequest, ListDeliveriesRequest, ListWebhooksRequest, RedeliverFailedRequest,
        RedeliverRequest, Redelivery, UpdateWebhookRequest, Webhook, WebhookBatch,
        webhook_service_server,
    },
};
use assay_records::{Action, Change};
use assay_rpc::list::{self, Batches};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use self::rules::MASK;
use crate::{customer, delivery, egress::EgressPolicy};

pub(crate) struct WebhookService {
    pub(crate) db: PgPool,
    pub(crate) seal: Seal,
    pub(crate) policy: EgressPolicy,
}

#[tonic::async_trait]
impl webhook_service_server::WebhookService for WebhookService {
    type ListWebhooksStream = Batches<WebhookBatch>;
    type ListDeliveriesStream = Batches<DeliveryBatch>;

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
        let id = WebhookId::new();
        let sealed = secret::close(&self.seal, id, &input.secret)?;

        let mut tx = begin(&self.db).await?;
        customer::lock(&mut tx, customer).await?;
        let webhook = store::insert(&mut tx, customer, id, &input, &sealed).await?;
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
        let is_new = input.secret != MASK;
        let sealed = is_new.then(|| secret::close(&self.seal, id, &input.secret)).transpose()?;
        let resets = rules::resets_failures(&current, &input);
        let webhook =
            store::update(&mut tx, customer, id, &input, sealed.as_deref(), resets).await?;
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

        let mut tx = begin(&self.db).await?;
        require_active(&store::lock(&mut tx, customer, webhook).await?)?;
        let count = delivery::store::requeue_failed(&mut tx, customer, webhook).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(Redelivery { count }))
    }
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
