//! Patterns of text that differs between runs, which users know and the rules of this crate do not.

use std::borrow::Cow;

use regex::{NoExpand, Regex, RegexBuilder};

/// The text in place of the text that a pattern matches.
const PLACE: &str = "<noise>";

/// Maximum number of characters of a pattern.
const LONGEST: usize = 500;

/// Maximum memory of a compiled pattern, and of the automaton that matches it, in bytes.
const LARGEST: usize = 256 << 10;

/// Maximum depth of groups of a pattern.
const DEEPEST: u32 = 20;

/// Patterns whose matches do not count in the lines that state a cause. Matching takes time in proportion to
/// the text, as in RE2, whatever the pattern is.
#[derive(Clone, Debug, Default)]
pub struct Noise(Vec<Regex>);

/// A text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    #[error("must have at most {LONGEST} characters")]
    Long,
    #[error("must not match an empty text, which is everywhere")]
    Empty,
    #[error("must be a regular expression: {0}")]
    Syntax(String),
    #[error("is too large: use fewer repetitions and classes")]
    Large,
}

impl Noise {
    /// Compiles patterns in the syntax of the crate `regex`.
    pub fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, InvalidPattern> {
        patterns.into_iter().map(compiled).collect::<Result<_, _>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces the matches in a line.
    pub(crate) fn removed<'l>(&self, line: &'l str) -> Cow<'l, str> {
        self.0.iter().fold(Cow::Borrowed(line), |line, pattern| {
            match pattern.replace_all(&line, NoExpand(PLACE)) {
                Cow::Borrowed(_) => line,
                Cow::Owned(replaced) => Cow::Owned(replaced),
            }
        })
    }
}

fn compiled(pattern: &str) -> Result<Regex, InvalidPattern> {
    if pattern.chars().nth(LONGEST).is_some() {
        return Err(InvalidPattern::Long);
    }
    let mut builder = RegexBuilder::new(pattern);
    let builder = builder.size_limit(LARGEST).dfa_size_limit(LARGEST).nest_limit(DEEPEST);
    let pattern = builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => InvalidPattern::Large,
        error => InvalidPattern::Syntax(last_line(&error.to_string())),
    })?;
    if pattern.is_match("") { Err(InvalidPattern::Empty) } else { Ok(pattern) }
}

/// Returns the line of an error that says what is wrong; those above show where.
fn last_line(error: &str) -> String {
    let line = error.lines().next_back().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    #[test]
    fn matches_do_not_count() {
        let noise = Noise::new([r"for customer \S+", "shard-[a-z]+"]).unwrap();
        let of = |text: &str| Failure::with_noise(text, &noise).unwrap();
        let one = of("RuntimeError: no stock for customer Smith on shard-red");
        let other = of("RuntimeError: no stock for customer Jones on shard-blue");
        assert_eq!(one.fingerprint, other.fingerprint);
        assert!(one.headline.contains("Smith"), "a reader sees all of the message");
        assert_ne!(one.fingerprint, of("RuntimeError: no money for customer Smith").fingerprint);
        let without = |text: &str| Failure::of(text).unwrap().fingerprint;
        let text = "RuntimeError: no stock";
        assert_eq!(of(text).fingerprint, without(text));
    }

    #[test]
    fn patterns_that_are_wrong_or_large_are_refused() {
        let error = |pattern: &str| Noise::new([pattern]).unwrap_err();
        assert_eq!(error("x*"), InvalidPattern::Empty);
        assert_eq!(error(&"x".repeat(501)), InvalidPattern::Long);
        assert_eq!(error(r"(\pL{200}){200}"), InvalidPattern::Large);
        assert_eq!(error("(a"), InvalidPattern::Syntax("unclosed group".to_owned()));
        assert!(matches!(error(&"(".repeat(30)), InvalidPattern::Syntax(_)));
        assert!(matches!(error(r"(a)\1"), InvalidPattern::Syntax(_)));
    }
}
