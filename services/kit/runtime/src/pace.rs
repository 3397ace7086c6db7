//! The pace of work in the background that must not keep others from theirs.

use std::{ops::RangeInclusive, time::Duration};

use tokio::time::sleep;

/// Duration that a transaction should not exceed, since it holds locks.
const GOAL: Duration = Duration::from_millis(40);

/// Maximum rest between two transactions.
const REST: Duration = Duration::from_millis(50);

/// Number of rows that a transaction changes, adapted to the time that takes.
#[derive(Debug)]
pub struct Pace {
    rows: i64,
    bounds: RangeInclusive<i64>,
}

impl Pace {
    /// Begins with few rows. There are never fewer or more than within these bounds.
    pub fn within(bounds: RangeInclusive<i64>) -> Self {
        Self { rows: (bounds.start() * 5).min(*bounds.end()), bounds }
    }

    /// Number of rows for the next transaction.
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// Learns from the duration of a transaction, and lets others go first for as long as it took.
    pub async fn learn(&mut self, took: Duration) {
        self.adapt(took);
        sleep(took.min(REST)).await;
    }

    fn adapt(&mut self, took: Duration) {
        if took > GOAL {
            self.rows = (self.rows / 2).max(*self.bounds.start());
        } else if took < GOAL / 2 {
            self.rows = (self.rows * 2).min(*self.bounds.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_transactions_get_fewer_rows_and_fast_ones_more() {
        let mut pace = Pace::within(20..=1000);
        for _ in 0..20 {
            pace.adapt(GOAL * 3);
        }
        assert_eq!(pace.rows(), 20);
        for _ in 0..20 {
            pace.adapt(Duration::from_millis(1));
        }
        assert_eq!(pace.rows(), 1000);
        pace.adapt(GOAL);
        assert_eq!(pace.rows(), 1000);
    }
}
