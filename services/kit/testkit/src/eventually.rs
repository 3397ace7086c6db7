//! Waiting for a condition.

use std::{future::Future, time::Duration};

use tokio::time::{sleep, timeout};

/// Maximum wait for a condition.
const TIMEOUT: Duration = Duration::from_secs(45);

/// First and longest pause between two checks. Frequent checks would slow down the system that is
/// to fulfil the condition.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(160));

/// Polls `check` until it returns something.
///
/// # Panics
///
/// If it returns nothing within 45 seconds.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut check: impl FnMut() -> F,
) -> T {
    let found = timeout(TIMEOUT, async {
        let mut pause = PAUSE.0;
        loop {
            if let Some(found) = check().await {
                return found;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    });
    found.await.unwrap_or_else(|_| panic!("{what}: not within {TIMEOUT:?}"))
}
