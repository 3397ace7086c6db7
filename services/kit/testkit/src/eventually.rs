//! Waiting for a condition.

use std::{future::Future, time::Duration};

use tokio::time::{interval, timeout};

/// Maximum wait for a condition.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Polls `check` until it returns something.
///
/// # Panics
///
/// If it returns nothing within 20 seconds.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut check: impl FnMut() -> F,
) -> T {
    let found = timeout(TIMEOUT, async {
        let mut tick = interval(Duration::from_millis(20));
        loop {
            tick.tick().await;
            if let Some(found) = check().await {
                return found;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("{what}: not within {TIMEOUT:?}"))
}
