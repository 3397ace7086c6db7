//! The text of a failure without everything that differs between two runs.
//!
//! Words are replaced by their kind: `<url>`, `<time>`, `<ip>`, the name of a file. Numbers and ids
//! become `<n>`. Quoted values and selectors keep their numbers, and so do the numbers that name an
//! error, such as the status codes of HTTP.

use crate::{
    collapse::collapsed,
    identifier,
    lines::is_panic,
    meaning::Word,
    number::{self, NUMBER},
    path,
    quotes::Quotes,
    selector, word,
};

/// Maximum number of characters that count. Longer texts are documents, which a message contains.
const MOST: usize = 1000;

/// Names that every failed assertion has, before the message.
const GENERIC: &[&str] = &[
    "Uncaught ",
    "Error: ",
    "Error [ERR_TEST_FAILURE]: ",
    "[Error [ERR_TEST_FAILURE]: ",
    "AssertionError: ",
    "AssertionError [ERR_ASSERTION]: ",
    "java.lang.AssertionError: ",
    "org.opentest4j.AssertionFailedError: ",
    "junit.framework.AssertionFailedError: ",
    "RSpec::Expectations::ExpectationNotMetError: ",
];

/// Returns the text that identifies the cause which the lines of a headline state.
pub(crate) fn normalized(lines: &[&str]) -> String {
    let text = Text::of(lines, false);
    // A comparison of status codes, such as `expected 503 to equal 200`.
    let is_comparison = text.numbers > 1 && text.statuses == text.numbers;
    let text = if is_comparison { Text::of(lines, true) } else { text };
    let text = collapsed(&text.normal);
    let end = text.char_indices().nth(MOST).map_or(text.len(), |(end, _)| end);
    text[..end].to_owned()
}

/// A text that is being normalized.
#[derive(Default)]
struct Text {
    normal: String,
    keeps_statuses: bool,
    /// Count of numbers that are replaced.
    numbers: usize,
    /// Count of those that are status codes of HTTP.
    statuses: usize,
}

impl Text {
    fn of(lines: &[&str], keeps_statuses: bool) -> Self {
        let mut text = Self { keeps_statuses, ..Self::default() };
        for (line, number) in lines.iter().zip(0..) {
            text.push_line(if number == 0 { specific(line) } else { line });
            text.normal.push('\n');
        }
        text
    }

    /// Adds a line. All of a selector counts as quoted.
    fn push_line(&mut self, line: &str) {
        let is_selector = selector::is_line(line);
        let mut quotes = Quotes::default();
        let (mut at, mut before) = (0, None);
        while let Some(char) = line[at..].chars().next() {
            let rest = &line[at..];
            let is_quoted = is_selector || quotes.is_open();
            at += match self.push_word(before, rest, is_quoted) {
                0 if char.is_alphanumeric() => self.push_run(before, rest, is_quoted),
                0 => {
                    quotes.pass(before, char, &rest[char.len_utf8()..]);
                    self.push_mark(before, rest, char, is_quoted)
                }
                length => length,
            };
            before = line[..at].chars().next_back();
        }
    }

    /// Adds the word that the rest of a line starts with, if there is one that has a meaning. Returns
    /// its length.
    fn push_word(&mut self, before: Option<char>, rest: &str, is_quoted: bool) -> usize {
        if let Some(length) = selector::length(before, rest) {
            self.push_runs(&rest[..length], true);
            return length;
        }
        if !word::starts(before, rest) {
            return 0;
        }
        let (word, length) = word::read(rest);
        match word {
            Word::Plain => return 0,
            Word::Time => self.normal.push_str("<time>"),
            Word::Ip(port) => {
                self.normal.push_str("<ip>");
                self.normal.push_str(if number::is_service(port) { port } else { "" });
            }
            Word::File(name) => self.push_runs(name, is_quoted),
            // The name of a module is quoted, and the same in every folder that a test runs in.
            Word::Relative(path) if is_quoted => self.push_runs(path, is_quoted),
            Word::Relative(path) => self.push_runs(path::name(path), is_quoted),
            Word::Route(path) => self.push_route(path),
            Word::Url(path) => {
                self.normal.push_str("<url>");
                self.push_route(path);
            }
        }
        length
    }

    /// Adds a path, without the parts that have a digit.
    fn push_route(&mut self, path: &str) {
        for part in path.split_inclusive('/') {
            let name = part.trim_end_matches('/');
            let is_id = name.contains(|char: char| char.is_ascii_digit());
            self.normal.push_str(if is_id { NUMBER } else { name });
            self.normal.push_str(&part[name.len()..]);
        }
    }

    /// Adds a text without words.
    fn push_runs(&mut self, text: &str, is_quoted: bool) {
        let (mut at, mut before) = (0, None);
        while let Some(char) = text[at..].chars().next() {
            at += if char.is_alphanumeric() {
                self.push_run(before, &text[at..], is_quoted)
            } else {
                self.push_mark(before, &text[at..], char, is_quoted)
            };
            before = text[..at].chars().next_back();
        }
    }

    /// Adds the letters and digits that the rest of a line starts with. Returns their length.
    fn push_run(&mut self, before: Option<char>, rest: &str, is_quoted: bool) -> usize {
        if let Some((name, length)) = identifier::uuid(rest) {
            self.normal.push_str(name);
            self.normal.push_str(NUMBER);
            return length;
        }
        let run = &rest[..identifier::run(rest)];
        let is_random = identifier::is_random(before, run) || identifier::is_cut(rest, run);
        if is_random && !number::is_name(&self.normal, run) {
            self.normal.push_str(NUMBER);
            return run.len();
        }
        let is_word = before.is_some_and(|char| char.is_alphanumeric() || char == '_');
        let Some(length) = number::length(rest).filter(|_| !is_word) else {
            self.normal.push_str(run);
            return run.len();
        };
        self.push_number(&rest[..length], is_quoted);
        length
    }

    fn push_number(&mut self, number: &str, is_quoted: bool) {
        let is_port = number::is_port(&self.normal, number);
        let is_kept = if is_port { number::is_service(number) } else { is_quoted }
            || number::is_name(&self.normal, number);
        let is_status = number::is_status(number);
        self.numbers += usize::from(!is_kept);
        self.statuses += usize::from(!is_kept && is_status);
        let is_kept = is_kept || (self.keeps_statuses && is_status);
        self.normal.push_str(if is_kept { number } else { NUMBER });
    }

    /// Adds any other character, but not the sign of a number. Returns its length.
    fn push_mark(
        &mut self,
        before: Option<char>,
        rest: &str,
        mark: char,
        is_quoted: bool,
    ) -> usize {
        let mut after = rest.chars().skip(1);
        let is_sign = matches!(mark, '-' | '+')
            && !before.is_some_and(|char| char.is_alphanumeric() || ")]_-+".contains(char))
            && after.next().is_some_and(|char| char.is_ascii_digit());
        if !is_sign || is_quoted {
            self.normal.push(mark);
        }
        mark.len_utf8()
    }
}

/// Returns a message without the generic names before it, and a panic without that of its thread.
fn specific(mut line: &str) -> &str {
    if is_panic(line) {
        return line.find(" panicked at ").map_or(line, |at| &line[at..]);
    }
    while let Some(rest) = GENERIC.iter().find_map(|name| line.strip_prefix(name)) {
        line = rest;
    }
    if GENERIC.iter().any(|name| name.trim_end() == line) { "" } else { line }
}

#[cfg(test)]
mod tests;
