//! Texts of other tools in the form that Assay stores.

use assay_digest::hex;
use aws_lc_rs::digest;
use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};

/// Maximum length of a name or an identifier, in characters.
const LONGEST_NAME: usize = 255;

/// Maximum size of a text, in bytes.
const LARGEST_TEXT: usize = 60_000;

/// The forms of times without a zone.
const FORMS: [&str; 8] = [
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y%m%dT%H:%M:%S",
    "%m/%d/%Y %I:%M %p",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %H:%M",
    "%d.%m.%Y %H:%M",
];

/// Returns a name on one line. Never empty.
pub(super) fn name(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\0', "");
    let name: String = line.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
    if name.is_empty() { "Unnamed".to_owned() } else { name }
}

/// Returns an identifier on one line. One that is cut off ends with a digest, so that it stays
/// different from others.
pub(super) fn identifier(text: &str) -> String {
    let line: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().count() <= LONGEST_NAME {
        return name(&line);
    }
    let digest = digest::digest(&digest::SHA256, line.as_bytes());
    let end = hex(&digest.as_ref()[..8]);
    let start: String = line.chars().take(LONGEST_NAME - end.len() - 1).collect();
    format!("{start}~{end}")
}

/// Returns a text of limited size.
pub(super) fn clipped(text: &str) -> String {
    let text = text.trim().replace('\0', "");
    if text.len() <= LARGEST_TEXT {
        return text;
    }
    let end = (0..=LARGEST_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}\n…", &text[..end])
}

/// Returns a part of a key in letters, digits, `.`, `_` and `-`; a digest if others are left out.
pub(super) fn key(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !text.is_empty() && text.len() <= 60 && text.chars().all(fits) && !text.starts_with('.') {
        return text.to_owned();
    }
    hex(&digest::digest(&digest::SHA256, text.as_bytes()).as_ref()[..12])
}

/// Joins the parts of a description that are not empty, each below its title.
pub(super) fn description<'t>(parts: impl IntoIterator<Item = (&'t str, String)>) -> String {
    let part = |(title, text): (&str, String)| {
        let text = text.trim();
        let separator = if text.contains('\n') { "\n" } else { " " };
        match (title, text) {
            (_, "") => None,
            ("", text) => Some(text.to_owned()),
            (title, text) => Some(format!("{title}:{separator}{text}")),
        }
    };
    let parts: Vec<_> = parts.into_iter().filter_map(part).collect();
    clipped(&parts.join("\n\n"))
}

/// Parses a time in the forms that tools write; without a time zone, it counts as UTC.
pub(super) fn time(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.to_utc());
    }
    if let Ok(time) = DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z") {
        return Some(time.to_utc());
    }
    let time = FORMS.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let day = || {
        let day = ["%Y-%m-%d", "%m/%d/%Y", "%d.%m.%Y"];
        let day = day.iter().find_map(|form| NaiveDate::parse_from_str(text, form).ok())?;
        day.and_hms_opt(0, 0, 0)
    };
    time.or_else(day).map(|time| time.and_utc())
}

/// Returns the time of a number of milliseconds since 1970.
pub(super) fn milliseconds(number: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(number)
}

/// Returns a time in the form of the interface.
pub(super) fn stamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Parses a duration such as `1d 2h 3m 5s`, `90`, `00:01:30` or `5.2 sec`, in seconds.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds >= 0.0).then_some(seconds);
    }
    if text.contains(':') {
        let parts: Option<Vec<f64>> = text.split(':').map(|part| part.parse().ok()).collect();
        return Some(parts?.into_iter().fold(0.0, |sum, part| sum * 60.0 + part));
    }
    let (mut sum, mut number, mut found) = (0.0, String::new(), false);
    for c in text.chars() {
        if c.is_ascii_digit() || c == '.' {
            number.push(c);
            continue;
        }
        let unit = match c {
            'w' => 604_800.0,
            'd' => 86_400.0,
            'h' => 3600.0,
            'm' => 60.0,
            's' => 1.0,
            _ => continue,
        };
        if let Ok(value) = std::mem::take(&mut number).parse::<f64>() {
            (sum, found) = (sum + value * unit, true);
        }
    }
    found.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_of_all_tools() {
        for text in [
            "2026-03-02T09:30:04Z",
            "2026-03-02T10:30:04+01:00",
            "2026-03-02T10:30:04.000+0100",
            "2026-03-02T09:30:04",
            "2026-03-02 09:30:04",
            "20260302T09:30:04",
        ] {
            assert_eq!(time(text).unwrap().timestamp(), 1_772_443_804, "{text}");
        }
        assert_eq!(time("3/2/2026 9:30 AM").unwrap().timestamp(), 1_772_443_800);
        assert_eq!(time("2026-03-02").unwrap().timestamp(), 1_772_409_600);
        assert_eq!(time("yesterday"), None);
    }

    #[test]
    fn durations_are_read_in_the_forms_of_all_tools() {
        for (text, expected) in [
            ("1m 5s", Some(65.0)),
            ("1h 1m", Some(3660.0)),
            ("90", Some(90.0)),
            ("00:01:30", Some(90.0)),
            ("5.5 sec", Some(5.5)),
            ("1w 1d", Some(691_200.0)),
            ("", None),
            ("soon", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn long_identifiers_stay_different() {
        let (one, other) = ("x".repeat(300), "x".repeat(301));
        assert_eq!(identifier(&one).chars().count(), 255);
        assert_ne!(identifier(&one), identifier(&other));
        assert_eq!(identifier(" shop.\nbuy "), "shop. buy");
    }
}
