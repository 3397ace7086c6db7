//! Days of readers, whose browsers say by how much UTC is ahead.

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};

/// Largest difference between UTC and the time of a place, in minutes.
const FARTHEST: i64 = 14 * 60;

/// Returns the time when a day, such as `2026-12-24`, has ended where UTC is ahead by so many minutes.
/// Without the minutes, it is a day in UTC.
pub(crate) fn end_of_day(day: &str, ahead: Option<&str>) -> Option<DateTime<Utc>> {
    let day = NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()?.succ_opt()?;
    let ahead: i64 = ahead.unwrap_or("0").parse().ok()?;
    let is_possible = (-FARTHEST..=FARTHEST).contains(&ahead);
    is_possible.then(|| day.and_time(NaiveTime::MIN).and_utc() + TimeDelta::minutes(ahead))
}

/// Returns the end of a day that was entered, for the interface, which refuses a text that is not a day.
pub(crate) fn until(day: &str, ahead: Option<&str>) -> String {
    end_of_day(day, ahead).map_or_else(|| day.to_owned(), |end| end.to_rfc3339())
}

/// Returns a day with its time zone, as the interface reads it.
pub(crate) fn zoned_day(day: &str, ahead: Option<&str>) -> String {
    let ahead = ahead.and_then(|ahead| ahead.parse::<i64>().ok());
    match ahead.filter(|ahead| (-FARTHEST..=FARTHEST).contains(ahead)) {
        None | Some(0) => day.to_owned(),
        Some(ahead) => {
            let (sign, minutes) = (if ahead > 0 { '-' } else { '+' }, ahead.abs());
            format!("{day}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_when_it_ends_for_the_reader() {
        for (day, ahead, expected) in [
            ("2026-12-24", None, "2026-12-25T00:00:00Z"),
            ("2026-12-31", Some("480"), "2027-01-01T08:00:00Z"),
            ("2026-12-24", Some("-540"), "2026-12-24T15:00:00Z"),
        ] {
            assert_eq!(end_of_day(day, ahead), Some(expected.parse().unwrap()), "{day}");
        }
        for (day, ahead) in
            [("24.12.2026", None), ("2026-02-30", None), ("2026-12-24", Some("999"))]
        {
            assert_eq!(end_of_day(day, ahead), None, "{day}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_day_is_left_to_the_interface() {
        assert_eq!(until("2026-12-31", Some("480")), "2027-01-01T08:00:00+00:00");
        assert_eq!(until("2026-02-30", None), "2026-02-30");
    }

    #[test]
    fn a_day_has_the_zone_of_the_reader() {
        for (ahead, expected) in [
            (None, "2026-03-01"),
            (Some("0"), "2026-03-01"),
            (Some("480"), "2026-03-01-08:00"),
            (Some("-330"), "2026-03-01+05:30"),
            (Some("x"), "2026-03-01"),
        ] {
            assert_eq!(zoned_day("2026-03-01", ahead), expected);
        }
    }
}
