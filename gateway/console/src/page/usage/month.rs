//! Months in UTC.

use std::{
    collections::BTreeSet,
    fmt::{self, Display},
};

use chrono::{DateTime, Datelike, Months, NaiveDate, Utc};

/// Number of months before one that are offered with it, and that the interface lists at once.
const LISTED: u32 = 24;

/// A month, by its first day.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Month(NaiveDate);

impl Month {
    /// Returns the month of a time.
    pub(super) fn of(time: DateTime<Utc>) -> Self {
        let day = time.date_naive();
        Self(day.with_day(1).unwrap_or(day))
    }

    /// Parses a month as `yyyy-MM`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        NaiveDate::parse_from_str(&format!("{text}-01"), "%Y-%m-%d").ok().map(Self)
    }

    /// Returns this month and those before it.
    fn and_before(self) -> impl Iterator<Item = Self> {
        (0..LISTED).filter_map(move |count| self.0.checked_sub_months(Months::new(count)).map(Self))
    }

    /// Returns the months that are offered while those from `from` to `to` are shown, the latest first: both, this
    /// month, and those before this month and before `from`. So every month can be reached.
    pub(super) fn offered(self, (from, to): (Self, Self)) -> impl Iterator<Item = Self> {
        let months = self.and_before().chain(from.and_before()).chain([to]);
        months.collect::<BTreeSet<_>>().into_iter().rev()
    }

    pub(super) fn label(self) -> String {
        self.0.format("%B %Y").to_string()
    }
}

impl Display for Month {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format("%Y-%m").fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_follow_each_other() {
        let month = Month::of("2026-01-31T23:59:59Z".parse().unwrap());
        assert_eq!((month.to_string(), month.label()), ("2026-01".into(), "January 2026".into()));
        let before: Vec<_> = month.and_before().map(|month| month.to_string()).collect();
        assert_eq!(
            (before.len(), before[1].as_str(), before[23].as_str()),
            (24, "2025-12", "2024-02")
        );
        assert_eq!(Month::parse("2026-01"), Some(month));
        assert_eq!(Month::parse("January"), None);
    }

    #[test]
    fn months_that_are_shown_and_those_before_them_are_offered() {
        let month = |text: &str| Month::parse(text).unwrap();
        let offered = |from: &str, to: &str| {
            let months = month("2026-01").offered((month(from), month(to)));
            months.map(|month| month.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(offered("2026-01", "2026-01").len(), 24);
        let earlier = offered("2024-02", "2024-03");
        assert_eq!((earlier.len(), earlier[0].as_str()), (47, "2026-01"));
        assert_eq!(earlier.last().map(String::as_str), Some("2022-03"));
        let far = offered("2001-02", "2031-05");
        assert_eq!((far.len(), far[0].as_str(), far[25].as_str()), (49, "2031-05", "2001-02"));
    }
}
