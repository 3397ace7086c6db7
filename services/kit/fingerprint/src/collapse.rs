//! Parts of a normalized text that depend on the number of values or on one of them.

use crate::number::NUMBER;

/// Units of time, after a number and a space.
const TIMES: &[&str] = &[
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "min", "minute", "minutes",
    "hour", "hours",
];

/// Joins white space, lists of numbers and parts of times. Drops the unit of a time and the plural
/// of a counted word.
pub(crate) fn collapsed(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        push(&mut collapsed, without_cut(word));
    }
    collapsed
}

fn push(text: &mut String, word: &str) {
    let list = text.strip_suffix(',').unwrap_or(text);
    if let Some(start) = list.strip_suffix(NUMBER).filter(|_| is_item(word)) {
        text.truncate(start.len());
        return text.push_str(word);
    }
    let is_counted = text.ends_with(NUMBER);
    let bare = word.trim_end_matches(['.', ',', ':', ';', ')', ']']);
    let is_unit = is_counted && TIMES.contains(&bare);
    let is_time = bare == "<time>" && text.ends_with(bare);
    if !is_unit && !is_time {
        text.push_str(if text.is_empty() { "" } else { " " });
        text.push_str(if is_counted { singular(bare) } else { bare });
    }
    text.push_str(&word[bare.len()..]);
}

/// Returns a word without the marks after `...`. pytest cuts the middle out of long values, and the
/// marks around it or not.
fn without_cut(word: &str) -> &str {
    let cut = word.trim_end_matches(['\'', '"', ',']);
    if cut.ends_with("...") { cut } else { word }
}

/// Returns whether a word is a number of a list, with the marks after it.
fn is_item(word: &str) -> bool {
    let marks = word.strip_prefix(NUMBER);
    marks.is_some_and(|marks| marks.chars().all(|char| char.is_ascii_punctuation()))
}

/// Returns a word that follows a number without the `s` of its plural.
fn singular(word: &str) -> &str {
    let is_word = word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    word.strip_suffix('s').filter(|word| is_word && !word.ends_with('s')).unwrap_or(word)
}
