//! Adapts the number of permits to the load of the processors.
//!
//! Work that is begun while all processors are busy delays all work, and that of a customer with
//! few requests most of all: each step of it waits for a processor. So while callers wait anyway, a
//! timer shows how late a step is, and the number of permits follows: fewer at once when a step is
//! late, one more after a while in which none was. While no caller gets a permit at all, those who
//! hold them wait for something else, such as a database that hangs, and processors do not matter.

use std::{
    mem::replace,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{Shares, state::State};

/// Time between two looks at the load.
const INTERVAL: Duration = Duration::from_millis(5);

/// Lateness above which the processors count as overloaded. Timers of an idle program are up to a
/// millisecond late.
const LATE: Duration = Duration::from_millis(2);

/// Number of looks in a row, none of them late, after which there is one permit more.
const CALM: u32 = 100;

/// Number of looks in a row without a grant after which all permits are there again.
const STUCK: u32 = 20;

impl Shares {
    /// Watches the load for as long as callers wait.
    #[expect(clippy::disallowed_methods, reason = "the task ends with the wait, within seconds")]
    pub(super) fn watch_load(&self, state: &mut State) {
        let adapts = state.bounds.start() < state.bounds.end();
        if adapts && !replace(&mut state.load.is_watched, true) {
            tokio::spawn(watch(Arc::downgrade(&self.0)));
        }
    }

    /// Changes the number of permits after a look. Returns whether to look again.
    fn adapt(&self, late: Duration) -> bool {
        let mut state = self.state();
        let grants = state.clock;
        let is_stuck = grants == replace(&mut state.load.grants, grants);
        state.load.stuck = if is_stuck { state.load.stuck + 1 } else { 0 };
        if state.load.stuck >= STUCK {
            state.total = *state.bounds.end();
        } else if late > LATE {
            state.load.calm = 0;
            let fewer = state.total - (state.total / 4).max(1);
            state.total = fewer.max(*state.bounds.start());
        } else {
            state.load.calm += 1;
            if state.load.calm >= CALM {
                state.load.calm = 0;
                state.total = (state.total + 1).min(*state.bounds.end());
            }
        }
        let waits = !state.queue.is_empty();
        state.load.is_watched = waits;
        self.serve(state);
        waits
    }
}

async fn watch(shares: Weak<Mutex<State>>) {
    loop {
        let begun = Instant::now();
        sleep(INTERVAL).await;
        let late = begun.elapsed().saturating_sub(INTERVAL);
        let Some(state) = shares.upgrade() else { return };
        if !Shares(state).adapt(late) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::CustomerId;
    use tokio::task::yield_now;

    use super::*;

    /// The number of permits that one customer gets.
    fn granted(shares: &Shares) -> usize {
        let customer = CustomerId::new();
        std::iter::from_fn(|| shares.try_acquire(customer).ok()).collect::<Vec<_>>().len()
    }

    /// Looks that often, with a grant before each look.
    fn busy(shares: &Shares, looks: u32, late: u64) {
        for _ in 0..looks {
            drop(shares.try_acquire(CustomerId::new()));
            shares.adapt(Duration::from_millis(late));
        }
    }

    #[tokio::test]
    async fn overloaded_processors_leave_one_permit_for_each() {
        let shares = Shares::between(2..=16);
        assert_eq!(granted(&shares), 12);
        busy(&shares, 20, 10);
        assert_eq!(granted(&shares), 1);
        drop(shares.try_acquire(CustomerId::new()).unwrap());

        busy(&shares, 14 * CALM, 1);
        assert_eq!(granted(&shares), 12);
    }

    #[tokio::test]
    async fn all_permits_are_there_while_their_holders_wait_for_something_else() {
        let (shares, customer) = (Shares::between(2..=8), CustomerId::new());
        busy(&shares, 20, 10);
        let held = shares.try_acquire(customer).unwrap();
        assert!(shares.try_acquire(customer).is_err());
        for _ in 0..=STUCK {
            shares.adapt(Duration::from_millis(10));
        }
        let more: Vec<_> = (0..5).map(|_| shares.try_acquire(customer).unwrap()).collect();
        assert!(shares.try_acquire(customer).is_err());
        drop((held, more));
    }

    #[tokio::test]
    async fn permits_held_before_the_overload_leave_one_for_each_other_customer() {
        let (shares, first, other) = (Shares::between(2..=8), CustomerId::new(), CustomerId::new());
        let mut held: Vec<_> = (0..6).map(|_| shares.try_acquire(first).unwrap()).collect();
        busy(&shares, 20, 10);
        let one = shares.try_acquire(other).unwrap();
        assert!(shares.try_acquire(other).is_err());
        drop(one);
        held.truncate(1);
        assert!(shares.try_acquire(first).is_err());
    }

    #[tokio::test]
    async fn the_load_is_watched_for_as_long_as_callers_wait() {
        let (shares, customer) = (Shares::between(1..=2), CustomerId::new());
        let held = shares.acquire(customer).await.unwrap();
        assert!(!shares.state().load.is_watched);
        let release = async {
            while !shares.state().load.is_watched {
                yield_now().await;
            }
            drop(held);
        };
        tokio::join!(release, async { drop(shares.acquire(customer).await.unwrap()) });
        while shares.state().load.is_watched {
            yield_now().await;
        }
    }
}
