//! Durations as people read them.

use crate::record::Outcome;

/// Returns a duration in seconds as text, such as `340 ms`, `8.2 s`, `12 min 04 s` or `3 h 05 min`.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub fn duration(seconds: f64) -> String {
    let millis = (seconds.max(0.0) * 1000.0).round() as i64;
    let whole = (millis + 500) / 1000;
    match millis {
        0 => "0 ms".to_owned(),
        1..1000 => format!("{millis} ms"),
        1000..9_950 => format!("{seconds:.1} s"),
        9_950..59_500 => format!("{whole} s"),
        59_500..3_599_500 => format!("{} min {:02} s", whole / 60, whole % 60),
        3_599_500..172_800_000 => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// Returns how long a test or a step has taken, unless it did not run.
pub fn taken(outcome: Outcome, seconds: f64) -> String {
    if outcome.has_run() { duration(seconds) } else { "–".to_owned() }
}

/// Returns the duration of an execution, unless it is not known.
pub fn duration_if_known(seconds: f64) -> Option<String> {
    (seconds > 0.0).then(|| duration(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_two_units_at_most() {
        for (seconds, expected) in [
            (-1.0, "0 ms"),
            (0.0, "0 ms"),
            (0.0004, "0 ms"),
            (0.34, "340 ms"),
            (0.9996, "1.0 s"),
            (8.19, "8.2 s"),
            (9.96, "10 s"),
            (59.4, "59 s"),
            (59.6, "1 min 00 s"),
            (724.0, "12 min 04 s"),
            (3599.6, "1 h 00 min"),
            (11_100.0, "3 h 05 min"),
            (180_000.0, "2 d 2 h"),
            (f64::NAN, "0 ms"),
        ] {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn nothing_has_taken_no_time_that_did_not_run_or_has_no_times() {
        assert_eq!(
            (taken(Outcome::Passed, 0.0), taken(Outcome::Canceled, 0.0)),
            ("0 ms".into(), "–".into())
        );
        assert_eq!((duration_if_known(0.0), duration_if_known(0.5)), (None, Some("500 ms".into())));
    }
}
