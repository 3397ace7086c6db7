//! Lines with the result of a test.

use assay_proto::TestResult;

use crate::{Attempt, Nature, Problem, limits::MESSAGE, texts::beginning};

/// A test point, such as `not ok 2 - refuses # TODO not yet`.
pub(super) struct Point {
    is_ok: bool,
    name: String,
    /// Reason of a directive to skip the test, or not to expect it to pass.
    directive: Option<String>,
}

impl Point {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (is_ok, rest) = match line.strip_prefix("not ") {
            Some(rest) => (false, rest.strip_prefix("ok")?),
            None => (true, line.strip_prefix("ok")?),
        };
        if !rest.is_empty() && !rest.starts_with(' ') {
            return None;
        }
        let rest = rest.trim();
        let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        let (number, rest) = rest.split_at(digits);
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("- ").unwrap_or(rest);
        let (name, directive) = directive(rest);
        let name = if name.is_empty() { number } else { name };
        let name = beginning(&name.replace("\\#", "#"), MESSAGE);
        Some(Self { is_ok, name, directive: directive.map(|reason| beginning(reason, MESSAGE)) })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn result(&self) -> TestResult {
        match (&self.directive, self.is_ok) {
            (Some(_), _) => TestResult::Canceled,
            (None, true) => TestResult::Passed,
            (None, false) => TestResult::Failed,
        }
    }

    pub(super) fn attempt(&self) -> Attempt {
        let result = self.result();
        let problem = |nature| Problem { nature, ..Problem::default() };
        let problems = Nature::of(result).map(problem).into_iter().collect();
        let reason = self.directive.clone().unwrap_or_default();
        Attempt { result, reason, problems, ..Attempt::default() }
    }
}

/// Splits a description from its directive, of which it returns the reason.
fn directive(text: &str) -> (&str, Option<&str>) {
    for (position, _) in text.match_indices('#') {
        let (name, rest) = (&text[..position], text[position + 1..].trim_start());
        let word = rest.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (word, reason) = rest.split_at(word);
        let is_directive = ["skip", "skipped", "todo"].contains(&&*word.to_ascii_lowercase());
        if is_directive && (name.is_empty() || name.ends_with(char::is_whitespace)) {
            return (name.trim_end(), Some(reason.trim()));
        }
    }
    (text.trim_end(), None)
}
