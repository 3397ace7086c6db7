//! Periods of time that executions were requested in.

use assay_records::Check;
use chrono::{DateTime, Days, FixedOffset, NaiveDate, NaiveTime, Utc};
use uuid::{NoContext, Timestamp, Uuid};

const DAY: &str = "%Y-%m-%d";

/// Maximum difference between the time in an execution's id and that of its request: clocks differ.
const TOLERANCE: Days = Days::new(1);

/// The last valid day. Times in ids have 48 bits, which reach far beyond it.
const LAST: &str = "9998-12-31";

/// A range of times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Period {
    pub(crate) from: Option<DateTime<Utc>>,
    /// The first time after the period.
    pub(crate) until: Option<DateTime<Utc>>,
}

impl Period {
    /// Parses the days `fromDate` and `toDate`, which belong to the period.
    pub(crate) fn of(from: Option<&str>, to: Option<&str>, check: &mut Check) -> Self {
        let from = day("fromDate", from, check).and_then(|(day, zone)| start(day, zone));
        let to = day("toDate", to, check);
        Self { from, until: to.and_then(|(day, zone)| start(day.succ_opt()?, zone)) }
    }

    /// Returns the range of ids that contains those of the executions.
    pub(crate) fn ids(self) -> (Uuid, Uuid) {
        let from = self.from.and_then(|time| first_id(time.checked_sub_days(TOLERANCE)?));
        let until = self.until.and_then(|time| first_id(time.checked_add_days(TOLERANCE)?));
        (from.unwrap_or_default(), until.unwrap_or(Uuid::max()))
    }
}

/// Parses a day as `yyyy-MM-dd`, in UTC or with the difference of its time zone, such as `+02:00`.
/// Rejects other spellings that the parsers accept.
fn day(field: &str, text: Option<&str>, check: &mut Check) -> Option<(NaiveDate, FixedOffset)> {
    let text = text?;
    let parsed = text.split_at_checked(10).and_then(|(day, zone)| {
        let of_day = NaiveDate::parse_from_str(day, DAY).ok();
        let of_day = of_day.filter(|one| day <= LAST && one.format(DAY).to_string() == day)?;
        let of_zone = if zone.is_empty() { "+00:00" } else { zone };
        let of_zone = of_zone.parse::<FixedOffset>().ok();
        Some((of_day, of_zone.filter(|one| zone.is_empty() || one.to_string() == zone)?))
    });
    if parsed.is_none() {
        check.refuse(
            field,
            "must be a day as yyyy-MM-dd, or with its time zone, as 2026-03-01+02:00",
        );
    }
    parsed
}

/// Returns the time when a day starts.
fn start(day: NaiveDate, zone: FixedOffset) -> Option<DateTime<Utc>> {
    let time = day.and_time(NaiveTime::MIN).and_local_timezone(zone).single()?;
    Some(time.to_utc())
}

/// Returns the smallest id of a time. `None` before 1970.
fn first_id(time: DateTime<Utc>) -> Option<Uuid> {
    let seconds = u64::try_from(time.timestamp()).ok()?;
    let time = Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, 0)).as_u128() >> 80;
    Some(Uuid::from_u128(time << 80))
}

#[cfg(test)]
mod tests {
    use assay_proto::Fault;

    use super::*;

    fn period(from: &str, to: &str) -> Result<Period, Fault> {
        let mut check = Check::default();
        let period = Period::of(Some(from), Some(to), &mut check);
        check.done().map(|()| period)
    }

    #[test]
    fn days_have_one_spelling() {
        assert!(period("2026-02-28", "2026-02-28+14:00").is_ok());
        for wrong in [
            "2026-02-28Z",
            "2026-02-28+0200",
            "2026-02-28 02:00",
            "2026-02-28+24:00",
            "",
            "2026-2-28",
            "2026-02-29",
            "28.02.2026",
            "2026-02-28T00:00:00Z",
            "+2026-02-28",
            " 2026-02-28",
            "99999-01-01",
            "9999-12-31",
        ] {
            assert!(period(wrong, "2026-02-28").is_err(), "{wrong:?} was accepted");
            assert!(period("2026-02-28", wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn a_day_has_a_time_zone() {
        let Period { from, until } = period("2026-03-29+01:00", "2026-03-29+02:00").unwrap();
        let expected = ["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"];
        assert_eq!(
            [from, until].map(Option::unwrap),
            expected.map(|time| time.parse::<DateTime<Utc>>().unwrap())
        );
        let days = period("2026-03-29", "2026-03-29").unwrap();
        assert_eq!(days.until.unwrap() - days.from.unwrap(), chrono::TimeDelta::days(1));
    }

    #[test]
    fn the_range_of_ids_contains_the_selected_days() {
        let (from, until) = period("2026-02-28", "2026-02-28").unwrap().ids();
        let id = |time: &str| {
            let seconds = chrono::DateTime::parse_from_rfc3339(time).unwrap().timestamp();
            let seconds = u64::try_from(seconds).unwrap();
            Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, 0))
        };
        for within in ["2026-02-28T00:00:00Z", "2026-02-28T23:59:59Z", "2026-03-01T00:05:00Z"] {
            assert!((from..until).contains(&id(within)), "{within}");
        }
        for without in ["2026-02-26T23:59:59Z", "2026-03-02T00:00:00Z"] {
            assert!(!(from..until).contains(&id(without)), "{without}");
        }
        assert_eq!(Period::default().ids(), (Uuid::nil(), Uuid::max()));
        assert_eq!(period("1960-01-01", "1961-01-01").unwrap().ids().0, Uuid::nil());
    }
}
