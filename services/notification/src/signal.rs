//! Signals new notifications to the streams that watch them and to the sender of webhooks. Every
//! replica subscribes to the published notifications, so it does not matter which one added them.

use std::sync::Arc;

use assay_events::Subject;
use assay_fair::{Notifier, Waiter};
use assay_proto::{CustomerId, Fault};
use assay_runtime::{Runtime, nats::subscribe};
use async_nats::Client;
use tokio::sync::Notify;

use crate::streams::NOTIFICATIONS;

/// Wakes those that wait for new notifications.
#[derive(Clone)]
pub struct NotificationSignal {
    of_customer: Notifier<CustomerId>,
    of_any: Arc<Notify>,
}

impl NotificationSignal {
    /// Subscribes to the published notifications.
    pub fn subscribe(runtime: &Runtime, nats: Client) -> Self {
        let signal = Self { of_customer: Notifier::new(runtime), of_any: Arc::default() };
        let Self { of_customer, of_any } = signal.clone();
        subscribe(runtime, nats, NOTIFICATIONS.subjects(), move |message| {
            of_any.notify_one();
            if let Some(Subject { customer, .. }) = Subject::parse(&message.subject) {
                of_customer.wake(&customer);
            }
        });
        signal
    }

    /// Waits until any customer has a new notification, or had one since the last call.
    pub(crate) async fn any(&self) {
        self.of_any.notified().await;
    }

    /// Registers a stream that watches the notifications of a customer. Fails if there are too many.
    pub(crate) fn register(&self, customer: CustomerId) -> Result<Waiter, Fault> {
        self.of_customer.register(customer)
    }
}
