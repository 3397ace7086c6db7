//! Delays between attempts to reach Assay.

use std::time::Duration;

use tokio::time::sleep;

/// First and maximum delay.
const FIRST: Duration = Duration::from_millis(200);
const MAX: Duration = Duration::from_secs(10);

/// Maximum delay that Assay can ask for.
const MAX_ASKED: Duration = Duration::from_mins(1);

/// Exponential backoff.
pub struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// Waits, and doubles the delay for the next call.
    pub async fn wait(&mut self) {
        self.wait_at_least(None).await;
    }

    /// Waits, not less than Assay asked for, and doubles the delay for the next call.
    pub async fn wait_at_least(&mut self, asked: Option<Duration>) {
        sleep(self.next(asked)).await;
    }

    fn next(&mut self, asked: Option<Duration>) -> Duration {
        let delay = self.0.max(asked.unwrap_or_default().min(MAX_ASKED));
        self.0 = (self.0 * 2).min(MAX);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_that_is_asked_for_is_limited() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next(None), FIRST);
        assert_eq!(backoff.next(Some(Duration::from_secs(3))), Duration::from_secs(3));
        assert_eq!(backoff.next(Some(Duration::from_secs(u64::MAX))), MAX_ASKED);
        for _ in 0..100 {
            assert!(backoff.next(None) <= MAX);
        }
    }
}
