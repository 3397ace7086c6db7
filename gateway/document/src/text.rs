//! Untrusted texts, as documents have them.

use std::{fmt::Write, iter, ops::RangeInclusive};

/// Maximum number of characters in one text that are made visible by their names.
const MARKS: usize = 200;

/// Number of bytes that the texts of a document may still have, so that no execution makes a document too large.
#[derive(Debug)]
pub struct Allowance(usize);

impl Allowance {
    /// An allowance of this number of bytes.
    pub fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Returns whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.0 == 0
    }

    /// Takes a text with line breaks, of which the middle is left out beyond about `most` bytes.
    pub fn text(&mut self, text: &str, most: usize) -> String {
        let text = cut(text, most.min(self.0));
        self.spend(text)
    }

    /// Takes a text as one line, of which the end is left out beyond about `most` bytes.
    pub fn line(&mut self, text: &str, most: usize) -> String {
        let text = line(text, most.min(self.0));
        self.spend(text)
    }

    fn spend(&mut self, text: String) -> String {
        self.0 = self.0.saturating_sub(text.len());
        text
    }
}

/// Returns both ends of a text that is longer than about `most` bytes, and how many bytes are missing.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return clean(text).trim_end().to_owned();
    }
    let head = &text[..text.floor_char_boundary(most / 4 * 3)];
    let tail = &text[text.ceil_char_boundary(text.len() - most / 4)..];
    let left_out = text.len() - head.len() - tail.len();
    format!("{}\n… {left_out} bytes are left out …\n{}", clean(head), clean(tail).trim_end())
}

/// Returns a text as one line of about `most` bytes.
pub(crate) fn line(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    let head = clean(&text[..end]);
    let words: Vec<&str> = head.split_whitespace().collect();
    let mark = if end < text.len() { "…" } else { "" };
    words.join(" ") + mark
}

/// Removes what is not text: control characters, sequences that color terminals, and characters that mean
/// nothing. Characters that change the direction of text are named (CVE-2021-42574).
fn clean(text: &str) -> String {
    let (mut cleaned, mut marks) = (String::with_capacity(text.len()), 0);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                // The sequence ends with a letter.
                let is_parameter = |char: &char| matches!(char, ' '..='?');
                iter::from_fn(|| chars.next_if(is_parameter)).for_each(drop);
                chars.next_if(|char| matches!(char, '@'..='~'));
            }
            _ if is_meaningless(char) => {}
            _ if is_directional(char) && marks < MARKS => {
                marks += 1;
                let _ = write!(cleaned, "U+{:04X}", u32::from(char));
            }
            _ if is_directional(char) => cleaned.push(char::REPLACEMENT_CHARACTER),
            _ => cleaned.push(char),
        }
    }
    cleaned
}

/// Returns whether a character is a control other than a tab or the end of a line, a byte order mark, an annotation
/// of others, or not a character.
fn is_meaningless(char: char) -> bool {
    const NEVER: [RangeInclusive<char>; 2] = ['\u{fdd0}'..='\u{fdef}', '\u{fff9}'..='\u{fffb}'];
    let code = u32::from(char);
    let is_control = char.is_control() && !matches!(char, '\n' | '\t');
    is_control
        || char == '\u{feff}'
        || code & 0xfffe == 0xfffe
        || NEVER.iter().any(|range| range.contains(&char))
}

/// Returns whether an invisible character changes the direction of text.
fn is_directional(char: char) -> bool {
    matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_colors_of_terminals_are_removed() {
        assert_eq!(clean("a\u{0}b\u{1b}[1;31mred\u{1b}[0m\u{feff}\u{ffff}\tc\nd"), "abred\tc\nd");
        assert_eq!(clean("a\u{1b}"), "a");
        assert_eq!(clean("a\u{1b}[31"), "a");
    }

    #[test]
    fn characters_that_change_the_direction_are_named() {
        assert_eq!(clean("a\u{202e}b"), "aU+202Eb");
        let hostile = "\u{202e}".repeat(10_000);
        assert!(clean(&hostile).len() < 2 * hostile.len());
    }

    #[test]
    fn a_long_text_keeps_both_ends_and_says_how_much_is_missing() {
        let text = format!("first\n{}\nlast", "ä".repeat(5 << 20));
        let mut rest = Allowance::new(1 << 20);
        let shown = rest.text(&text, 4096);
        assert!(shown.starts_with("first\n") && shown.ends_with("\nlast"), "{shown}");
        assert!(shown.len() < 4200 && shown.contains("bytes are left out"), "{shown}");
    }

    #[test]
    fn an_allowance_ends() {
        let mut rest = Allowance::new(10);
        assert_eq!(rest.text("0123456", 100), "0123456");
        assert_eq!(rest.line("0123456", 100), "012…");
        assert!(rest.is_spent() && rest.line("more", 100).len() <= 4);
    }

    #[test]
    fn a_line_has_no_breaks() {
        assert_eq!(line("  a\n\tb  c ", 100), "a b c");
        assert_eq!(line("äöü", 3), "ä…");
    }
}
