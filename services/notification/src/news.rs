//! Who watches learns at once what was added, on whichever replica: the relay publishes every
//! notification, so who listens there knows that there is something to read.

use std::{collections::VecDeque, sync::Arc};

use assay_proto::{
    CustomerId, Fault,
    notification::{Notification, WatchedNotification},
};
use assay_runtime::{Place, Runtime, Wakeups, nats::hear};
use async_nats::Client;
use futures::{Stream, stream};
use sqlx::PgPool;
use tokio::sync::Notify;

use crate::{
    PUBLISHED,
    notification::store::{self, Filter},
};

/// How many notifications are read at once.
const BATCH: i64 = 500;

/// Tells those who watch, and those who send, that there is something new.
#[derive(Clone)]
pub struct News {
    watching: Wakeups<CustomerId>,
    any: Arc<Notify>,
}

impl News {
    /// Listens to what is published.
    pub fn hear(runtime: &Runtime, nats: Client) -> Self {
        let this = Self { watching: Wakeups::new(runtime), any: Arc::default() };
        let Self { watching, any } = this.clone();
        hear(runtime, nats, PUBLISHED.subjects(), move |message| {
            any.notify_one();
            let customer = message.subject.split('.').nth(2).map(CustomerId::named);
            if let Some(Ok(customer)) = customer {
                watching.wake(&customer);
            }
        });
        this
    }

    /// Resolves when there is, or was since the last time, something new for anybody.
    pub(crate) async fn of_anybody(&self) {
        self.any.notified().await;
    }

    /// A place among those who watch the notifications of a customer.
    pub(crate) fn watch(&self, customer: CustomerId) -> Result<Watch, Fault> {
        Ok(Watch { customer, place: self.watching.wait_for(customer)? })
    }
}

/// Somebody who watches the notifications of a customer.
pub(crate) struct Watch {
    customer: CustomerId,
    place: Place,
}

impl Watch {
    /// The notifications after a position, and those that are added, until the program stops.
    pub(crate) fn from(
        self,
        db: PgPool,
        filter: Filter,
        after: i64,
    ) -> impl Stream<Item = Result<WatchedNotification, Fault>> + Send {
        let start = (self, after, VecDeque::new());
        stream::try_unfold(start, move |(watch, mut after, mut read)| {
            let (db, filter) = (db.clone(), filter.clone());
            async move {
                if read.is_empty() {
                    read = watch.next(&db, &filter, after).await?;
                }
                let Some((position, notification)) = read.pop_front() else { return Ok(None) };
                after = position;
                let notification = Some(notification);
                let watched = WatchedNotification { position, notification };
                Ok(Some((watched, (watch, after, read))))
            }
        })
    }

    /// Waits until there is something after a position; there is nothing when the program stops.
    async fn next(
        &self,
        db: &PgPool,
        filter: &Filter,
        after: i64,
    ) -> Result<VecDeque<(i64, Notification)>, Fault> {
        let look = async || {
            let found = store::list_after(db, self.customer, filter, after, BATCH).await?;
            Ok((!found.is_empty()).then(|| found.into()))
        };
        Ok(self.place.look(None, look).await?.unwrap_or_default())
    }
}
