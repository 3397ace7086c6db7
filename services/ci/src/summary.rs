//! The outcome of an execution, for people.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
};

use anyhow::Context;

use crate::{environment::Summary, execution::Execution};

/// Returns the outcome in a line, and a line for each test to look at.
pub(crate) fn text(execution: &Execution) -> String {
    let mut text = format!("{}: {}\n", execution.test_set_name, counts(execution));
    if let Some(url) = &execution.url {
        let _ = writeln!(text, "{url}");
    }
    for report in &execution.test_reports {
        let flaky = if report.is_flaky { ", flaky" } else { "" };
        let _ = writeln!(text, "  {}{flaky}: {}", report.result, report.test_case_identifier);
    }
    text
}

/// Returns the outcome as Markdown, with a table of the tests to look at.
pub(crate) fn markdown(execution: &Execution) -> String {
    let name = escaped(&execution.test_set_name);
    let title = match &execution.url {
        Some(url) => format!("[{name}]({url})"),
        None => name,
    };
    let mut text = format!("### {title}: {}\n", counts(execution));
    if !execution.test_reports.is_empty() {
        text.push_str("\n| Result | Test |\n|---|---|\n");
    }
    for report in &execution.test_reports {
        let flaky = if report.is_flaky { ", flaky" } else { "" };
        let identifier = escaped(&report.test_case_identifier);
        let _ = writeln!(text, "| {}{flaky} | {identifier} |", report.result);
    }
    text.push('\n');
    text
}

/// Returns the result, and how many test cases passed and failed.
fn counts(execution: &Execution) -> String {
    let statistic = &execution.statistic;
    let result = if execution.has_ended() { &execution.result } else { "still open" };
    format!(
        "{result}, {} of {} tests passed, {} failed",
        statistic.passed, statistic.total, statistic.failed
    )
}

/// Returns a text without the characters that have a meaning in a cell of a Markdown table.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '\n' | '\r' => " ".to_owned(),
        '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' => format!("\\{c}"),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
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
    use super::*;
    use crate::execution::{Statistic, TestReport};

    #[test]
    fn names_of_tests_do_not_change_the_table() {
        let execution = Execution {
            id: "e".to_owned(),
            project_id: "p".to_owned(),
            test_set_name: "Nightly".to_owned(),
            url: Some("http://assay/e".to_owned()),
            completion_date_time: Some("2026-11-23T12:00:00Z".to_owned()),
            result: "Failed".to_owned(),
            statistic: Statistic { total: 2, passed: 1, failed: 1 },
            test_reports: vec![TestReport {
                result: "Failed".to_owned(),
                test_case_identifier: "shop.pay|card\n_x_".to_owned(),
                is_flaky: false,
            }],
        };

        let markdown = markdown(&execution);

        assert_eq!(
            markdown,
            "### [Nightly](http://assay/e): Failed, 1 of 2 tests passed, 1 failed\n\n\
             | Result | Test |\n|---|---|\n| Failed | shop.pay\\|card \\_x\\_ |\n\n"
        );
    }
}
