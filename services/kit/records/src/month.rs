//! Months, as clients write them.

use std::fmt::{self, Display};

use crate::Check;

/// A month of a year, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    year: i32,
    /// From 1.
    number: i32,
}

impl Month {
    /// Parses a month as `yyyy-MM`.
    pub fn parse(text: &str) -> Option<Self> {
        let (year, number) = text.split_once('-')?;
        let digits = |text: &str, count| {
            let fits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
            fits.then(|| text.parse::<i32>().ok()).flatten()
        };
        let month = Self { year: digits(year, 4)?, number: digits(number, 2)? };
        ((1..=12).contains(&month.number) && month.year > 0).then_some(month)
    }

    /// Returns the first day, as `yyyy-MM-dd`.
    pub fn first_day(self) -> String {
        format!("{self}-01")
    }

    /// Returns the number of months from this one to a later one, both included. 0 or less if the other
    /// one is earlier.
    pub fn count_to(self, last: Self) -> i32 {
        (last.year - self.year) * 12 + last.number - self.number + 1
    }
}

impl Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.number)
    }
}

impl Check {
    /// Parses a month, if there is one.
    pub fn month(&mut self, field: &str, text: Option<&str>) -> Option<Month> {
        let text = text?;
        let month = Month::parse(text);
        if month.is_none() {
            self.refuse(field, "must be a month as yyyy-MM, such as 2026-11");
        }
        month
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_have_one_spelling() {
        let month = Month::parse("2026-11").unwrap();
        assert_eq!((month.to_string(), month.first_day()), ("2026-11".into(), "2026-11-01".into()));
        for wrong in ["", "2026", "2026-00", "2026-13", "2026-1", "26-01", "2026-11-01", "+026-01"]
        {
            assert_eq!(Month::parse(wrong), None, "{wrong:?} was accepted");
        }
    }

    #[test]
    fn months_are_counted_across_years() {
        let count = |first: &str, last: &str| {
            Month::parse(first).unwrap().count_to(Month::parse(last).unwrap())
        };
        assert_eq!([count("2026-11", "2026-11"), count("2025-12", "2026-01")], [1, 2]);
        assert_eq!([count("2026-01", "2027-12"), count("2026-02", "2026-01")], [24, 0]);
    }
}
