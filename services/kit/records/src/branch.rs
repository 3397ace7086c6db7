//! Patterns of branches, the same wherever notifications and executions are selected by them. `*` stands for any
//! characters, `/` included, and all others for themselves. A branch without a name meets no pattern.

use crate::Check;

/// Maximum length of a branch or a pattern, in characters.
pub const LONGEST_BRANCH: usize = 1000;

/// Maximum number of `*` in a pattern. It bounds the time of a comparison.
const MOST_WILDCARDS: usize = 10;

const WILDCARD: char = '*';

/// Returns whether a branch meets a pattern.
pub fn matches(pattern: &str, branch: &str) -> bool {
    if branch.is_empty() {
        return false;
    }
    let Some((beginning, rest)) = pattern.split_once(WILDCARD) else {
        return pattern == branch;
    };
    let Some(mut left) = branch.strip_prefix(beginning) else { return false };
    let (between, end) = rest.rsplit_once(WILDCARD).unwrap_or(("", rest));
    // The first place of each part leaves the most for the others.
    for part in between.split(WILDCARD) {
        let Some(place) = left.find(part) else { return false };
        left = &left[place + part.len()..];
    }
    left.ends_with(end)
}

/// Returns the condition that [`matches`] decides, for statements on a branch, which may be null, and a pattern.
pub fn condition(branch: &str, pattern: &str) -> String {
    format!(
        r"({branch} <> '' and {branch} like replace(replace(replace(replace(
               {pattern}, '\', '\\'), '%', '\%'), '_', '\_'), '{WILDCARD}', '%'))"
    )
}

/// Checks a pattern of branches: 1 to `most` characters on one line, few of them `*`.
pub fn check(check: &mut Check, field: &str, pattern: &str, most: usize) {
    check.line(field, pattern, 1..=most);
    if pattern.matches(WILDCARD).count() > MOST_WILDCARDS {
        check.refuse(field, format!("must have at most {MOST_WILDCARDS} {WILDCARD}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, branch, expected) in [
            ("main", "main", true),
            ("main", "Main", false),
            ("main", "main2", false),
            ("release/*", "release/2.4", true),
            ("release/*", "release/2.4/hotfix", true),
            ("release/*", "release/", true),
            ("release/*", "release", false),
            ("release/*", "pre-release/2.4", false),
            ("*/hotfix", "release/2.4/hotfix", true),
            ("*/hotfix", "hotfix", false),
            ("*", "main", true),
            ("*", "", false),
            ("", "", false),
            ("**", "main", true),
            ("r*/*.4", "release/2.4", true),
            ("r*/*.4", "release2.4", false),
            ("a*ab*b", "ab", false),
            ("a*b*a", "aba", true),
            ("ab*ba", "aba", false),
            ("*ü*", "für/immer", true),
            ("50%_*", "50%_off", true),
            ("50%*", "501", false),
            ("a_c", "abc", false),
            (r"a\*", r"a\b", true),
        ] {
            assert_eq!(matches(pattern, branch), expected, "{pattern} {branch}");
        }
    }

    #[test]
    fn a_pattern_has_a_length_and_few_stars() {
        let problems = |pattern: &str| {
            let mut check = Check::default();
            super::check(&mut check, "Branch", pattern, 20);
            check.done().is_err()
        };
        for fine in ["main", "release/*", "**********"] {
            assert!(!problems(fine), "{fine}");
        }
        for wrong in ["", "a\nb", "***********", "release/2.4-candidate"] {
            assert!(problems(wrong), "{wrong}");
        }
    }
}
