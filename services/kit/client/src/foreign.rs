//! Texts of others, such as names of tests and messages of servers, made harmless for terminals, logs
//! of CI systems and Markdown.
//!
//! CI systems take commands from the output of a job: lines that begin with `::` (GitHub), `##[` and
//! `##vso[` anywhere in a line (GitHub, Azure Pipelines), `##teamcity[`, `section_start:` (GitLab), and
//! sequences of terminals (Buildkite, Jenkins). A report of an untrusted change must not give any.

use std::fmt::{self, Write};

use serde::Deserialize;

/// Maximum length of a text that is shown, in characters.
const LONGEST: usize = 4000;

/// Maximum length of a text in Markdown, in characters.
const LONGEST_CELL: usize = 500;

/// A text of another program. It is harmless where it is displayed.
#[derive(Clone, Default, Deserialize, Eq, PartialEq)]
#[serde(transparent)]
pub struct Foreign(String);

impl Foreign {
    /// Returns the text as it was received, for comparisons.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// Returns the text for a cell of a table in Markdown.
    pub fn markdown(&self) -> String {
        markdown(&self.0)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(&self.0))
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", visible(&self.0))
    }
}

impl From<&str> for Foreign {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Returns a text on one line of limited length, without control characters and commands of CI
/// systems. Invisible characters, and those that change the direction of text, have their names in it.
pub fn visible(text: &str) -> String {
    harmless(text, LONGEST)
}

/// Returns a text as [`visible`] does, with a maximum length in characters.
pub fn harmless(text: &str, longest: usize) -> String {
    let mut line = Line::default();
    for (count, char) in text.chars().enumerate() {
        if count == longest || line.text.len() > longest.saturating_mul(4) {
            line.text.push('…');
            break;
        }
        line.push(char);
    }
    line.finish()
}

/// Returns a text for a cell of a table in Markdown: it is neither markup, HTML nor a link.
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in harmless(text, LONGEST_CELL).chars() {
        let is_plain =
            matches!(char, ',' | '-' | '/' | '%') || char == '.' && !ends_with_www(&escaped);
        if char.is_ascii_punctuation() && !is_plain {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

/// Returns whether a full stop would begin the name of a host, which becomes a link.
fn ends_with_www(text: &str) -> bool {
    text.len() >= 3 && text.as_bytes()[text.len() - 3..].eq_ignore_ascii_case(b"www")
}

/// A line that is being made harmless.
#[derive(Default)]
struct Line {
    text: String,
    /// Whether the last visible character is a `#`.
    ends_with_hash: bool,
}

impl Line {
    fn push(&mut self, char: char) {
        match char {
            // The ends of lines, as any program may see them.
            '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                if !self.text.ends_with(' ') {
                    self.text.push(' ');
                }
                self.ends_with_hash = false;
            }
            char if char.is_control() => {}
            char if is_invisible(char) => {
                let _ = write!(self.text, "U+{:04X}", u32::from(char));
                self.ends_with_hash = false;
            }
            char if is_joiner(char) => self.text.push(char),
            '#' => {
                if self.ends_with_hash {
                    self.text.push(' ');
                }
                self.text.push('#');
                self.ends_with_hash = true;
            }
            char => {
                self.text.push(char);
                self.ends_with_hash = false;
            }
        }
    }

    fn finish(self) -> String {
        let mut text = self.text;
        for marker in ["section_start", "section_end"] {
            text = text.replace(&format!("{marker}:"), &format!("{marker} :"));
        }
        let second = second_colon(&text);
        if let Some(second) = second {
            text.insert(second, ' ');
        }
        text
    }
}

/// Returns the place of the second of two colons that a line begins with.
fn second_colon(text: &str) -> Option<usize> {
    let mut seen = text.char_indices().filter(|(_, char)| !is_joiner(*char));
    let first = seen.find(|(_, char)| !char.is_whitespace())?;
    let second = seen.next()?;
    (first.1 == ':' && second.1 == ':').then_some(second.0)
}

/// Returns whether a character is not seen but changes what is seen, or what a program finds in the
/// text (CVE-2021-42574).
fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e00ff}'
        | '\u{e01f0}'..='\u{e0fff}')
}

/// Returns whether a character changes the form of its neighbours, as emojis and some scripts need it.
fn is_joiner(char: char) -> bool {
    matches!(char, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_commands_are_kept() {
        for text in ["shop.pays[1]", "a::b::c", "#1 C# – größer 👩‍👧", "(x) 'y' \"z\" <t>", "  two"]
        {
            assert_eq!(visible(text), text);
            assert_eq!(visible(&visible(text)), text);
        }
    }

    #[test]
    fn commands_of_ci_systems_are_broken_and_readable() {
        for (text, expected) in [
            ("::error::x", ": :error::x"),
            (" \n ::error::x", "  : :error::x"),
            ("a ##vso[task]b", "a # #vso[task]b"),
            ("#\u{1b}##[error]", "# # #[error]"),
            ("#\u{200d}#[error]", "#\u{200d} #[error]"),
            ("section_start:1:a\r\u{1b}[0K", "section_start :1:a [0K"),
            ("section_\u{1b}end:1:a", "section_end :1:a"),
            ("\u{1b}[31mred\u{1b}[0m", "[31mred[0m"),
            ("a\u{202e}b\u{2028}c\u{9b}", "aU+202Eb c"),
            (":\u{200d}:x", ":\u{200d} :x"),
            (": :", ": :"),
        ] {
            assert_eq!(visible(text), expected);
            assert_eq!(visible(expected), expected);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(visible(&"x".repeat(1 << 20)).chars().count(), LONGEST + 1);
        assert!(visible(&"\u{202e}".repeat(1 << 20)).len() <= 5 * LONGEST);
    }

    #[test]
    fn markdown_has_no_markup_and_no_links() {
        for (text, expected) in [
            ("shop.pay|card\n_x_", r"shop.pay\|card \_x\_"),
            ("<b>[x](y)`&amp;", r"\<b\>\[x\]\(y\)\`\&amp\;"),
            ("https://a.example WWW.b.c @all", r"https\://a.example WWW\.b.c \@all"),
        ] {
            assert_eq!(markdown(text), expected);
        }
    }
}
