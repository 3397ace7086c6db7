//! When a call is tried again: not often, so that an outage does not become more work than before.

use std::{sync::Arc, time::Duration};

use metrics::Counter;
use tower::{
    retry::{
        backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff},
        budget::{Budget, TpsBudget},
    },
    util::rng::HasherRng,
};

/// How often a call may be sent.
const ATTEMPTS: usize = 3;

/// Of the calls of the last ten seconds, one in ten may be tried again; and ten a second in any
/// case, for the sake of those who call seldom.
const WINDOW: Duration = Duration::from_secs(10);
const PART: f32 = 0.1;
const AT_LEAST: u32 = 10;

/// How long to wait before, about: others wait as well, and should not all come at once.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// What a channel may still try again.
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
            // What has not happened yet can be seen, too.
            counter.increment(0);
            counter
        };
        let budget = Arc::new(TpsBudget::new(WINDOW, AT_LEAST, PART));
        Self { budget, sent: count("sent"), over_budget: count("over budget") }
    }

    /// For a call that may be tried again.
    pub(super) fn begin(&self) -> Session {
        self.budget.deposit();
        let pauses = ExponentialBackoffMaker::new(PAUSES.0, PAUSES.1, 0.99, HasherRng::default());
        let pauses = pauses.expect("the pauses are in order").make_backoff();
        Session { retries: self.clone(), pauses, left: ATTEMPTS - 1 }
    }
}

/// The tries of one call.
pub(super) struct Session {
    retries: Retries,
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
        if !self.retries.budget.withdraw() {
            self.retries.over_budget.increment(1);
            return false;
        }
        self.pauses.next_backoff().await;
        self.retries.sent.increment(1);
        true
    }
}
