//! Words that differ between machines and runs: addresses, times and paths.

use crate::{meaning::Word, path};

/// Returns the meaning of the word that a text starts with, and its length in bytes.
pub(crate) fn read(text: &str) -> (Word<'_>, usize) {
    let word = trimmed(&text[..length(text)]);
    if let Some((scheme, _)) = word.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
        let url = trimmed(&text[..url_length(text)]);
        return (address(&url[scheme.len() + 3..]), url.len());
    }
    if is_time(word) {
        return (Word::Time, word.len() + fraction(&text[word.len()..]));
    }
    (ip(word).map_or_else(|| path::read(word), Word::Ip), word.len())
}

/// Returns whether a character can be part of a word.
fn is_part(char: char) -> bool {
    char.is_alphanumeric() || "_./:\\-+@~%$&*".contains(char)
}

/// Returns whether a word starts at the rest of a line, which follows `before`.
pub(crate) fn starts(before: Option<char>, rest: &str) -> bool {
    let is_inside = before.is_some_and(is_part) && !(before == Some(':') && rest.starts_with('/'));
    rest.starts_with(is_part) && !is_inside
}

/// Returns the length of the word that a text starts with. A colon before a path ends it.
fn length(text: &str) -> usize {
    let is_end = |at: usize, char: char| {
        let rest = &text.as_bytes()[at..];
        !is_part(char) || at > 1 && rest.starts_with(b":/") && rest.get(2) != Some(&b'/')
    };
    text.char_indices().find(|(at, char)| is_end(*at, *char)).map_or(text.len(), |(at, _)| at)
}

fn url_length(text: &str) -> usize {
    let is_end = |char: char| char.is_whitespace() || "\"'`<>()[]{}|,\\^".contains(char);
    text.find(is_end).unwrap_or(text.len())
}

fn trimmed(word: &str) -> &str {
    word.trim_end_matches(['.', ':', '!', '-', '+', '&', '*', '~'])
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+.-:".contains(char))
}

/// Reads an address after its scheme. Without a host it is the path of a file.
fn address(rest: &str) -> Word<'_> {
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    match rest.find('/') {
        Some(0) => Word::File(path::name(path::without_position(rest))),
        Some(host) => Word::Url(&rest[host..]),
        None => Word::Url(""),
    }
}

/// Recognizes `2026-11-22T12:34:21.710Z`, `22.11.2026` and `12:34:21.710+01:00`.
fn is_time(word: &str) -> bool {
    if !word.starts_with(|char: char| char.is_ascii_digit()) {
        return false;
    }
    let after_date = ["dddd-dd-dd", "dddd/dd/dd", "dd/dd/dddd", "dd.dd.dddd"];
    let after_date = after_date.iter().find_map(|shape| after(word, shape));
    match after_date {
        Some("") => true,
        Some(rest) => rest.strip_prefix('T').is_some_and(is_clock),
        None => is_clock(word),
    }
}

fn is_clock(text: &str) -> bool {
    let Some(rest) = after(text, "dd:dd:dd") else { return false };
    let fraction = rest.strip_prefix('.').unwrap_or(rest);
    let zone = fraction.trim_start_matches(|char: char| char.is_ascii_digit());
    let offset = zone.strip_prefix(['+', '-']).unwrap_or_default();
    matches!(zone, "" | "Z") || ["dd:dd", "dddd", "dd"].iter().any(|s| after(offset, s) == Some(""))
}

/// Returns the length of the milliseconds after a comma.
fn fraction(text: &str) -> usize {
    [",dddddd", ",ddd"].iter().find(|shape| after(text, shape).is_some()).map_or(0, |s| s.len())
}

/// Returns what follows a shape, in which `d` is a digit.
fn after<'t>(text: &'t str, shape: &str) -> Option<&'t str> {
    let start = text.get(..shape.len())?;
    let is_same = |(char, shape): (char, char)| match shape {
        'd' => char.is_ascii_digit(),
        other => char == other,
    };
    start.chars().zip(shape.chars()).all(is_same).then(|| &text[shape.len()..])
}

/// Returns the port of an address, which is empty if there is none: `127.0.0.1:5432`, `::1`.
fn ip(word: &str) -> Option<&str> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (host, port) = word.split_at(word.find(':').unwrap_or(word.len()));
    let groups = || host.split('.');
    let is_v4 = groups().count() == 4 && groups().all(|group| group.len() < 4 && is_digits(group));
    let is_v6 = word.contains("::")
        && word.contains(|char: char| char.is_ascii_digit())
        && word.chars().all(|char| char.is_ascii_hexdigit() || char == ':');
    let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_digits);
    if is_v4 && has_port { Some(port) } else { is_v6.then_some("") }
}
