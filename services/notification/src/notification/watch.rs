//! Streams of the notifications of a customer, as they are added.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicI64, Ordering},
};

use assay_fair::{Shares, Waiter};
use assay_proto::{CustomerId, Fault, notification::WatchedNotification};
use futures::{Stream, stream};
use sqlx::PgPool;

use super::{
    publication,
    store::{self, Positioned},
};
use crate::{customer, filter::Filter};

/// The notifications that a stream returns.
pub(crate) struct Source {
    pub(crate) db: PgPool,
    pub(crate) shares: Shares,
    pub(crate) customer: CustomerId,
    pub(crate) filter: Filter,
}

/// Streams the notifications after a position, then each new one, until the program stops or the
/// customer is deleted.
pub(crate) fn stream(
    waiter: Waiter,
    source: Source,
    after: i64,
) -> impl Stream<Item = Result<WatchedNotification, Fault>> + Send {
    let start = (waiter, source, AtomicI64::new(after), VecDeque::new());
    stream::try_unfold(start, |(waiter, source, after, mut read)| async move {
        if read.is_empty() {
            read = waiter.poll(None, || source.read(&waiter, &after)).await?.unwrap_or_default();
        }
        let Some(Positioned { position, created_at, notification }) = read.pop_front() else {
            return Ok(None);
        };
        let event = publication::render(source.customer, &notification, created_at)?;
        let event = String::from_utf8(event).map_err(Fault::internal)?;
        let event_id = notification.id;
        let watched = WatchedNotification { position, event, event_id, is_reset: false };
        Ok(Some((watched, (waiter, source, after, read))))
    })
}

impl Source {
    /// Reads notifications after a position, and advances it to the last one examined. Returns `None` if there
    /// are none yet, and an empty list if the customer is deleted or the program stops, even if a long history is
    /// still to be read.
    async fn read(
        &self,
        waiter: &Waiter,
        after: &AtomicI64,
    ) -> Result<Option<VecDeque<Positioned>>, Fault> {
        loop {
            if waiter.is_stopping() {
                return Ok(Some(VecDeque::new()));
            }
            let _share = self.shares.acquire(self.customer).await?;
            if customer::is_deleted(&self.db, self.customer).await? {
                return Ok(Some(VecDeque::new()));
            }
            let begin = after.load(Ordering::Relaxed);
            let scan = store::scan_after(&self.db, self.customer, &self.filter, begin).await?;
            after.store(scan.last, Ordering::Relaxed);
            if !scan.found.is_empty() {
                return Ok(Some(scan.found.into()));
            }
            if !scan.is_more {
                return Ok(None);
            }
        }
    }
}
