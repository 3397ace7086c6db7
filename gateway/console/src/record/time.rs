//! Points in time.

use chrono::{DateTime, Utc};

pub(crate) type Time = DateTime<Utc>;

/// Returns the seconds from the request of an execution to its end. Results that are uploaded after
/// a test run take less than a second, and no time that matters.
pub(super) fn taken(start: Time, end: Option<Time>) -> Option<f64> {
    let taken = end? - start;
    (taken.num_seconds() > 0).then_some(taken.as_seconds_f64())
}
