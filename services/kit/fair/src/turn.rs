//! Permits of work that waits for its client in between, such as an upload.

use std::time::Duration;

use assay_proto::{CustomerId, Fault};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Share, Shares};

/// Maximum wait for a permit. It is longer than the time after which slow work gives one back.
const PATIENCE: Duration = Duration::from_mins(1);

/// Maximum number of turns of a customer that wait when another one would begin. Each keeps what has arrived of its
/// client on its way, of up to a few mebibytes.
const MOST_WAITING: usize = 50;

/// A permit that long work takes and gives back in turns. So customers whose clients are slow do not keep other
/// customers waiting, however many they are.
#[derive(Debug)]
pub struct Turn {
    shares: Shares,
    customer: CustomerId,
    /// The permit, and since when it is held.
    share: Option<(Share, Instant)>,
    /// Cancelled when nobody waits for the work any more.
    abandoned: CancellationToken,
    has_begun: bool,
}

impl Turn {
    /// Returns a turn that has not begun.
    pub fn new(shares: &Shares, customer: CustomerId) -> Self {
        let abandoned = CancellationToken::new();
        Self { shares: shares.clone(), customer, share: None, abandoned, has_begun: false }
    }

    /// Returns a turn whose wait for a permit ends when the token is cancelled, as nobody waits for the work any more.
    #[must_use]
    pub fn until(self, abandoned: CancellationToken) -> Self {
        Self { abandoned, ..self }
    }

    /// Acquires the permit unless it is held. Fails with [`Fault::Busy`] after a minute, or at once if work that has not
    /// begun finds too much of its customer waiting.
    pub async fn begin(&mut self) -> Result<(), Fault> {
        if self.share.is_none() {
            if !self.has_begun && self.shares.waiting(self.customer) >= MOST_WAITING {
                return Err(Fault::Busy(PATIENCE));
            }
            let share = self.shares.acquire_within(self.customer, PATIENCE);
            let share = self.abandoned.run_until_cancelled(share).await;
            let gone = || Fault::Malformed("the client has gone".to_owned());
            self.share = Some((share.ok_or_else(gone)??, Instant::now()));
            self.has_begun = true;
        }
        Ok(())
    }

    /// Gives the permit back if it was held for this time and [is wanted](Shares::is_wanted_from). Returns whether it
    /// did.
    pub fn end_after(&mut self, time: Duration) -> bool {
        let was_held = self.share.as_ref().is_some_and(|(_, since)| since.elapsed() >= time);
        let is_over = was_held && self.shares.is_wanted_from(self.customer);
        if is_over {
            self.share = None;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join};

    use super::*;

    #[tokio::test]
    async fn slow_work_of_two_customers_gives_a_permit_to_a_third_one() {
        let shares = Shares::new(4);
        let (first, second, third) = (CustomerId::new(), CustomerId::new(), CustomerId::new());
        let mut turns = [first, first, first, second].map(|customer| Turn::new(&shares, customer));
        for turn in &mut turns {
            turn.begin().await.unwrap();
        }
        assert!(!turns.iter_mut().any(|turn| turn.end_after(Duration::ZERO)), "nobody waits");

        let mut latecomer = Turn::new(&shares, third);
        let mut begun = Box::pin(latecomer.begin());
        assert!(begun.as_mut().now_or_never().is_none());
        assert!(!turns[0].end_after(Duration::from_hours(1)), "the turn has just begun");
        let mut ended = 0;
        for turn in &mut turns {
            ended += usize::from(turn.end_after(Duration::ZERO));
        }
        assert_eq!(ended, 1, "one permit is enough for one that waits");
        begun.await.unwrap();
    }

    #[tokio::test]
    async fn a_customer_does_not_wait_with_more_work_than_fits_into_memory() {
        let shares = Shares::new(4);
        let (busy, other) = (CustomerId::new(), CustomerId::new());
        let mut turns: Vec<_> = (0..MOST_WAITING + 4).map(|_| Turn::new(&shares, busy)).collect();
        for turn in &mut turns[..3] {
            turn.begin().await.unwrap();
        }
        let (begun, rest) = turns.split_at_mut(3);
        let (waiting, more) = rest.split_at_mut(MOST_WAITING);
        let mut waiting: Vec<_> = waiting.iter_mut().map(|turn| Box::pin(turn.begin())).collect();
        assert!(waiting.iter_mut().all(|turn| turn.as_mut().now_or_never().is_none()));
        assert!(matches!(more[0].begin().now_or_never(), Some(Err(Fault::Busy(_)))));
        let mut latecomer = Turn::new(&shares, other);
        latecomer.begin().await.unwrap();

        let mut next = Turn::new(&shares, CustomerId::new());
        let mut next = Box::pin(next.begin());
        assert!(next.as_mut().now_or_never().is_none());
        assert!(begun[0].end_after(Duration::ZERO), "another customer waits");
        next.await.unwrap();
        let again = begun[0].begin().now_or_never();
        assert!(again.is_none(), "work that has begun waits for its next turn");
    }

    #[tokio::test]
    async fn work_whose_client_has_gone_does_not_wait() {
        let shares = Shares::new(1);
        let mut first = Turn::new(&shares, CustomerId::new());
        first.begin().await.unwrap();
        let gone = CancellationToken::new();
        let mut second = Turn::new(&shares, CustomerId::new()).until(gone.clone());
        let mut begun = Box::pin(second.begin());
        assert!(begun.as_mut().now_or_never().is_none());
        gone.cancel();
        assert!(matches!(begun.now_or_never(), Some(Err(Fault::Malformed(_)))));
        assert!(!first.end_after(Duration::ZERO), "nobody waits any more");
    }

    #[tokio::test]
    async fn a_permit_is_not_given_to_a_customer_that_holds_as_many_or_has_gone() {
        let shares = Shares::new(4);
        let (first, second) = (CustomerId::new(), CustomerId::new());
        let mut turns = [first, first, second, second].map(|customer| Turn::new(&shares, customer));
        for turn in &mut turns {
            turn.begin().await.unwrap();
        }
        let (mut more, mut other) = (Turn::new(&shares, first), Turn::new(&shares, second));
        let mut waiting = Box::pin(join(more.begin(), other.begin()));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(!turns.iter_mut().any(|turn| turn.end_after(Duration::ZERO)));
        let mut gone = Turn::new(&shares, CustomerId::new());
        assert!(gone.begin().now_or_never().is_none());
        assert!(!turns.iter_mut().any(|turn| turn.end_after(Duration::ZERO)));
    }
}
