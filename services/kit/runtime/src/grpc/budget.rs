//! When a call is tried again: not often, so that an outage does not become more work than before.

use std::{sync::Arc, time::Duration};

use tower::{
    retry::{
        backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff},
        budget::{Budget, TpsBudget},
    },
    util::rng::HasherRng,
};

/// How often a call may be sent.
pub(super) const ATTEMPTS: usize = 3;

/// Of the calls of the last ten seconds, one in ten may be tried again; and ten a second in any
/// case, for the sake of those who call seldom.
const WINDOW: Duration = Duration::from_secs(10);
const PART: f32 = 0.1;
const AT_LEAST: u32 = 10;

/// How long to wait before, about: others wait as well, and should not all come at once.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// What a channel may still try again.
#[derive(Clone)]
pub(super) struct Retries(Arc<TpsBudget>);

impl Retries {
    pub(super) fn new() -> Self {
        Self(Arc::new(TpsBudget::new(WINDOW, AT_LEAST, PART)))
    }

    /// For a call that may be tried again.
    pub(super) fn begin(&self) -> Session {
        self.0.deposit();
        let pauses = ExponentialBackoffMaker::new(PAUSES.0, PAUSES.1, 0.99, HasherRng::default());
        let pauses = pauses.expect("the pauses are in order").make_backoff();
        Session { budget: self.0.clone(), pauses, left: ATTEMPTS - 1 }
    }
}

/// The tries of one call.
pub(super) struct Session {
    budget: Arc<TpsBudget>,
    pauses: ExponentialBackoff,
    left: usize,
}

impl Session {
    /// Whether there is to be another try. If so, waits until it is time for it.
    pub(super) async fn again(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let granted = self.budget.withdraw();
        let result = if granted { "sent" } else { "over budget" };
        metrics::counter!("rpc_client_retries_total", "result" => result).increment(1);
        if granted {
            self.pauses.next_backoff().await;
        }
        granted
    }
}
