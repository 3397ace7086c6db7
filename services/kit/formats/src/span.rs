//! The times between which tests and their attempts ran.

use assay_proto::Timestamp;
use chrono::{SubsecRound, TimeDelta};

use crate::{Attempt, Test};

impl Test {
    /// Returns the start and the duration in seconds of an attempt at this test. Tools that do not time attempts time
    /// the test.
    pub fn times_of(&self, attempt: &Attempt) -> (Option<Timestamp>, f64) {
        let is_last = self.attempts.last().is_some_and(|last| std::ptr::eq(last, attempt));
        let start = attempt.start.or(self.start.filter(|_| is_last));
        let seconds =
            if is_last && attempt.seconds == 0.0 { self.seconds } else { attempt.seconds };
        (start, seconds)
    }

    /// Returns the time at which the first attempt began, and that at which the last one ended, as far as they are
    /// known.
    pub fn span(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let begin = self.attempts.first().and_then(|attempt| self.times_of(attempt).0);
        let (start, seconds) =
            self.attempts.last().map(|attempt| self.times_of(attempt)).unwrap_or_default();
        (begin, start.and_then(|start| later(start, seconds)))
    }
}

/// Returns the time that many seconds later. `None` if that is beyond the calendar.
fn later(time: Timestamp, seconds: f64) -> Option<Timestamp> {
    let duration = std::time::Duration::try_from_secs_f64(seconds).ok()?;
    let time = time.0.checked_add_signed(TimeDelta::from_std(duration).ok()?)?;
    Some(Timestamp(time.round_subsecs(6)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_lasts_from_its_first_attempt_to_the_end_of_its_last_one() {
        let time = |text: &str| crate::times::time(&format!("2026-11-28T{text}Z"));
        let attempt = |start, seconds| Attempt { start, seconds, ..Attempt::default() };
        let attempts = vec![attempt(time("10:00:00"), 1.0), attempt(time("10:00:05"), 1.5)];
        let timed = Test { attempts, ..Test::default() };
        assert_eq!(timed.span(), (time("10:00:00"), time("10:00:06.5")));

        let attempts = vec![Attempt::default()];
        let as_a_whole =
            Test { start: time("10:00:00"), seconds: 2.0, attempts, ..Test::default() };
        assert_eq!(as_a_whole.span(), (time("10:00:00"), time("10:00:02")));

        assert_eq!(Test::default().span(), (None, None));
    }
}
