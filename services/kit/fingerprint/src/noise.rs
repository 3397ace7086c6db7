//! Patterns of text that differs between runs, which users know and the rules of this crate do not.

use std::{borrow::Cow, ops::Range};

use regex::{Regex, RegexBuilder};

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

    /// Replaces what the patterns match in a line. Matches that overlap, of one pattern or several, are one.
    ///
    /// Each pattern matches the line itself, not what others have replaced: otherwise a line would become seven
    /// times as long with each pattern.
    pub(crate) fn removed<'l>(&self, line: &'l str) -> Cow<'l, str> {
        let mut matches: Vec<Range<usize>> = Vec::new();
        // They are merged after each pattern, so that their number is bounded by the length of the line.
        for pattern in &self.0 {
            matches.extend(pattern.find_iter(line).map(Range::from));
            matches.sort_by_key(|found| found.start);
            matches.dedup_by(|next, found| {
                let is_one = next.start < found.end || next.start == found.start;
                if is_one {
                    found.end = found.end.max(next.end);
                }
                is_one
            });
        }
        if matches.is_empty() {
            return Cow::Borrowed(line);
        }
        let (mut removed, mut rest) = (String::with_capacity(line.len()), 0);
        for found in matches {
            removed.push_str(&line[rest..found.start]);
            removed.push_str(PLACE);
            rest = found.end;
        }
        removed.push_str(&line[rest..]);
        Cow::Owned(removed)
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
    fn matches_of_several_patterns_are_those_in_the_line() {
        let removed = |patterns: &[&str]| {
            Noise::new(patterns.iter().copied()).unwrap().removed("shop 17 at eu-1").into_owned()
        };
        assert_eq!(removed(&["eu-[0-9]", "[0-9]+"]), "shop <noise> at <noise>");
        assert_eq!(removed(&["[0-9]+", "eu-[0-9]"]), "shop <noise> at <noise>");
        assert_eq!(removed(&["17 at", "at eu"]), "shop <noise>-1");
        assert_eq!(removed(&["noise", "x"]), "shop 17 at eu-1");
        assert_eq!(removed(&[r"\bat\b", "[0-9]+", "nois"]), "shop <noise> <noise> eu-<noise>");
    }

    #[test]
    fn patterns_that_match_everything_do_not_multiply_a_line() {
        let patterns: Vec<String> =
            (0..8).map(|depth| format!("{}.{}", "(".repeat(depth), ")".repeat(depth))).collect();
        let noise = Noise::new(patterns.iter().map(String::as_str)).unwrap();
        assert_eq!(noise.removed("four"), PLACE.repeat(4));
        let edges = Noise::new([r"\b", r"(\b)"]).unwrap();
        assert_eq!(edges.removed("a 1"), format!("{PLACE}a{PLACE} {PLACE}1{PLACE}"));
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
