//! How fast records are removed: with half of the time left to others.

use std::time::Duration;

use assay_events::is_behind;
use assay_proto::Fault;
use sqlx::PgPool;
use tokio::time::sleep;

/// How long the transaction of a batch should take.
const TARGET: Duration = Duration::from_millis(50);

/// How many records a batch has at first, at least and at most.
const FIRST: i64 = 100;
const FEWEST: i64 = 20;
const MOST: i64 = 1000;

/// How many events may wait to be published.
const UNPUBLISHED: i64 = 2000;

/// How long to wait for events to be published.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Pace {
    batch: i64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { batch: FIRST }
    }
}

impl Pace {
    /// Waits until the next batch may begin. Returns how many records it may have.
    pub(super) async fn next(&self, db: &PgPool) -> Result<i64, Fault> {
        while is_behind(db, UNPUBLISHED).await? {
            sleep(PAUSE).await;
        }
        Ok(self.batch)
    }

    /// Rests for as long as the transaction of a batch took, and adapts the size of the next one.
    pub(super) async fn rest(&mut self, took: Duration) {
        self.adapt(took);
        sleep(took.min(TARGET * 10)).await;
    }

    fn adapt(&mut self, took: Duration) {
        if took > TARGET {
            self.batch = (self.batch / 2).max(FEWEST);
        } else if took < TARGET / 2 {
            self.batch = (self.batch * 2).min(MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_adapts_to_how_long_it_takes() {
        let mut pace = Pace::default();
        for _ in 0..20 {
            pace.adapt(TARGET * 3);
        }
        assert_eq!(pace.batch, FEWEST);
        for _ in 0..20 {
            pace.adapt(Duration::from_millis(1));
        }
        assert_eq!(pace.batch, MOST);
        pace.adapt(TARGET);
        assert_eq!(pace.batch, MOST);
    }
}
