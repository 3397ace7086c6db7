//! Delays between attempts to reach Assay.

use std::time::Duration;

use tokio::time::sleep;

/// First and maximum delay.
const FIRST: Duration = Duration::from_millis(200);
const MAX: Duration = Duration::from_secs(10);

/// Exponential backoff.
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// Waits, and doubles the delay for the next call.
    pub(crate) async fn wait(&mut self) {
        let delay = self.0;
        self.0 = (delay * 2).min(MAX);
        sleep(delay).await;
    }
}
