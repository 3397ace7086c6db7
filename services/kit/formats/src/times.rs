//! Parses times as tools write them: ISO 8601, RFC 2822, the forms of C and Java, and numbers since
//! 1970. Zones have an offset or a name.

use assay_proto::Timestamp;
use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveTime, SubsecRound, TimeZone, Utc};

/// Years of plausible times. Tools write year 1 or 1970 for a time that they do not know.
const YEARS: std::ops::RangeInclusive<i32> = 1971..=2100;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Offsets of named zones, in quarters of an hour. Of those with several meanings, the one that test
/// tools write most often.
const ZONES: [(&str, i32); 41] = [
    ("Z", 0),
    ("UTC", 0),
    ("UT", 0),
    ("GMT", 0),
    ("WET", 0),
    ("WEST", 4),
    ("BST", 4),
    ("CET", 4),
    ("MET", 4),
    ("CEST", 8),
    ("MEST", 8),
    ("EET", 8),
    ("EEST", 12),
    ("SAST", 8),
    ("MSK", 12),
    ("TRT", 12),
    ("PKT", 20),
    ("IST", 22),
    ("ICT", 28),
    ("WIB", 28),
    ("SGT", 32),
    ("HKT", 32),
    ("AWST", 32),
    ("PHT", 32),
    ("JST", 36),
    ("KST", 36),
    ("ACST", 38),
    ("AEST", 40),
    ("AEDT", 44),
    ("NZST", 48),
    ("NZDT", 52),
    ("BRT", -12),
    ("EDT", -16),
    ("EST", -20),
    ("CDT", -20),
    ("CST", -24),
    ("MDT", -24),
    ("MST", -28),
    ("PDT", -28),
    ("PST", -32),
    ("HST", -40),
];

/// Parses a time. Without a zone it is in UTC. A time that is not plausible is unknown.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    // Java and JavaScript add the name of the zone.
    let text = text.split(['[', '(']).next().unwrap_or_default().trim();
    if let Ok(number) = text.parse() {
        return since_1970(Some(number));
    }
    let mut parts = Parts::default();
    for token in text.split_whitespace() {
        parts.add(token.trim_end_matches(','))?;
    }
    parts.time()
}

/// Returns the time of a number since 1970: of seconds, milliseconds, microseconds or nanoseconds.
pub(crate) fn since_1970(number: Option<f64>) -> Option<Timestamp> {
    /// More seconds than this are in the year 5138, and as many milliseconds in 1973.
    const SECONDS: f64 = 1e11;
    let number = number.filter(|number| *number >= 1.0)?;
    let per_second = [1.0, 1e3, 1e6, 1e9];
    let unit = per_second.into_iter().find(|unit| number < SECONDS * unit)?;
    #[expect(clippy::cast_possible_truncation, reason = "it was just checked to fit")]
    let time = DateTime::from_timestamp_micros((number / unit * 1e6).round() as i64)?;
    plausible(time)
}

fn plausible(time: DateTime<Utc>) -> Option<Timestamp> {
    YEARS.contains(&time.year()).then_some(Timestamp(time.trunc_subsecs(6)))
}

/// The parts of a time that were found so far.
#[derive(Default)]
struct Parts {
    date: Option<NaiveDate>,
    clock: Option<NaiveTime>,
    offset: Option<FixedOffset>,
    /// Whether the offset was written as a number, which a name after it does not change.
    is_exact: bool,
    is_afternoon: Option<bool>,
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
}

impl Parts {
    /// Adds a word. Returns `None` if it is not a part of a time.
    fn add(&mut self, word: &str) -> Option<()> {
        let lower = word.to_ascii_lowercase();
        let begins = |name: &str| lower.starts_with(name);
        if let Some((date, rest)) = date(word) {
            self.date = Some(date);
            return if rest.is_empty() { Some(()) } else { self.clock(rest) };
        }
        if word.contains(':') && word.starts_with(|char: char| char.is_ascii_digit()) {
            return self.clock(word);
        }
        match (lower.as_str(), word.parse::<u32>()) {
            ("am", _) => self.is_afternoon = Some(false),
            ("pm", _) => self.is_afternoon = Some(true),
            (_, Ok(year @ 1000..)) => self.year = i32::try_from(year).ok(),
            (_, Ok(day)) if !word.starts_with('+') => self.day = Some(day),
            _ => {
                if let Some(month) = MONTHS.iter().position(|month| begins(month)) {
                    self.month = u32::try_from(month + 1).ok();
                } else if !DAYS.iter().any(|day| begins(day)) {
                    return self.zone(word);
                }
            }
        }
        Some(())
    }

    /// Adds `10:14`, `10:14:04.123` or `101404`, with a zone behind it.
    fn clock(&mut self, text: &str) -> Option<()> {
        let is_part = |char: char| char.is_ascii_digit() || matches!(char, ':' | '.' | ',');
        let end = text.find(|char| !is_part(char)).unwrap_or(text.len());
        let (clock, zone) = text.split_at(end);
        let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
        let parts: Vec<&str> = match clock.len() {
            4 | 6 if !clock.contains(':') => {
                (0..clock.len()).step_by(2).map(|start| &clock[start..start + 2]).collect()
            }
            _ => clock.split(':').collect(),
        };
        let part = |index: usize| parts.get(index).map_or(Some(0), |part| part.parse().ok());
        let (2 | 3) = parts.len() else { return None };
        // A leap second is not worth a time of its own.
        let seconds = part(2)?.min(59);
        let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
        self.clock =
            NaiveTime::from_hms_nano_opt(part(0)?, part(1)?, seconds, digits.parse().ok()?);
        self.clock?;
        if zone.is_empty() { Some(()) } else { self.zone(zone) }
    }

    /// Adds a zone: `Z`, `PST`, `+01`, `-0800`, `GMT+2`.
    fn zone(&mut self, text: &str) -> Option<()> {
        let upper = text.to_ascii_uppercase();
        let number = upper.find(['+', '-']).map(|start| upper.split_at(start));
        let quarters = match number {
            Some(("" | "UTC" | "GMT", offset)) => {
                self.is_exact = true;
                quarters(offset)?
            }
            Some(_) => return None,
            None => ZONES.iter().find(|(name, _)| *name == upper)?.1,
        };
        if self.offset.is_none() || number.is_some() {
            self.offset = FixedOffset::east_opt(quarters * 900);
        }
        self.offset.map(drop)
    }

    fn time(self) -> Option<Timestamp> {
        let date = || NaiveDate::from_ymd_opt(self.year?, self.month?, self.day?);
        let date = self.date.or_else(date)?;
        let clock = match (self.clock?, self.is_afternoon) {
            (clock, None) => clock,
            (clock, Some(is_afternoon)) => twelve_hours(clock, is_afternoon)?,
        };
        let offset = self.offset.or(FixedOffset::east_opt(0))?;
        let time = offset.from_local_datetime(&date.and_time(clock)).single()?;
        plausible(time.to_utc())
    }
}

fn twelve_hours(clock: NaiveTime, is_afternoon: bool) -> Option<NaiveTime> {
    use chrono::Timelike;
    let hour = clock.hour() % 12 + if is_afternoon { 12 } else { 0 };
    clock.with_hour(hour)
}

/// Returns the quarters of an hour of an offset: `+01`, `-0800`, `+05:30`.
fn quarters(text: &str) -> Option<i32> {
    let (sign, digits) = text.split_at(1);
    let digits = digits.replace(':', "");
    let (hours, minutes) = match digits.len() {
        1 | 2 => (digits.parse().ok()?, 0),
        4 => (digits[..2].parse().ok()?, digits[2..].parse::<i32>().ok()?),
        _ => return None,
    };
    let quarters: i32 = hours;
    let quarters = (quarters <= 18).then_some(quarters * 4 + minutes / 15)?;
    Some(if sign == "-" { -quarters } else { quarters })
}

/// Parses a date at the start of a word, and returns the rest behind its `T`.
fn date(word: &str) -> Option<(NaiveDate, &str)> {
    let is_part = |char: char| char.is_ascii_digit() || matches!(char, '-' | '/' | '.');
    let end = word.find(|char| !is_part(char)).unwrap_or(word.len());
    let (text, rest) = word.split_at(end);
    let rest = rest.strip_prefix(['T', 't', '_']).or(rest.is_empty().then_some(rest))?;
    let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
    let number = |text: &str| text.parse::<u32>().ok();
    let (year, month, day) = match parts[..] {
        [year, month, day] if year.len() == 4 => (year, number(month)?, number(day)?),
        [one, other, year] if year.len() == 4 => {
            let (one, other) = (number(one)?, number(other)?);
            let (month, day) = match (one, other) {
                _ if text.contains('.') => (other, one),
                (13.., _) => (other, one),
                (_, 13..) => (one, other),
                // Either number can be the month.
                _ if one != other => return None,
                _ => (one, other),
            };
            (year, month, day)
        }
        [compact] if compact.len() == 8 => {
            (&compact[..4], number(&compact[4..6])?, number(&compact[6..])?)
        }
        _ => return None,
    };
    Some((NaiveDate::from_ymd_opt(year.parse().ok()?, month, day)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_many_forms() {
        let expected = time("2026-11-20T10:14:04Z");
        assert!(expected.is_some());
        for text in [
            "2026-11-20T11:14:04.000+01:00",
            "2026-11-20T10:14:04",
            "2026-11-20 10:14:04+0000",
            "2026-11-20T11:14:04+01",
            "2026-11-20T15:44:04+05:30[Asia/Kolkata]",
            "2026-11-20T15:44:04 IST",
            "2026-11-20 02:14:04 PST -0800",
            "2026-11-20T10:14:04 UTC",
            "20 Nov 2026 10:14:04 GMT",
            "Fri, 20 Nov 2026 10:14:04 GMT",
            "Fri Nov 20 10:14:04 2026",
            "Fri Nov 20 10:14:04 UTC 2026",
            "Fri Nov 20 11:14:04 CET 2026",
            "Fri Nov 20 2026 11:14:04 GMT+0100 (Central European Standard Time)",
            "11/20/2026 10:14:04 AM",
            "20/11/2026 10:14:04",
            "20.11.2026 10:14:04",
            "20261120 10:14:04.000",
            "20261120T101404Z",
            "1795169644",
            "1795169644000",
            "1795169644000000",
        ] {
            assert_eq!(time(text), expected, "{text}");
        }
        assert_eq!(time("2026-11-20T10:14Z"), time("2026-11-20T10:14:00Z"));
        let nanoseconds = time("2026-11-20T10:14:04.123456789Z");
        assert_eq!(nanoseconds, time("2026-11-20T10:14:04,123456Z"));
    }

    #[test]
    fn times_that_are_not_known_are_absent() {
        for text in [
            "",
            "yesterday",
            "2026-11-20",
            "+20000-01-01T00:00:00Z",
            "0001-01-01T00:00:00",
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "0",
            "05/06/2026 10:14:04",
            "2026-13-40T10:14:04",
            "2026-11-20T25:14:04",
        ] {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
