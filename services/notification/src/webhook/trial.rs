//! Tests of webhooks, and the secrets that they and updates read.

use std::time::Duration;

use assay_auth::actor;
use assay_database::begin;
use assay_proto::{
    CustomerId, Fault, NotificationId, NotificationOrigin, WebhookId,
    notification::{DeliveryAttempt, Notification, Webhook, WebhookHeader, WebhookInput},
};
use sqlx::PgTransaction;

use super::{
    WebhookService, headers,
    store::{self, Route},
};
use crate::{
    delivery::attempt::{self, Attempt},
    format,
    message::Messages,
    notification::rules::NO_STATE,
    secret,
};

/// Maximum time until a test is answered: shorter than for a delivery, because a client waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

impl WebhookService {
    /// Sends a test, logs the attempt and returns it. The test is not a notification, and does not count
    /// for the health of the receiver.
    pub(super) async fn test(
        &self,
        customer: CustomerId,
        id: WebhookId,
    ) -> Result<DeliveryAttempt, Fault> {
        let Route { url, format, sealed, now } = store::route(&self.db, customer, id).await?;
        let messages = Messages::open(&self.seal, id, &sealed)?;
        let test = notification(customer, id);
        let body = format::single(format, customer, (&test, now))?;
        let message = messages.message(&test.id, now.0.timestamp(), body)?;
        let outcome = self.client.send(customer, &url, message, PATIENCE).await;

        let mut tx = begin(&self.db).await?;
        store::lock(&mut tx, customer, id).await?;
        let attempt = Attempt { deliveries: Vec::new(), outcome };
        let logged = attempt::log(&mut tx, customer, id, &[attempt]).await?.pop().flatten();
        let logged = logged.ok_or_else(|| Fault::internal("an attempt was not logged"))?;
        let entry = attempt::get(&mut *tx, customer, id, logged).await?;
        tx.commit().await?;
        Ok(entry)
    }

    /// Returns the headers of an updated webhook with their values.
    pub(super) async fn headers(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        id: WebhookId,
        current: &Webhook,
        input: &WebhookInput,
    ) -> Result<Vec<WebhookHeader>, Fault> {
        let Route { sealed, .. } = store::route(&mut **tx, customer, id).await?;
        let stored = secret::open_headers(&self.seal, id, sealed.headers.as_deref())?;
        headers::merge(&input.headers, &stored, headers::is_same_origin(&current.url, &input.url))
    }
}

/// The notification that a test carries. It has an id of its own.
fn notification(customer: CustomerId, webhook: WebhookId) -> Notification {
    Notification {
        id: NotificationId::new().to_string(),
        source: "Webhook".to_owned(),
        source_id: webhook.to_string(),
        target: "Customer".to_owned(),
        target_id: Some(customer.to_string()),
        action: "Tested".to_owned(),
        state: NO_STATE.to_owned(),
        data_version: "1".to_owned(),
        origin: NotificationOrigin::Assay.into(),
        path: Some(format!("/api/webhooks/{webhook}")),
        actor: Some(actor::current()),
        ..Notification::default()
    }
}
