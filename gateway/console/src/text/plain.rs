//! Untrusted text without formatting, such as the name of a test.

use std::{borrow::Cow, fmt::Write as _};

use maud::{Escaper, Render};

/// Renders an untrusted text: escaped, without control characters, and with visible characters in
/// place of those that change the direction of text.
pub(crate) fn plain(text: &str) -> Plain<'_> {
    Plain(text)
}

pub(crate) struct Plain<'a>(&'a str);

impl Render for Plain<'_> {
    fn render_to(&self, html: &mut String) {
        let mut writer = Writer::default();
        self.0.chars().for_each(|char| writer.push(char, html));
    }
}

/// Returns an untrusted text for an attribute, as [`plain`] shows it.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|char| is_dropped(char) || is_directional(char)) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    for char in text.chars().filter(|char| !is_dropped(*char)) {
        if is_directional(char) {
            cleaned.push_str(&name(char));
        } else {
            cleaned.push(char);
        }
    }
    Cow::Owned(cleaned)
}

/// Maximum number of characters in one text that are marked as made visible. Further ones look
/// like text, so that a hostile text does not become many times as long.
const MARKS: usize = 200;

/// Writes the characters of one text.
#[derive(Default)]
pub(crate) struct Writer {
    marks: usize,
}

impl Writer {
    pub(crate) fn push(&mut self, char: char, html: &mut String) {
        if is_dropped(char) {
            return;
        }
        if !is_directional(char) {
            let _ = Escaper::new(html).write_char(char);
            return;
        }
        self.marks += 1;
        if self.marks <= MARKS {
            let _ = write!(html, "<span class=\"ctl\">{}</span>", name(char));
        } else {
            html.push('\u{fffd}');
        }
    }
}

/// Returns the name of a character, such as `U+202E`.
fn name(char: char) -> String {
    format!("U+{:04X}", u32::from(char))
}

/// Returns whether a character is a control other than a tab or the end of a line.
fn is_dropped(char: char) -> bool {
    char.is_control() && !matches!(char, '\t' | '\n')
}

/// Returns whether an invisible character changes the direction of text, so that it reads as another
/// one than it is (CVE-2021-42574).
fn is_directional(char: char) -> bool {
    matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        plain(text).render().into_string()
    }

    #[test]
    fn markup_is_escaped_and_controls_are_dropped() {
        assert_eq!(shown("a <b> & \"c\""), "a &lt;b&gt; &amp; &quot;c&quot;");
        assert_eq!(shown("a\u{0}\u{7}b\u{9b}\tc\nd"), "ab\tc\nd");
    }

    #[test]
    fn characters_that_change_the_direction_are_visible() {
        assert_eq!(shown("a\u{202e}b"), "a<span class=\"ctl\">U+202E</span>b");
        assert_eq!(clean("a\u{202e}\u{1b}b"), "aU+202Eb");
        assert_eq!(clean("plain"), "plain");
    }

    #[test]
    fn a_text_of_such_characters_stays_short() {
        let hostile = "\u{202e}".repeat(10_000);
        assert!(shown(&hostile).len() < 2 * hostile.len());
    }
}
