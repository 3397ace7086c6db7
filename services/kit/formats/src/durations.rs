//! Parses durations as tools write them: with decimal points and commas, grouped digits, units or
//! colons.

use assay_proto::LONGEST_DURATION;

/// Characters between groups of digits, beside points, commas and spaces.
const SEPARATORS: [char; 5] = ['\'', '’', '_', '\u{a0}', '\u{202f}'];

/// Returns the seconds of a duration. `has_points` states whether other durations of the document have
/// decimal points, so that a comma in front of three digits groups them.
pub(crate) fn seconds(text: &str, has_points: bool) -> Option<f64> {
    let text: String = text.trim().chars().filter(|char| !SEPARATORS.contains(char)).collect();
    let seconds = if text.contains(':') { clock(&text) } else { amounts(&text, has_points) };
    plausible_seconds(seconds)
}

/// Returns a plausible duration in seconds. One that is not known is 0.
pub(crate) fn duration(seconds: Option<f64>) -> f64 {
    plausible_seconds(seconds).unwrap_or_default()
}

/// Returns whether a duration has a decimal point, but not a decimal comma.
pub(crate) fn has_point(text: &str) -> bool {
    text.rfind('.').is_some_and(|point| text.rfind(',').is_none_or(|comma| comma < point))
}

/// Parses a duration such as `1h 5m 3s` or `1 hour`, and returns its seconds.
pub fn parse_seconds(text: &str) -> Option<f64> {
    seconds(text, false)
}

/// Returns a duration in seconds if it is plausible, without the noise of its computation.
pub fn plausible_seconds(seconds: Option<f64>) -> Option<f64> {
    let seconds = seconds.filter(|seconds| (0.0..=LONGEST_DURATION).contains(seconds))?;
    let digits = if seconds < 1e-4 { 1e9 } else { 1e6 };
    // The sum has no negative zero.
    Some((seconds * digits).round() / digits + 0.0)
}

/// Parses `01:30.5`, `00:01:30.5000000` and `1.02:03:04`, which has days.
fn clock(text: &str) -> Option<f64> {
    let (first, rest) = text.split_once(':')?;
    let (days, first) = first.split_once('.').unwrap_or(("0", first));
    let parts = [first].into_iter().chain(rest.split(':'));
    let parts = parts.map(|part| number(part.trim(), true));
    let seconds = parts.reduce(|sum, part| Some(sum? * 60.0 + part?)).flatten()?;
    Some(days.parse::<u32>().ok().map(f64::from)? * 86_400.0 + seconds)
}

/// Adds amounts with units, such as `1m 3.5s`, `1 hour` and `PT1M3.5S`. One without is in seconds.
fn amounts(text: &str, has_points: bool) -> Option<f64> {
    let text = text.strip_prefix("PT").unwrap_or(text).replace(" and ", " ");
    let (mut sum, mut rest) = (None, text.trim());
    while !rest.is_empty() {
        let end = end_of_number(rest);
        let (amount, after) = (number(&rest[..end], has_points)?, rest[end..].trim_start());
        let end = after.find(|char: char| !char.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        // An amount without a unit is the only one.
        if unit.is_empty() && (sum.is_some() || !after.is_empty()) {
            return None;
        }
        sum = Some(sum.unwrap_or_default() + amount * seconds_of(unit)?);
        rest = after.trim_start_matches([',', ' ']);
    }
    sum
}

/// Returns the end of the number that a text starts with. Spaces may separate groups of digits.
fn end_of_number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let continues = |index: usize| match bytes[index] {
        b'0'..=b'9' | b'.' | b',' => true,
        b'+' | b'-' => index == 0 || matches!(bytes[index - 1], b'e' | b'E'),
        b'e' | b'E' => {
            is_digit(index + 1)
                || matches!(bytes.get(index + 1), Some(b'+' | b'-')) && is_digit(index + 2)
        }
        b' ' => (1..4).all(|next| is_digit(index + next)),
        _ => false,
    };
    (0..bytes.len()).find(|index| !continues(*index)).unwrap_or(bytes.len())
}

/// Parses a number. Of a point and a comma, the last one is decimal. A single comma is, too, unless the
/// document has decimal points and three digits follow.
fn number(text: &str, has_points: bool) -> Option<f64> {
    let text = text.replace(' ', "");
    let commas = text.matches(',').count();
    let groups = |separator| text.rsplit(separator).next().is_some_and(|last| last.len() == 3);
    let plain = match (text.rfind('.'), text.rfind(',')) {
        (Some(point), Some(comma)) if comma > point => text.replace('.', "").replace(',', "."),
        (_, None) if text.matches('.').count() > 1 => text.replace('.', ""),
        (None, Some(_)) if commas == 1 && !(has_points && groups(',')) => text.replace(',', "."),
        _ => text.replace(',', ""),
    };
    plain.parse().ok()
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit.to_lowercase().as_str() {
        "ns" | "nanosecond" | "nanoseconds" => 1e-9,
        "us" | "µs" | "μs" | "usec" | "usecs" | "microsecond" | "microseconds" => 1e-6,
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 1e-3,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_any_separators_and_units() {
        for (text, expected) in [
            ("1.5", Some(1.5)),
            ("1,234.5", Some(1234.5)),
            ("1.234,5", Some(1234.5)),
            ("1'234.5", Some(1234.5)),
            ("1 234,5", Some(1234.5)),
            ("12,345,678.9", Some(12_345_678.9)),
            ("12,345,678", Some(12_345_678.0)),
            ("0,160", Some(0.16)),
            ("12,345", Some(12.345)),
            ("0,5", Some(0.5)),
            (" 2e-3 ", Some(0.002)),
            ("80.803us", Some(0.000_080_803)),
            ("1.5ms", Some(0.0015)),
            ("3 µs", Some(0.000_003)),
            ("2.25s", Some(2.25)),
            ("1m 3.5s", Some(63.5)),
            ("1h5m", Some(3900.0)),
            ("1 hour", Some(3600.0)),
            ("2 days, 1 hour and 30 seconds", Some(176_430.0)),
            ("PT1M3.5S", Some(63.5)),
            ("00:01:30.5000000", Some(90.5)),
            ("1.00:00:01", Some(86_401.0)),
            ("01:30", Some(90.0)),
            ("-0.0", Some(0.0)),
            ("0.0009999275207519531", Some(0.001)),
            ("", None),
            ("NaN", None),
            ("-1", None),
            ("1e300", None),
            ("fast", None),
            ("3 4", None),
        ] {
            assert_eq!(seconds(text, false), expected, "{text:?}");
        }
    }

    #[test]
    fn a_comma_groups_digits_in_documents_with_decimal_points() {
        assert_eq!(seconds("1,234", true), Some(1234.0));
        assert_eq!(seconds("0,5", true), Some(0.5));
        assert!(has_point("1,234.5") && !has_point("1.234,5") && !has_point("0,160"));
    }
}
