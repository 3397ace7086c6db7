//! Verdicts as Markdown.

use std::fmt::Write;

use assay_proto::execution::{Verdict, VerdictState};

/// A verdict for the documentation.
pub(super) const EXAMPLE: &str = "\
### [Nightly regression](https://assay.example.com/executions/019cade2-11c0-7b21-8d4f-0a96c3e15f72): failed

118 of 120 test cases passed, 2 failed, 1 fixed, 0 flaky, 0 muted

| | Rule | |
|---|---|---|
| ✅ | Complete | 120 test cases executed |
| ❌ | NewFailures | 1 new failure, at most 0 allowed |

| New failure | Message |
|---|---|
| checkout.pay_by_card | TimeoutError: no response after 30 s |
";

pub(super) fn of(verdict: &Verdict) -> String {
    let (name, state) = (escaped(&verdict.test_set_name), name_of(verdict.state()));
    let title = match &verdict.url {
        Some(url) => format!("[{name}]({url})"),
        None => name,
    };
    let statistic = verdict.statistic.clone().unwrap_or_default();
    let changes = verdict.changes.unwrap_or_default();
    let failed = statistic.test_cases_failed + statistic.test_cases_with_error;
    let mut text = format!(
        "### {title}: {state}\n\n{} of {} test cases passed, {failed} failed, {} fixed, {} flaky, \
         {} muted\n",
        statistic.test_cases_passed,
        statistic.test_cases_total,
        changes.fixed,
        changes.flaky - changes.muted_flaky,
        changes.muted
    );
    if !verdict.rules.is_empty() {
        text.push_str("\n| | Rule | |\n|---|---|---|\n");
    }
    for rule in &verdict.rules {
        let mark = if rule.is_met { "✅" } else { "❌" };
        let _ = writeln!(text, "| {mark} | {} | {} |", rule.rule, escaped(&rule.message));
    }
    if !verdict.new_failures.is_empty() {
        text.push_str("\n| New failure | Message |\n|---|---|\n");
    }
    for failure in &verdict.new_failures {
        let headline = failure.headline.lines().next().unwrap_or_default();
        let identifier = escaped(&failure.test_case_identifier);
        let _ = writeln!(text, "| {identifier} | {} |", escaped(headline));
    }
    text
}

/// Returns the state in a word.
pub(super) fn name_of(state: VerdictState) -> &'static str {
    match state {
        VerdictState::Passed => "passed",
        VerdictState::Failed => "failed",
        VerdictState::Pending | VerdictState::Unspecified => "pending",
    }
}

/// A space without width. Hosts of repositories look for `@name` and `#1` when backslashes are gone, so only
/// something between breaks them.
const BREAK: char = '\u{200b}';

/// Escapes everything that Markdown or HTML in it could interpret, and line ends. URLs do not become
/// links, nobody is mentioned, and characters that change the direction of text have their names in it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => escaped.push(' '),
            c if c.is_control() => {}
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                let _ = write!(escaped, "U+{:04X}", u32::from(c));
            }
            c if c.is_ascii_punctuation() && !is_plain(c, &text[..at], &text[at + 1..]) => {
                escaped.extend(['\\', c]);
                escaped.extend(matches!(c, '@' | '#').then_some(BREAK));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns whether a punctuation mark between these texts has no meaning in Markdown.
fn is_plain(mark: char, before: &str, after: &str) -> bool {
    match mark {
        ',' | '%' | '/' | '-' => true,
        ':' => !after.starts_with('/'),
        '.' => {
            !before.as_bytes().last_chunk::<3>().is_some_and(|www| www.eq_ignore_ascii_case(b"www"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::{
        ExecutionStatistic,
        execution::{ChangeCounts, NewFailure, RuleOutcome},
    };

    use super::*;

    #[test]
    fn a_verdict_lists_its_rules_and_new_failures() {
        let rule = |rule: &str, is_met, message: &str| RuleOutcome {
            rule: rule.to_owned(),
            is_met,
            message: message.to_owned(),
        };
        let mut verdict = Verdict {
            url: Some(EXAMPLE.split(['(', ')']).nth(1).unwrap().to_owned()),
            test_set_name: "Nightly regression".to_owned(),
            statistic: Some(ExecutionStatistic {
                test_cases_total: 120,
                test_cases_passed: 118,
                test_cases_failed: 2,
                ..Default::default()
            }),
            changes: Some(ChangeCounts { fixed: 1, ..Default::default() }),
            rules: vec![
                rule("Complete", true, "120 test cases executed"),
                rule("NewFailures", false, "1 new failure, at most 0 allowed"),
            ],
            new_failures: vec![NewFailure {
                test_case_identifier: "checkout.pay_by_card".to_owned(),
                headline: "TimeoutError: no response after 30 s\nmore".to_owned(),
            }],
            ..Default::default()
        };
        verdict.set_state(VerdictState::Failed);
        assert_eq!(of(&verdict).replace("\\_", "_"), EXAMPLE);
        verdict.url = None;
        assert!(of(&verdict).starts_with("### Nightly regression: failed\n"));
    }

    #[test]
    fn texts_of_tests_are_not_interpreted() {
        for (text, expected) in [
            ("a|b\n<b>[x](y)", r"a\|b \<b\>\[x\]\(y\)"),
            ("https://evil.example", r"https\://evil.example"),
            ("WWW.evil.example a: 1.5", r"WWW\.evil.example a: 1.5"),
            ("ada@evil.example #1", "ada\\@\u{200b}evil.example \\#\u{200b}1"),
            ("a\u{202e}b\u{1b}[31m\u{0}", r"aU+202Eb\[31m"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }
}
