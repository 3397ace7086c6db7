//! Periods of time that executions were requested in.

use assay_records::Check;
use chrono::{Days, NaiveDate, NaiveTime};
use uuid::{NoContext, Timestamp, Uuid};

const DAY: &str = "%Y-%m-%d";

/// Maximum difference between the time in an execution's id and that of its request: clocks differ.
const TOLERANCE: Days = Days::new(1);

/// The last valid day. Times in ids have 48 bits, which reach far beyond it.
const LAST: &str = "9998-12-31";

/// A range of days in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Period {
    pub(crate) from: Option<NaiveDate>,
    /// The first day after the period.
    pub(crate) until: Option<NaiveDate>,
}

impl Period {
    /// Parses the days `fromDate` and `toDate`, which belong to the period.
    pub(crate) fn of(from: Option<&str>, to: Option<&str>, check: &mut Check) -> Self {
        let from = day("fromDate", from, check);
        let to = day("toDate", to, check);
        Self { from, until: to.and_then(|day| day.succ_opt()) }
    }

    /// Returns the range of ids that contains those of the executions.
    pub(crate) fn ids(self) -> (Uuid, Uuid) {
        let from = self.from.and_then(|day| first_id(day.checked_sub_days(TOLERANCE)?));
        let until = self.until.and_then(|day| first_id(day.checked_add_days(TOLERANCE)?));
        (from.unwrap_or(Uuid::nil()), until.unwrap_or(Uuid::max()))
    }
}

/// Parses a day as `yyyy-MM-dd`. Rejects other spellings that the parser accepts.
fn day(field: &str, text: Option<&str>, check: &mut Check) -> Option<NaiveDate> {
    let text = text?;
    let day = NaiveDate::parse_from_str(text, DAY).ok();
    let day = day.filter(|day| text <= LAST && day.format(DAY).to_string() == text);
    if day.is_none() {
        check.refuse(field, "must be a day as yyyy-MM-dd");
    }
    day
}

/// Returns the smallest id of a day. `None` before 1970.
fn first_id(day: NaiveDate) -> Option<Uuid> {
    let seconds = u64::try_from(day.and_time(NaiveTime::MIN).and_utc().timestamp()).ok()?;
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
        assert!(period("2026-02-28", "2026-02-28").is_ok());
        for wrong in [
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
