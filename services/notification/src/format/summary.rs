//! The contents of a message about notifications, before it is written in a format.

use super::{
    facts::{Facts, Statistic},
    span::{Line, Span, link, name, words},
    title::{counts, title},
};

/// Maximum size of the lines of a message, in bytes. Discord accepts the least, 4096 characters.
const MAX_SIZE: usize = 3000;

/// Maximum number of lines of a message. Microsoft Teams accepts 28 KB, in which each part of a line takes 60 bytes.
const MAX_LINES: usize = 25;

/// Maximum number of failed test cases that a message names.
const MAX_FAILED: usize = 5;

/// Length of a shown commit, in characters.
const COMMIT: usize = 12;

/// A message about one notification, or about several.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) title: Line,
    pub(super) lines: Vec<Line>,
    /// Whether it reports something bad, or something good, or neither.
    pub(super) is_good: Option<bool>,
}

impl Summary {
    pub(super) fn of(notifications: &[Facts]) -> Self {
        match notifications {
            [one] => Self::of_one(one),
            several => Self::of_several(several),
        }
    }

    fn of_one(facts: &Facts) -> Self {
        let mut lines = facts_of(facts);
        lines.extend(failed(facts));
        let targets = [
            facts.url.as_deref().and_then(|url| link("Open in Assay", url)),
            facts.ci_url.as_deref().and_then(|url| link("Open the CI run", url)),
        ];
        let mut line = Line::new();
        for link in targets.into_iter().flatten() {
            line.extend((!line.is_empty()).then(|| words(" · ")));
            line.push(link);
        }
        // The links are never left out.
        let lines = bounded(lines, size(&line));
        let lines = lines.into_iter().chain((!line.is_empty()).then_some(line)).collect();
        Self { title: title(facts), lines, is_good: is_good(facts) }
    }

    /// Lists several notifications by their titles.
    fn of_several(several: &[Facts]) -> Self {
        let lines = several.iter().map(|facts| {
            let mut line = vec![words("• ")];
            line.extend(title(facts));
            if let Some(link) = facts.url.as_deref().and_then(|url| link("open", url)) {
                line.extend([words(" · "), link]);
            }
            line
        });
        let is_good = if several.iter().any(|facts| is_good(facts) == Some(false)) {
            Some(false)
        } else {
            several.iter().find_map(is_good)
        };
        let title = vec![words(format!("{} notifications", several.len()))];
        Self { title, lines: bounded(lines.collect(), 0), is_good }
    }
}

/// Keeps the first lines, as far as they fit beside this number of bytes, and counts the others.
fn bounded(lines: Vec<Line>, reserved: usize) -> Vec<Line> {
    let (mut kept, mut used, count) = (Vec::new(), reserved, lines.len());
    for line in lines {
        used += size(&line);
        if used > MAX_SIZE || kept.len() == MAX_LINES {
            break;
        }
        kept.push(line);
    }
    let left = count - kept.len();
    kept.extend((left > 0).then(|| vec![words(format!("and {left} more"))]));
    kept
}

fn size(line: &[Span]) -> usize {
    // Markup and line ends.
    line.iter().map(Span::size).sum::<usize>() + 8
}

fn is_good(facts: &Facts) -> Option<bool> {
    let verdict = facts.verdict.as_deref().filter(|verdict| *verdict != "Pending");
    match verdict.or(facts.result.as_deref()) {
        Some("Passed") => Some(true),
        Some("Failed" | "Error" | "Aborted") => Some(false),
        _ => None,
    }
}

fn facts_of(facts: &Facts) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |label: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            lines.push(vec![words(format!("{label}: ")), name(value)]);
        }
    };
    let empty = Statistic::default();
    let statistic = facts.statistic.as_ref().unwrap_or(&empty);
    let software = format!("{} {}", statistic.software_name, statistic.software_version);
    if !facts.is_end() {
        add("Test set", facts.test_set_name.as_deref());
    }
    add("Subject", Some(software.trim()));
    add("Environment", Some(&statistic.environment_name));
    let commit: Option<String> =
        facts.commit.as_deref().map(|commit| commit.chars().take(COMMIT).collect());
    add("Commit", commit.as_deref());
    add("Build", facts.build.as_deref());
    add("By", facts.actor.as_ref().map(|actor| actor.name.as_str()));
    if let Some(results) = results(statistic).filter(|_| facts.is_end()) {
        lines.push(vec![words(format!("Results: {results}"))]);
    }
    let broken = facts.rules.iter().filter(|rule| !rule.is_met);
    lines.extend(broken.map(|rule| vec![words("Rule not met: "), name(&rule.message)]));
    lines
}

fn results(statistic: &Statistic) -> Option<String> {
    let results = counts(&[
        (statistic.test_cases_passed, "passed"),
        (statistic.test_cases_failed, "failed"),
        (statistic.test_cases_with_error, "with an error"),
        (statistic.test_cases_aborted, "aborted"),
        (statistic.test_cases_canceled, "skipped"),
    ])?;
    Some(format!("{results} of {}", statistic.test_cases_total))
}

fn failed(facts: &Facts) -> Vec<Line> {
    let failed = facts.failed_test_cases.iter().take(MAX_FAILED);
    let mut lines: Vec<_> = failed
        .map(|case| {
            let known = if case.identifier.is_empty() { &case.name } else { &case.identifier };
            vec![words("• "), name(known)]
        })
        .collect();
    if !lines.is_empty() {
        lines.insert(0, vec![words("Failed:")]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::format::{chat, span::text};

    pub(in crate::format) fn facts(fields: Value) -> Facts {
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn the_end_of_an_execution_says_how_it_ended_and_what_is_new() {
        let failed = facts(json!({
            "Source": "TestSet", "Target": "Execution", "Action": "Completed", "Result": "Failed",
            "Verdict": "Failed", "TestSetName": "Checkout", "Branch": "main",
            "Commit": "0123456789abcdef0123456789abcdef01234567", "Build": "17",
            "Statistic": {
                "TestCasesTotal": 120, "TestCasesPassed": 117, "TestCasesFailed": 2,
                "TestCasesWithError": 1, "SoftwareName": "Shop", "SoftwareVersion": "2.4.1",
                "EnvironmentName": "Firefox",
            },
            "Changes": {"New": 2, "Fixed": 1},
            "Rules": [
                {"Rule": "NewFailures", "IsMet": false, "Message": "2 new failures, at most 0 are allowed"},
                {"Rule": "PassRate", "IsMet": true, "Message": "97 %"},
            ],
            "FailedTestCases": [{"Identifier": "pay.card", "Name": "Pay"}],
            "Url": "https://assay.example/executions/1", "CiUrl": "https://ci.example/1",
            "Actor": {"Name": "Ada"},
        }));
        let summary = Summary::of(&[failed]);
        assert_eq!(text(&summary.title), "Checkout failed on main: 2 new failures, 1 fixed");
        let lines: Vec<_> = summary.lines.iter().map(|line| text(line)).collect();
        assert_eq!(
            lines,
            [
                "Subject: Shop 2.4.1",
                "Environment: Firefox",
                "Commit: 0123456789ab",
                "Build: 17",
                "By: Ada",
                "Results: 117 passed, 2 failed, 1 with an error of 120",
                "Rule not met: 2 new failures, at most 0 are allowed",
                "Failed:",
                "• pay.card",
                "Open in Assay · Open the CI run",
            ]
        );
        assert_eq!(summary.is_good, Some(false));
    }

    #[test]
    fn a_digest_lists_what_fits_and_counts_the_rest() {
        let one = || facts(json!({"Source": "x".repeat(100), "Action": "Deployed"}));
        let several: Vec<_> = (0..500).map(|_| one()).collect();
        let summary = Summary::of(&several);
        assert_eq!(text(&summary.title), "500 notifications");
        let size: usize = summary.lines.iter().map(|line| text(line).len()).sum();
        assert!(size <= MAX_SIZE, "{size}");
        let left = 500 - (summary.lines.len() - 1);
        assert_eq!(text(summary.lines.last().unwrap()), format!("and {left} more"));
    }

    #[test]
    fn a_digest_of_short_lines_is_one_that_teams_accepts() {
        let of_client = json!({"Origin": "Client", "Source": "Build", "Action": "Done"});
        let end = json!({
            "Source": "TestSet", "Target": "Execution", "Action": "Completed", "Verdict": "Failed",
            "TestSetName": "\"a\"", "Branch": "b", "Changes": {"New": 1, "Fixed": 1},
            "Url": "https://assay.example/e/1",
        });
        for fields in [of_client, end] {
            let several: Vec<_> = (0..500).map(|_| facts(fields.clone())).collect();
            let message = chat::teams(&Summary::of(&several)).to_string();
            assert!(message.len() < 24_000, "{}", message.len());
        }
    }
}
