//! Streams of the notifications of a customer, as they are added.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicI64, Ordering},
};

use assay_fair::{Share, Shares, Waiter};
use assay_proto::{CustomerId, Fault, notification::WatchedNotification};
use futures::{Stream, stream};
use sqlx::PgPool;

use super::{
    publication,
    store::{self, Positioned},
};
use crate::{customer, filter::Filter};

/// Size of a small part of a stream, in bytes. Every stream may have one in memory.
const SMALL: usize = 16 << 10;

/// Size of a large part, in bytes, and the number of large parts in memory.
const LARGE: usize = 256 << 10;
const LARGE_PARTS: usize = 256;

/// Memory for what streams have read and their clients have not. A stream reads a large part while its customer has
/// room for one, and a small one otherwise. So clients that read slowly make their streams slower, and no more.
#[derive(Clone)]
pub(super) struct Memory(Shares);

impl Default for Memory {
    fn default() -> Self {
        Self(Shares::new(LARGE_PARTS))
    }
}

impl Memory {
    /// Returns the size of the next part, in bytes, and the place of a large one.
    fn part(&self, customer: CustomerId) -> (usize, Option<Share>) {
        let place = self.0.try_acquire(customer).ok();
        (if place.is_some() { LARGE } else { SMALL }, place)
    }
}

/// Notifications that a stream has read.
#[derive(Default)]
struct Part {
    notifications: VecDeque<Positioned>,
    _place: Option<Share>,
}

/// The notifications that a stream returns.
pub(crate) struct Source {
    pub(crate) db: PgPool,
    pub(crate) shares: Shares,
    pub(super) memory: Memory,
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
    let start = (waiter, source, AtomicI64::new(after), Part::default());
    stream::try_unfold(start, |(waiter, source, after, mut part)| async move {
        if part.notifications.is_empty() {
            part = waiter.poll(None, || source.read(&waiter, &after)).await?.unwrap_or_default();
        }
        let Some(next) = part.notifications.pop_front() else { return Ok(None) };
        if part.notifications.is_empty() {
            // Its memory is free while the client does not read.
            part = Part::default();
        }
        let Positioned { position, created_at, notification } = next;
        let event = publication::render(source.customer, &notification, created_at)?;
        let event = String::from_utf8(event).map_err(Fault::internal)?;
        let event_id = notification.id;
        let watched = WatchedNotification { position, event, event_id, is_reset: false };
        Ok(Some((watched, (waiter, source, after, part))))
    })
}

impl Source {
    /// Reads notifications after a position, and advances it to the last one examined. Returns `None` if there
    /// are none yet, and an empty part if the customer is deleted or the program stops, even if a long history is
    /// still to be read.
    async fn read(&self, waiter: &Waiter, after: &AtomicI64) -> Result<Option<Part>, Fault> {
        loop {
            if waiter.is_stopping() {
                return Ok(Some(Part::default()));
            }
            let _share = self.shares.acquire(self.customer).await?;
            if customer::is_deleted(&self.db, self.customer).await? {
                return Ok(Some(Part::default()));
            }
            let begin = after.load(Ordering::Relaxed);
            let (most, place) = self.memory.part(self.customer);
            let scan =
                store::scan_after(&self.db, self.customer, &self.filter, begin, most).await?;
            after.store(scan.last, Ordering::Relaxed);
            if !scan.found.is_empty() {
                let place = place.filter(|_| scan.size > SMALL);
                return Ok(Some(Part { notifications: scan.found.into(), _place: place }));
            }
            if !scan.is_more {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_streams_of_a_customer_are_bounded_in_bytes_and_leave_room_to_others() {
        let (memory, one, other) = (Memory::default(), CustomerId::new(), CustomerId::new());
        let parts: Vec<_> = (0..1500).map(|_| memory.part(one)).collect();
        let size: usize = parts.iter().map(|(size, _)| size).sum();
        assert!(size < 72 << 20, "{size}");
        assert_eq!((memory.part(one).0, memory.part(other).0), (SMALL, LARGE));
        drop(parts);
        assert_eq!(memory.part(one).0, LARGE);
    }
}
