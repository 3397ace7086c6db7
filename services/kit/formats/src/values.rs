//! Parses durations, times and names as tools write them.

use assay_proto::Timestamp;
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, Datelike, NaiveDateTime, SubsecRound};

use crate::{Content, limits::INLINE};

/// Maximum plausible duration, in seconds.
const LONGEST: f64 = 1e9;

/// Maximum length of an identifier or name in the catalog, in characters.
const LONGEST_NAME: usize = 255;

/// Number of characters of a shortened name that are its hash and the `~` before it.
const HASH: usize = 17;

/// Parses a duration in seconds. Surefire separates thousands (`1,234.5`); other tools write a
/// decimal comma, `NaN` or nothing.
pub(crate) fn seconds(text: &str) -> Option<f64> {
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

/// Parses a time. Without a time zone it is in UTC. Some tools separate date and time by a space, and
/// Robot Framework omits the hyphens.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    let text = text.trim().replacen(' ', "T", 1);
    let zoned = DateTime::parse_from_rfc3339(&text)
        .or_else(|_| DateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f%z"))
        .map(|time| time.to_utc());
    let naive = |format| NaiveDateTime::parse_from_str(&text, format).map(|time| time.and_utc());
    let time = zoned
        .or_else(|_| naive("%Y-%m-%dT%H:%M:%S%.f"))
        .or_else(|_| naive("%Y%m%dT%H:%M:%S%.f"))
        .ok()?;
    (0..=9999).contains(&time.year()).then_some(Timestamp(time.trunc_subsecs(6)))
}

/// Returns the time of a number of milliseconds since 1970, or of seconds as some tools write.
pub(crate) fn since_1970(number: Option<f64>) -> Option<Timestamp> {
    /// More seconds than this are in the year 5138, and as many milliseconds in 1973.
    const SECONDS: f64 = 1e11;
    let number = number.filter(|number| (1.0..=SECONDS * 1e3).contains(number))?;
    let milliseconds = if number < SECONDS { number * 1e3 } else { number };
    #[expect(clippy::cast_possible_truncation, reason = "it was just checked to fit")]
    DateTime::from_timestamp_micros((milliseconds * 1e3) as i64).map(Timestamp)
}

/// Returns a plausible duration in seconds.
pub(crate) fn duration(seconds: Option<f64>) -> f64 {
    seconds.filter(|seconds| (0.0..=LONGEST).contains(seconds)).unwrap_or_default()
}

/// Returns class and name of a pytest test, as pytest writes them into JUnit reports, from its node
/// id: `tests/test_shop.py::TestCart::test_pay[visa]`.
pub(crate) fn pytest_names(node: &str) -> Option<(String, String)> {
    let (path, parameters) = node.split_at(node.find('[').unwrap_or(node.len()));
    let (class, name) = path.rsplit_once("::")?;
    let (file, classes) = class.split_once("::").unwrap_or((class, ""));
    let module = file.strip_suffix(".py")?.replace('/', ".");
    let class = if classes.is_empty() {
        module
    } else {
        format!("{module}.{}", classes.replace("::", "."))
    };
    Some((class, format!("{name}{parameters}")))
}

/// Returns the contents of an attachment in Base64, if it is complete and there is room for it.
pub(crate) fn inline(base64: &str, room: &mut usize) -> Content {
    match BASE64_STANDARD.decode(base64) {
        Ok(bytes) if bytes.len() <= INLINE.min(*room) => {
            *room -= bytes.len();
            Content::Inline(bytes)
        }
        _ => Content::Dropped,
    }
}

/// Returns a text without the colours of a terminal, which JavaScript tools write into messages.
pub(crate) fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|char: char| char.is_ascii_alphabetic());
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain + rest
}

/// Returns a name that is short enough for the catalog. A longer one becomes its beginning, `~` and
/// a hash of the whole, so that different names stay different.
pub(crate) fn shortened(name: &str) -> String {
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
