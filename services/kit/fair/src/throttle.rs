//! Pacing of background work, so that it does not delay requests.

use std::{ops::RangeInclusive, time::Duration};

use tokio::time::sleep;

/// Target duration of a transaction, which holds locks until it ends.
const TARGET: Duration = Duration::from_millis(40);

/// Maximum pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Sleeps for as long as a part of background work took, at most 100 ms.
pub async fn rest(took: Duration) {
    sleep(pause_after(took)).await;
}

/// Returns the duration of a [`rest`] after a part of background work.
pub fn pause_after(took: Duration) -> Duration {
    took.min(LONGEST_PAUSE)
}

/// Adapts the number of rows that a transaction of background work changes to the time that the
/// previous ones took.
#[derive(Debug)]
pub struct Throttle {
    rows: i64,
    bounds: RangeInclusive<i64>,
}

impl Throttle {
    /// Starts with a small batch. Batches stay within these bounds.
    pub fn within(bounds: RangeInclusive<i64>) -> Self {
        Self { rows: (bounds.start() * 5).min(*bounds.end()), bounds }
    }

    /// Returns the number of rows for the next transaction.
    pub fn batch_size(&self) -> i64 {
        self.rows
    }

    /// Adapts the batch size to the duration of a transaction, then [rests](rest).
    pub async fn pause(&mut self, took: Duration) {
        self.adapt(took);
        rest(took).await;
    }

    fn adapt(&mut self, took: Duration) {
        if took > TARGET {
            self.rows = (self.rows / 2).max(*self.bounds.start());
        } else if took < TARGET / 2 {
            self.rows = (self.rows * 2).min(*self.bounds.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_transactions_shrink_the_batch_and_fast_ones_grow_it() {
        let mut throttle = Throttle::within(20..=1000);
        for _ in 0..20 {
            throttle.adapt(TARGET * 3);
        }
        assert_eq!(throttle.batch_size(), 20);
        for _ in 0..20 {
            throttle.adapt(Duration::from_millis(1));
        }
        assert_eq!(throttle.batch_size(), 1000);
        throttle.adapt(TARGET);
        assert_eq!(throttle.batch_size(), 1000);
    }
}
