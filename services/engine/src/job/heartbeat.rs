//! Heartbeats renew the lease of a job until its test should stop.
//!
//! A lease that is not renewed is lost: another engine gets the work, perhaps in the same exclusive environment or with
//! the same value of a pool. An engine that does not reach Assay cannot learn that. So it counts by its own monotonic
//! clock: Assay has not renewed the lease before the engine has sent the request, and holds the lease for its duration
//! from then on. A test whose lease was not renewed is stopped before that time is over.

use std::{future::pending, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::Interruption;
use crate::{
    api::{Api, is_loss},
    command::GRACE,
};

/// Maximum time that a heartbeat may wait, in seconds.
const LONGEST_WAIT: u16 = 30;

/// Maximum time from a heartbeat that has failed to the next one, in seconds.
const RETRY: u16 = 5;

/// Duration of a lease unless Assay has another setting.
const USUAL: Duration = Duration::from_mins(1);

/// Time before the end of a lease at which its test is stopped: that until SIGKILL, and five seconds for the clocks of
/// Assay's machines and for the pace of this one.
const STOPPING: Duration = Duration::from_secs(GRACE.as_secs() + 5);

/// Renews a lease.
pub(super) struct Heartbeat<'a> {
    pub(super) api: &'a Api,
    pub(super) lease: &'a str,
    /// Interval between heartbeats, in seconds.
    pub(super) interval: u16,
}

impl Heartbeat<'_> {
    /// Renews the lease, which was requested at this time, until its test should stop. Returns the reason.
    pub(super) async fn run(self, requested: Instant) -> Interruption {
        let mut hold = Hold { since: requested, duration: USUAL };
        // The first heartbeat, and those after a failure, do not wait: the time until they are answered is lost.
        let mut interval: u16 = 0;
        loop {
            let sent = Instant::now();
            let renewed = tokio::select! {
                renewed = self.api.renew(self.lease, interval.min(LONGEST_WAIT)) => renewed,
                () = hold.over() => return Interruption::NotRenewed,
            };
            let (pause, next) = match renewed {
                Ok((state, _)) if !state.r#continue => return Interruption::Canceled,
                Ok((_, duration)) => {
                    hold = Hold { since: sent, duration: duration.unwrap_or(USUAL) };
                    (interval, hold.interval(self.interval))
                }
                Err(error) if is_loss(&error) => return Interruption::LeaseLost,
                Err(error) => {
                    tracing::warn!(lease.id = self.lease, %error, "cannot renew the lease; will retry");
                    (self.interval.min(RETRY), 0)
                }
            };
            // A heartbeat that has not waited is followed by a pause.
            tokio::select! {
                () = sleep_until(sent + Duration::from_secs(pause.into())) => {}
                () = hold.over() => return Interruption::NotRenewed,
            }
            interval = next;
        }
    }
}

/// A lease, as far as the engine knows.
#[derive(Clone, Copy)]
struct Hold {
    /// Time at which the last request that has renewed it was sent.
    since: Instant,
    duration: Duration,
}

impl Hold {
    /// Returns when the test has to be stopped. None if the time to stop it is most of the duration.
    fn end(self) -> Option<Instant> {
        if self.duration < 2 * STOPPING {
            return None;
        }
        self.since.checked_add(self.duration.saturating_sub(STOPPING))
    }

    /// Waits until the test has to be stopped.
    async fn over(self) {
        match self.end() {
            Some(end) => sleep_until(end).await,
            None => pending().await,
        }
    }

    /// Returns the interval between heartbeats, in seconds, that leaves time for another one if one is not answered.
    fn interval(self, configured: u16) -> u16 {
        let longest = u16::try_from(self.duration.as_secs() / 4).unwrap_or(u16::MAX);
        configured.min(longest.max(1))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::Config;

    #[tokio::test(start_paused = true)]
    async fn a_test_is_stopped_before_a_lease_that_cannot_be_renewed_is_lost() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let api = Api::new(&Config::of(&["--url", &url, "--", "true"]).unwrap()).unwrap();
        let requested = Instant::now();
        let heartbeat = Heartbeat { api: &api, lease: "lease", interval: 15 };
        assert_eq!(heartbeat.run(requested).await, Interruption::NotRenewed);
        let took = requested.elapsed();
        assert!(took > USUAL / 2 && took + GRACE < USUAL, "{took:?}");
    }

    #[test]
    fn a_heartbeat_that_is_not_answered_is_followed_by_another_before_the_test_is_stopped() {
        let since = Instant::now();
        for (duration, configured, interval, stops_after) in [
            (60, 15, 15, Some(50)),
            (60, 30, 15, Some(50)),
            (60, 1, 1, Some(50)),
            (3600, 600, 600, Some(3590)),
            (3600, 1000, 900, Some(3590)),
            (20, 15, 5, Some(10)),
            (19, 15, 4, None),
            (1, 15, 1, None),
        ] {
            let hold = Hold { since, duration: Duration::from_secs(duration) };
            assert_eq!(hold.interval(configured), interval, "{duration} s");
            let end = hold.end().map(|end| end.duration_since(since).as_secs());
            assert_eq!(end, stops_after, "{duration} s");
        }
    }
}
