//! The time for which engines were able to renew their leases.
//!
//! While the database cannot be reached, or this program does not run, no engine can renew a lease. So leases expire
//! only once the database has answered without a gap for the duration of a lease: by then, an engine that lives has
//! renewed its own. The clock is the monotonic one of this process, since that of the database goes on during an
//! outage.

use std::time::{Duration, Instant};

/// Shortest time without an answer that counts as a gap. A busy machine may take almost as long.
const SHORTEST_GAP: Duration = Duration::from_secs(5);

/// For how long the database has answered without a gap.
#[derive(Debug)]
pub struct Uptime {
    /// Duration of a lease.
    lease: Duration,
    /// Times of the first and the last answer since the last gap. None before the first answer.
    answers: Option<(Instant, Instant)>,
}

impl Uptime {
    /// Begins with the first answer of the database.
    pub fn new(lease: Duration) -> Self {
        Self { lease, answers: None }
    }

    /// Notes that the database has just answered. Returns whether leases may expire.
    pub fn note(&mut self, now: Instant) -> bool {
        // Engines renew a lease several times in its duration, so a shorter gap costs none.
        let gap = (self.lease / 2).max(SHORTEST_GAP);
        let first = match self.answers {
            Some((first, last)) if now.saturating_duration_since(last) <= gap => first,
            _ => now,
        };
        self.answers = Some((first, now));
        now.saturating_duration_since(first) >= self.lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_expire_once_the_database_has_answered_for_the_duration_of_a_lease() {
        let (begun, mut uptime) = (Instant::now(), Uptime::new(Duration::from_mins(1)));
        for (seconds, may_expire) in [
            (0, false),
            (25, false),
            (50, false),
            (60, true),
            (90, true),
            // A gap.
            (121, false),
            (150, false),
            (180, false),
            (181, true),
        ] {
            let now = begun + Duration::from_secs(seconds);
            assert_eq!(uptime.note(now), may_expire, "after {seconds} s");
        }
    }

    #[test]
    fn a_busy_machine_does_not_keep_short_leases_from_expiring() {
        let (begun, mut uptime) = (Instant::now(), Uptime::new(Duration::from_secs(2)));
        assert!(!uptime.note(begun));
        assert!(uptime.note(begun + Duration::from_secs(4)));
        assert!(Uptime::new(Duration::ZERO).note(begun));
    }
}
