//! The outcome of an execution, for people.
//!
//! Names and messages are those of reports, which may be untrusted: see [`Foreign`].

use std::{
    fmt::{Display, Write as _},
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
};

use anyhow::Context;
use assay_client::{Foreign, segment};

use crate::{environment::Summary, execution::Execution, verdict::Verdict};

/// Maximum number of rules, and of new failures, that are shown.
const MAX_SHOWN: usize = 100;

/// Returns the outcome in a line, and a line for each test to look at.
pub(crate) fn text(execution: &Execution) -> Vec<String> {
    let mut lines =
        vec![format!("{}: {}", execution.test_set_name, counts(execution, &execution.result))];
    lines.extend(execution.url.as_ref().map(Foreign::to_string));
    for report in &execution.test_reports {
        let flaky = if report.is_flaky { ", flaky" } else { "" };
        lines.push(format!("  {}{flaky}: {}", report.result, report.test_case_identifier));
    }
    lines
}

/// Returns a line for each rule that is not met, with what was found.
pub(crate) fn unmet(verdict: &Verdict) -> Vec<String> {
    let unmet = verdict.rules.iter().filter(|rule| !rule.is_met).take(MAX_SHOWN);
    unmet.map(|rule| format!("  not met: {}: {}", rule.rule, rule.message)).collect()
}

/// Returns the outcome as Markdown, with a table of the tests to look at.
pub(crate) fn markdown(execution: &Execution) -> String {
    let mut text =
        format!("### {}: {}\n", title(execution), counts(execution, &execution.result.markdown()));
    if !execution.test_reports.is_empty() {
        text.push_str("\n| Result | Test |\n|---|---|\n");
    }
    for report in &execution.test_reports {
        let flaky = if report.is_flaky { ", flaky" } else { "" };
        let (result, identifier) =
            (report.result.markdown(), report.test_case_identifier.markdown());
        let _ = writeln!(text, "| {result}{flaky} | {identifier} |");
    }
    text.push('\n');
    text
}

/// Returns the verdict as Markdown, with tables of the rules and the new failures.
pub(crate) fn verdict_markdown(execution: &Execution, verdict: &Verdict) -> String {
    let state = if verdict.has_passed() { "passed" } else { "failed" };
    let (statistic, changes) = (&execution.statistic, verdict.changes.unwrap_or_default());
    let mut text = format!(
        "### {}: {state}\n\n{} of {} test cases passed, {} failed, {} fixed, {} flaky, {} muted\n",
        title(execution),
        statistic.passed,
        statistic.total,
        statistic.failures(),
        changes.fixed,
        changes.flaky.saturating_sub(changes.muted_flaky),
        changes.muted
    );
    if !verdict.rules.is_empty() {
        text.push_str("\n| | Rule | |\n|---|---|---|\n");
    }
    for rule in verdict.rules.iter().take(MAX_SHOWN) {
        let mark = if rule.is_met { "✅" } else { "❌" };
        let _ =
            writeln!(text, "| {mark} | {} | {} |", rule.rule.markdown(), rule.message.markdown());
    }
    if !verdict.new_failures.is_empty() {
        text.push_str("\n| New failure | Message |\n|---|---|\n");
    }
    for failure in verdict.new_failures.iter().take(MAX_SHOWN) {
        let identifier = failure.test_case_identifier.markdown();
        let _ = writeln!(text, "| {identifier} | {} |", failure.headline.markdown());
    }
    text.push('\n');
    text
}

/// Returns the name of the test set, with a link to the execution if it has a page.
fn title(execution: &Execution) -> String {
    let name = execution.test_set_name.markdown();
    match execution.url.as_ref().and_then(|url| link(url.raw())) {
        Some(url) => format!("[{name}]({url})"),
        None => name,
    }
}

/// Returns a URL as the target of a link in Markdown, if it is one of a page.
fn link(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| {
        ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    })?;
    let encoded = |char: char| match char {
        ':' | '/' | '?' | '=' | '&' | '%' | '#' => char.to_string(),
        char => segment(char.encode_utf8(&mut [0; 4])),
    };
    Some(format!("{scheme}://{}", rest.chars().map(encoded).collect::<String>()))
}

/// Returns the result, and how many test cases passed and failed.
fn counts(execution: &Execution, result: &dyn Display) -> String {
    let statistic = &execution.statistic;
    let result: &dyn Display = if execution.has_ended() { result } else { &"still open" };
    format!(
        "{result}, {} of {} tests passed, {} failed",
        statistic.passed,
        statistic.total,
        statistic.failures()
    )
}

/// Adds a text in Markdown to the summary of the job.
pub(crate) fn publish(
    summary: &Summary,
    execution: &Execution,
    markdown: &str,
) -> anyhow::Result<()> {
    match summary {
        Summary::File(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(markdown.as_bytes()))
                .with_context(|| format!("cannot write the summary {path}"))
        }
        Summary::AzureCommand { directory } => {
            let path = Path::new(directory).join(format!("assay-{}.md", execution.id));
            fs::write(&path, markdown)
                .with_context(|| format!("cannot write the summary {}", path.display()))?;
            println!("##vso[task.uploadsummary]{}", path.display());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::execution::{Statistic, TestReport};

    fn execution() -> Execution {
        Execution {
            id: Uuid::nil(),
            project_id: Uuid::nil(),
            test_set_name: "Nightly".into(),
            url: Some("http://assay/e".into()),
            completion_date_time: Some("2026-11-23T12:00:00Z".into()),
            result: "Failed".into(),
            statistic: Statistic { total: 2, passed: 1, failed: 1, with_error: 0 },
            test_reports: vec![TestReport {
                result: "Failed".into(),
                test_case_identifier: "shop.pay|card\n_x_".into(),
                is_flaky: false,
            }],
        }
    }

    #[test]
    fn tests_that_could_not_run_are_among_those_that_failed() {
        let statistic = Statistic { total: 6, passed: 1, failed: 2, with_error: 3 };
        let execution = Execution { statistic, ..execution() };
        let line = "Nightly: Failed, 1 of 6 tests passed, 5 failed";
        assert_eq!(text(&execution)[0], line);
        let verdict = serde_json::json!({ "State": "Failed", "Rules": [], "Changes": null });
        let verdict = verdict_markdown(&execution, &serde_json::from_value(verdict).unwrap());
        assert!(verdict.contains("1 of 6 test cases passed, 5 failed, 0 fixed"), "{verdict}");
    }

    #[test]
    fn names_of_tests_do_not_change_the_table() {
        let markdown = markdown(&execution());

        assert_eq!(
            markdown,
            "### [Nightly](http://assay/e): Failed, 1 of 2 tests passed, 1 failed\n\n\
             | Result | Test |\n|---|---|\n| Failed | shop.pay\\|card \\_x\\_ |\n\n"
        );
    }
}
