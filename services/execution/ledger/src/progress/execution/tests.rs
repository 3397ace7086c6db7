//! How long executions take.

use chrono::{DateTime, TimeDelta};

use super::*;

#[test]
fn an_execution_takes_the_time_between_its_first_and_last_test_unless_that_is_implausible() {
    let at = |seconds| Some(Timestamp(DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)));
    for (start, finish, total, expected) in [
        (at(10), at(70), 5.0, 60.0),
        (at(10), None, 5.0, 5.0),
        (at(70), at(10), 5.0, 5.0),
        (at(0), at(1_000_000_000), 5.0, 1e9),
        (at(0), at(1_000_000_001), 5.0, 5.0),
        (None, None, 3e9, 1e9),
    ] {
        let state = ExecutionState {
            start_date_time: start,
            finish_date_time: finish,
            total_duration_in_sec: total,
            ..ExecutionState::default()
        };
        let seconds = state.duration_in_sec();
        assert!((seconds - expected).abs() < f64::EPSILON, "{seconds}, not {expected}");
    }
}
