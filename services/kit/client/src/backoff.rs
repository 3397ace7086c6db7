//! Delays between attempts to reach Assay.

use std::time::Duration;

use tokio::time::sleep;

use crate::ClientError;

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

/// Attempts at a download or an upload that continues where it broke off. It is given up after a number of attempts in a
/// row that brought no byte.
pub struct Attempts {
    most: u32,
    failed: u32,
    backoff: Backoff,
}

impl Attempts {
    /// Returns at most this number of attempts in a row.
    pub fn new(most: u32) -> Self {
        Self { most, failed: 0, backoff: Backoff::default() }
    }

    /// Waits before the next attempt, and calls `announce` before that. Fails with the failure of the last attempt if a
    /// further one would fail in the same way, or is one too many.
    pub async fn wait_after(
        &mut self,
        failure: ClientError,
        has_progressed: bool,
        announce: impl FnOnce(&ClientError),
    ) -> Result<(), ClientError> {
        if has_progressed {
            (self.failed, self.backoff) = (0, Backoff::default());
        }
        self.failed += 1;
        if failure.is_permanent() || self.failed >= self.most {
            return Err(failure);
        }
        announce(&failure);
        self.backoff.wait_at_least(failure.retry_after()).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    fn rejected(status: StatusCode, code: &str) -> ClientError {
        let (code, detail) = (code.to_owned(), String::new());
        ClientError::Rejected { status, code, detail, retry_after: None }
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_are_counted_since_the_last_progress() {
        let failure = || rejected(StatusCode::SERVICE_UNAVAILABLE, "");
        let mut attempts = Attempts::new(3);
        for (has_progressed, goes_on) in
            [(false, true), (false, true), (true, true), (false, true), (false, false)]
        {
            let mut announced = 0;
            let waited = attempts.wait_after(failure(), has_progressed, |_| announced += 1).await;
            assert_eq!((waited.is_ok(), announced == 1), (goes_on, goes_on));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_another_request_holds_is_tried_again() {
        for (status, code, goes_on) in [
            (StatusCode::CONFLICT, "upload_in_use", true),
            (StatusCode::CONFLICT, "upload_offset_mismatch", true),
            (StatusCode::CONFLICT, "lease_ended", false),
            (StatusCode::NOT_FOUND, "not_found", false),
            (StatusCode::TOO_MANY_REQUESTS, "", true),
        ] {
            let failure = rejected(status, code);
            let waited = Attempts::new(2).wait_after(failure, true, |_| {}).await;
            assert_eq!(waited.is_ok(), goes_on, "{code}");
        }
    }

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
