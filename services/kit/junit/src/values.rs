//! Parses durations, times and names as tools write them.

use assay_proto::Timestamp;
use chrono::{DateTime, Datelike, NaiveDateTime, SubsecRound};

/// Maximum plausible duration, in seconds.
const LONGEST: f64 = 1e9;

/// Maximum length of an identifier or name in the catalog, in characters.
const LONGEST_NAME: usize = 255;

/// Number of characters of a shortened name that are its hash and the `~` before it.
const HASH: usize = 17;

/// Parses a duration in seconds. Surefire separates thousands (`1,234.5`); other tools write a
/// decimal comma, `NaN` or nothing.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_decimal_comma =
        || text.split_once(',').is_some_and(|(_, rest)| rest.len() != 3 && !rest.contains(','));
    let plain = if !text.contains('.') && is_decimal_comma() {
        text.replace(',', ".")
    } else {
        text.replace(',', "")
    };
    plain.parse().ok().filter(|seconds| (0.0..=LONGEST).contains(seconds))
}

/// Parses a time. Without a time zone it is in UTC.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let zoned = DateTime::parse_from_rfc3339(text)
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z"))
        .map(|time| time.to_utc());
    let naive = || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f");
    let time = zoned.or_else(|_| naive().map(|time| time.and_utc())).ok()?;
    (0..=9999).contains(&time.year()).then_some(Timestamp(time.trunc_subsecs(6)))
}

/// Returns a name that is short enough for the catalog. A longer one becomes its beginning, `~` and
/// a hash of the whole, so that different names stay different.
pub(super) fn shortened(name: &str) -> String {
    let Some((end, _)) = name.char_indices().nth(LONGEST_NAME) else { return name.to_owned() };
    let cut = name[..end].char_indices().nth_back(HASH - 1).map_or(end, |(cut, _)| cut);
    format!("{}~{:016x}", &name[..cut], fnv1a(name))
}

/// Returns the 64-bit FNV-1a hash, which is the same in every version of this program.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_any_separators() {
        for (text, expected) in [
            ("1.5", Some(1.5)),
            ("1,234.5", Some(1234.5)),
            ("12,345,678.9", Some(12_345_678.9)),
            ("1,234", Some(1234.0)),
            ("0,5", Some(0.5)),
            (" 2e-3 ", Some(0.002)),
            ("", None),
            ("NaN", None),
            ("-1", None),
            ("1e300", None),
        ] {
            assert_eq!(seconds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn times_are_parsed_with_and_without_a_zone() {
        let noon = time("2026-11-20T12:00:00Z");
        assert!(noon.is_some());
        for text in
            ["2026-11-20T13:00:00.000+01:00", "2026-11-20T12:00:00", "2026-11-20T12:00:00+0000"]
        {
            assert_eq!(time(text), noon, "{text}");
        }
        for text in ["", "yesterday", "2026-11-20", "+20000-01-01T00:00:00Z"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn long_names_are_shortened_and_stay_different() {
        let long = |end: &str| format!("{}{end}", "ä".repeat(300));
        assert_eq!(shortened(&long("a")).chars().count(), LONGEST_NAME);
        assert_ne!(shortened(&long("a")), shortened(&long("b")));
        let longest = "ä".repeat(LONGEST_NAME);
        assert_eq!(shortened(&longest), longest);
    }
}
