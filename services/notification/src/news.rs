//! Who watches learns at once what was added, on whichever replica: the relay publishes every
//! notification, so who listens there knows that there is something to read.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use assay_proto::{
    CustomerId, Fault,
    notification::{Notification, WatchedNotification},
};
use assay_runtime::{Place, Runtime, Shares, Wakeups, nats::hear};
use async_nats::Client;
use futures::{Stream, stream};
use sqlx::PgPool;
use tokio::sync::Notify;

use crate::{
    PUBLISHED, deletion,
    notification::store::{self, Filter},
};

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
            let customer = message.subject.split('.').nth(2).map(CustomerId::from_path);
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
    /// The notifications after a position, and those that are added, until the program stops or the
    /// customer is deleted.
    pub(crate) fn from(
        self,
        db: PgPool,
        shares: Shares,
        filter: Filter,
        after: i64,
    ) -> impl Stream<Item = Result<WatchedNotification, Fault>> + Send {
        let source = Source { customer: self.customer, db, shares, filter };
        let start = (self.place, source, AtomicI64::new(after), VecDeque::new());
        stream::try_unfold(start, |(place, source, after, mut read)| async move {
            if read.is_empty() {
                read = place.look(None, || source.look(&after)).await?.unwrap_or_default();
            }
            let Some((position, notification)) = read.pop_front() else { return Ok(None) };
            let notification = Some(notification);
            let watched = WatchedNotification { position, notification };
            Ok(Some((watched, (place, source, after, read))))
        })
    }
}

/// Where what is watched comes from.
struct Source {
    customer: CustomerId,
    db: PgPool,
    shares: Shares,
    filter: Filter,
}

impl Source {
    /// Looks for notifications after a position, and moves it on to the last one that was examined.
    /// None if there is nothing yet; nothing at all if there will never be anything.
    async fn look(
        &self,
        after: &AtomicI64,
    ) -> Result<Option<VecDeque<(i64, Notification)>>, Fault> {
        loop {
            let _share = self.shares.acquire(self.customer).await?;
            if deletion::is_deleted(&self.db, self.customer).await? {
                return Ok(Some(VecDeque::new()));
            }
            let begin = after.load(Ordering::Relaxed);
            let look = store::look_after(&self.db, self.customer, &self.filter, begin).await?;
            after.store(look.last, Ordering::Relaxed);
            if !look.found.is_empty() {
                return Ok(Some(look.found.into()));
            }
            if !look.is_more {
                return Ok(None);
            }
        }
    }
}
