//! Waiting for what happens in its own time.

use std::{future::Future, time::Duration};

use tokio::time::{interval, timeout};

/// How long anything in a test may take to come about.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks again and again until `look` finds something, and fails if that takes too long.
///
/// # Panics
///
/// If there is nothing to be found in twenty seconds.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let found = timeout(PATIENCE, async {
        let mut tick = interval(Duration::from_millis(20));
        loop {
            tick.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}
