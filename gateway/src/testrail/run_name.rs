//! The names of runs. Some clients add the time, although a test set has many runs.

/// The names of months in the dates that clients add.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Returns the name of the test set of a run: its name, without the date or time at its end.
pub(super) fn test_set(run: &str) -> &str {
    let run = run.trim();
    let (mut start, mut is_dated) = (run.len(), false);
    for word in run.rsplit(char::is_whitespace) {
        let bare = word.trim_matches(['(', ')', '[', ']', ',']);
        if !word.is_empty() && !is_part(bare) {
            break;
        }
        is_dated |= bare.contains(':') || is_date(bare);
        let before = run[..start].len() - word.len();
        start = run[..before].trim_end().len();
    }
    let rest = run[..start].trim_end_matches([' ', '-', '–', ':', '|', '@', ',', '(', '[']);
    if is_dated && !rest.is_empty() { rest } else { run }
}

/// Whether a word can be part of a date and time, such as `Nov`, `22`, `2026-11-22T12:33:23Z` or `PM`.
fn is_part(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let is_name = MONTHS.iter().any(|month| lower == *month)
        || matches!(lower.as_str(), "am" | "pm" | "utc" | "gmt" | "z");
    let of_date = |char: char| char.is_ascii_digit() || "-/.:+tz".contains(char);
    is_name || lower.starts_with(|char: char| char.is_ascii_digit()) && lower.chars().all(of_date)
}

/// Whether a word is a date on its own, such as `2026-11-22`.
fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split(['-', '/']).collect();
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number) && parts.iter().any(|part| part.len() == 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_with_a_time_is_not_part_of_the_name() {
        for (run, expected) in [
            ("PwRun - Created On Nov 22 2026 12:33:23 ", "PwRun - Created On"),
            ("Smoke 2026-11-22T12:33:23.000Z", "Smoke"),
            ("Cypress - 11/22/2026, 12:33:23 PM", "Cypress"),
            ("Nightly (2026-11-22 12:33)", "Nightly"),
            ("Nightly 42", "Nightly 42"),
            ("Nightly 2026-11-22", "Nightly"),
            ("Nightly 2026-11", "Nightly 2026-11"),
            ("Release 2.4.1", "Release 2.4.1"),
            ("12:33:23", "12:33:23"),
            ("Runs at 12:33 daily", "Runs at 12:33 daily"),
            ("Automated Tests Run", "Automated Tests Run"),
            ("März 2026 12:33", "März"),
        ] {
            assert_eq!(test_set(run), expected, "{run}");
        }
    }
}
