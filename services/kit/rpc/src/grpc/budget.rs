//! Retries of calls, limited by a budget so that they do not amplify an outage.

use std::{sync::Arc, time::Duration};

use metrics::Counter;
use tower::{
    retry::{
        backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff},
        budget::{Budget, TpsBudget},
    },
    util::rng::HasherRng,
};

/// Maximum number of attempts of a call.
const MOST_ATTEMPTS: usize = 3;

/// The budget: one retry per ten calls of the last ten seconds, and ten retries per second in any
/// case, for channels with few calls.
const WINDOW: Duration = Duration::from_secs(10);
const PART: f32 = 0.1;
const AT_LEAST: u32 = 10;

/// First and longest backoff, with jitter so that the retries of many callers are spread.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// The retry budget of a channel.
#[derive(Clone)]
pub(super) struct Retries {
    budget: Arc<TpsBudget>,
    sent: Counter,
    over_budget: Counter,
}

impl Retries {
    pub(super) fn new() -> Self {
        let count = |result| {
            let counter = metrics::counter!("rpc_client_retries_total", "result" => result);
            // Exported from 0, so that alerts see the first increase.
            counter.increment(0);
            counter
        };
        let budget = Arc::new(TpsBudget::new(WINDOW, AT_LEAST, PART));
        Self { budget, sent: count("sent"), over_budget: count("over budget") }
    }

    /// Starts a call that may be retried.
    pub(super) fn begin(&self) -> Attempts {
        self.budget.deposit();
        let backoff =
            ExponentialBackoffMaker::new(BACKOFF.0, BACKOFF.1, 0.99, HasherRng::default());
        let backoff = backoff.expect("the bounds are in order").make_backoff();
        Attempts { retries: self.clone(), backoff, left: MOST_ATTEMPTS - 1 }
    }
}

/// The attempts of one call.
pub(super) struct Attempts {
    retries: Retries,
    backoff: ExponentialBackoff,
    left: usize,
}

impl Attempts {
    /// Returns whether to make another attempt, after waiting for the backoff.
    pub(super) async fn again(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        if !self.retries.budget.withdraw() {
            self.retries.over_budget.increment(1);
            return false;
        }
        self.backoff.next_backoff().await;
        self.retries.sent.increment(1);
        true
    }
}
