//! Validates what clients write. A request is answered with all its violations at once.

use std::{
    cmp::Ordering,
    fmt::{Display, Write},
    ops::RangeInclusive,
};

use assay_proto::{Fault, Violation};
use serde::Serialize;

use self::texts::Texts;

#[cfg(test)]
mod tests;
mod texts;

/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 255;

/// Maximum size of any other text, in bytes.
const LARGEST_TEXT: usize = 64 << 10;

/// Largest quantity. PostgreSQL writes far larger ones in JSON with digits that cannot be read back as a number.
const LARGEST_AMOUNT: f64 = 1e12;

/// Maximum number of labels, and of the characters of one.
const MOST_LABELS: usize = 20;
const LONGEST_LABEL: usize = 64;

/// Default for the maximum number of violations in an answer. More could make it too large.
pub const MOST_PROBLEMS: usize = 100;

/// Collects the violations of an input.
///
/// Fields are JSON pointers (RFC 6901) without their leading slash. Within [`Check::within`] they
/// are relative to the enclosing field.
pub struct Check {
    violations: Vec<Violation>,
    most: usize,
    /// Pointer to the enclosing field; empty for the input itself.
    prefix: String,
}

impl Default for Check {
    fn default() -> Self {
        Self::with_limit(MOST_PROBLEMS)
    }
}

impl Check {
    /// Returns a check that keeps the first `most` violations.
    pub fn with_limit(most: usize) -> Self {
        Self { violations: Vec::new(), most, prefix: String::new() }
    }

    /// Runs `rules` for the value at `field`: the fields they name are relative to it. A name that
    /// may contain `/` or `~` is escaped with [`below`] first.
    pub fn within<T>(&mut self, field: impl Display, rules: impl FnOnce(&mut Self) -> T) -> T {
        let enclosing = self.prefix.len();
        let separator = if enclosing == 0 { "" } else { "/" };
        // Writing to a string cannot fail.
        _ = write!(self.prefix, "{separator}{field}");
        let result = rules(self);
        self.prefix.truncate(enclosing);
        result
    }

    /// Adds a violation of `field`.
    pub fn refuse(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        if self.is_full() {
            return;
        }
        let field = field.into();
        let field = match (self.prefix.as_str(), field.as_str()) {
            ("", _) => field,
            (prefix, "") => prefix.to_owned(),
            (prefix, field) => format!("{prefix}/{field}"),
        };
        self.violations.push(Violation { field, problem: problem.into() });
    }

    /// Returns whether no violation was found so far.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    /// Returns whether further violations would be dropped.
    pub fn is_full(&self) -> bool {
        self.violations.len() >= self.most
    }

    /// Checks every text of an input, as [`Check::text`] does.
    pub fn texts(&mut self, input: &impl Serialize) {
        // An enum holds a number that is not in the contract.
        if let Err(error) = input.serialize(&mut Texts::of(self)) {
            self.refuse("", error.to_string());
        }
    }

    /// Checks a text: at most 64 KiB, no NUL characters.
    pub fn text(&mut self, field: &str, text: &str) {
        if text.contains('\0') {
            self.refuse(field, "must not contain NUL characters");
        }
        if text.len() > LARGEST_TEXT {
            self.refuse(field, format!("must have at most {LARGEST_TEXT} bytes"));
        }
    }

    /// Checks a name: not blank, at most 255 characters.
    pub fn name(&mut self, field: &str, name: &str) {
        if name.trim().is_empty() {
            self.refuse(field, "must not be blank");
        }
        if name.chars().count() > LONGEST_NAME {
            self.refuse(field, format!("must have at most {LONGEST_NAME} characters"));
        }
    }

    /// Checks a name that appears in a context where a line break has a meaning, such as a mail.
    pub fn name_on_one_line(&mut self, field: &str, name: &str) {
        self.name(field, name);
        if name.contains(char::is_control) {
            self.refuse(field, "must not contain control characters");
        }
    }

    /// Checks a text of one line: its length in characters, no control characters.
    pub fn line(&mut self, field: &str, text: &str, characters: RangeInclusive<usize>) {
        let (least, most) = (characters.start(), characters.end());
        let count = text.chars().take(most.saturating_add(1)).count();
        if characters.contains(&count) && !text.contains(char::is_control) {
            return;
        }
        let length = if *least == 0 { "at most".to_owned() } else { format!("{least} to") };
        self.refuse(field, format!("must have {length} {most} characters, no control characters"));
    }

    /// Checks that a text has at most `most` characters.
    pub fn length(&mut self, field: &str, text: &str, most: usize) {
        if text.chars().count() > most {
            self.refuse(field, format!("must have at most {most} characters"));
        }
    }

    /// Checks that a number is within a range, ends included. NaN is in no range.
    pub fn range<N: Copy + PartialOrd + Display>(
        &mut self,
        field: &str,
        number: N,
        range: RangeInclusive<N>,
    ) {
        let (least, most) = range.into_inner();
        if !(least..=most).contains(&number) {
            self.refuse(field, format!("must be {least} to {most}"));
        }
    }

    /// Checks that a number is `least` or more. NaN is not.
    pub fn at_least<N: Copy + PartialOrd + Display>(&mut self, field: &str, number: N, least: N) {
        if number.partial_cmp(&least).is_none_or(Ordering::is_lt) {
            self.refuse(field, format!("must be {least} or more"));
        }
    }

    /// Checks a quantity: 0 to 10^12. NaN is not one.
    pub fn amount(&mut self, field: &str, number: f64) {
        self.range(field, number, 0.0..=LARGEST_AMOUNT);
    }

    /// Checks labels of engines: at most 20, each with 1 to 64 characters and no control characters.
    pub fn labels(&mut self, field: &str, labels: &[String]) {
        if labels.len() > MOST_LABELS {
            self.refuse(field, format!("must have at most {MOST_LABELS} labels"));
        }
        let fits = |label: &String| {
            (1..=LONGEST_LABEL).contains(&label.chars().count())
                && !label.contains(char::is_control)
        };
        if let Some(index) = labels.iter().position(|label| !fits(label)) {
            let rule = "must have 1 to 64 characters, and no control characters";
            self.refuse(format!("{field}/{index}"), rule);
        }
    }

    /// Checks a size in bytes: 0 or more.
    pub fn size(&mut self, field: &str, size: i64) {
        self.at_least(field, size, 0);
    }

    /// Returns the value of a part of the input, or `None` after adding its violations. Any other
    /// fault fails at once.
    pub fn read<T>(&mut self, part: Result<T, impl Into<Fault>>) -> Result<Option<T>, Fault> {
        match part.map_err(Into::into) {
            Ok(part) => Ok(Some(part)),
            Err(Fault::Invalid(violations)) => {
                for violation in violations {
                    self.refuse(violation.field, violation.problem);
                }
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Fails with the violations, if there are any.
    pub fn done(self) -> Result<(), Fault> {
        if self.violations.is_empty() { Ok(()) } else { Err(Fault::Invalid(self.violations)) }
    }
}

/// Returns the JSON pointer to the member `name` of the value at `pointer`; escapes the name.
pub fn below(pointer: &str, name: &str) -> String {
    let name = name.replace('~', "~0").replace('/', "~1");
    if pointer.is_empty() { name } else { format!("{pointer}/{name}") }
}
