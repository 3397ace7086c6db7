//! Who watches learns at once what was added, on whichever replica: the relay publishes every
//! notification, so who listens there knows that there is something to read. A message may be missed
//! and NATS may be away; so who watches looks again after a while in any case.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use assay_proto::{CustomerId, Fault, notification::WatchedNotification};
use assay_runtime::Runtime;
use futures::{Stream, StreamExt, stream};
use sqlx::PgPool;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    PUBLISHED,
    notification::store::{self, Filter},
};

/// How long who watches believes that there is nothing new.
const POLL: Duration = Duration::from_secs(5);

/// How many may watch at once.
const WATCHING: usize = 2000;

/// How many notifications are read at once.
const BATCH: i64 = 500;

/// Tells those who watch that there is something new.
#[derive(Clone)]
pub struct News(Arc<Inner>);

struct Inner {
    watching: Mutex<HashMap<CustomerId, Weak<Notify>>>,
    places: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl News {
    /// Listens to what is published.
    pub fn hear(runtime: &Runtime, nats: async_nats::Client) -> Self {
        let this = Self(Arc::new(Inner {
            watching: Mutex::default(),
            places: Arc::new(Semaphore::new(WATCHING)),
            stopping: runtime.stopping(),
        }));
        let (heard, stopping) = (this.clone(), runtime.stopping());
        runtime.spawn("news", async move {
            let mut told = nats.subscribe(PUBLISHED.subjects()).await?;
            // Without a message the connection has ended, which it does with the program.
            while let Some(Some(message)) = stopping.run_until_cancelled(told.next()).await {
                let customer = message.subject.split('.').nth(2).map(CustomerId::named);
                if let Some(Ok(customer)) = customer {
                    heard.wake(customer);
                }
            }
            Ok(())
        });
        this
    }

    fn wake(&self, customer: CustomerId) {
        let watching = self.0.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watching) = watching.get(&customer).and_then(Weak::upgrade) {
            watching.notify_waiters();
        }
    }

    /// A place among those who watch the notifications of a customer.
    pub(crate) fn watch(&self, customer: CustomerId) -> Result<Watch, Fault> {
        let place = self.0.places.clone().try_acquire_owned().map_err(|_| Fault::Busy(POLL))?;
        let mut watching = self.0.watching.lock().unwrap_or_else(PoisonError::into_inner);
        let news = watching.get(&customer).and_then(Weak::upgrade).unwrap_or_else(|| {
            watching.retain(|_, watching| watching.strong_count() > 0);
            let news = Arc::new(Notify::new());
            watching.insert(customer, Arc::downgrade(&news));
            news
        });
        Ok(Watch { customer, news, stopping: self.0.stopping.clone(), _place: place })
    }
}

/// Somebody who watches the notifications of a customer.
pub(crate) struct Watch {
    customer: CustomerId,
    news: Arc<Notify>,
    stopping: CancellationToken,
    _place: OwnedSemaphorePermit,
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
    ) -> Result<VecDeque<(i64, assay_proto::notification::Notification)>, Fault> {
        loop {
            // From before the look on, so that nothing is missed in between.
            let mut news = std::pin::pin!(self.news.notified());
            news.as_mut().enable();
            let found = store::list_after(db, self.customer, filter, after, BATCH).await?;
            if !found.is_empty() {
                return Ok(found.into());
            }
            tokio::select! {
                () = news => {}
                () = sleep(POLL) => {}
                () = self.stopping.cancelled() => return Ok(VecDeque::new()),
            }
        }
    }
}
