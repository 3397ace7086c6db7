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
        let delay = self.0.max(asked.unwrap_or_default().min(MAX_ASKED));
        self.0 = (self.0 * 2).min(MAX);
        sleep(delay).await;
    }
}
