//! The mail to the requester of an execution that has ended.

use std::time::Duration;

use assay_proto::{
    ExecutionStatistic, ExecutionStatus, TestResult, events::ExecutionChanged, name_of,
};

use super::letter::{Letter, escape, one_line, page};

/// Writes to the requester of an execution, with a link to its page, or to its record without a console.
pub(crate) fn execution_ended(
    customer: &str,
    origin: &str,
    has_console: bool,
    execution: &ExecutionChanged,
) -> Letter {
    let statistic = execution.statistic.clone().unwrap_or_default();
    let canceled = execution.status() == ExecutionStatus::Canceled;
    let result = name_of(execution.result());
    let outcome = if canceled { "Canceled" } else { &result };
    let set = one_line(execution.test_set_name.as_deref().unwrap_or("a test set"));
    let counts = counts(&statistic);
    let report = Report {
        subject: format!("[Assay] {outcome}: {set} ({counts})"),
        summary: if canceled {
            "An execution that was requested in your name was canceled."
        } else {
            "An execution that was requested in your name has ended."
        },
        facts: facts(customer, set, counts, execution, &statistic),
        failed: failed(execution, &statistic),
        link: link(origin, has_console, execution),
        reason: format!(
            "You receive this mail because MailWhenExecutionEnds is enabled in your settings. To \
             stop these mails, set it to false: PUT {origin}/api/users/current/settings"
        ),
    };
    Letter { text: report.text(), html: report.html(), subject: report.subject }
}

fn link(origin: &str, has_console: bool, execution: &ExecutionChanged) -> String {
    let ExecutionChanged { project_id, execution_id, .. } = execution;
    if has_console {
        return format!("{origin}/executions/{execution_id}");
    }
    format!("{origin}/api/projects/{project_id}/executions/{execution_id}")
}

/// The content of the mail, before escaping.
struct Report {
    subject: String,
    summary: &'static str,
    facts: Vec<(&'static str, String)>,
    failed: Vec<String>,
    link: String,
    reason: String,
}

impl Report {
    fn text(&self) -> String {
        let mut lines =
            vec!["Hello,".to_owned(), String::new(), self.summary.to_owned(), String::new()];
        lines.extend(
            self.facts.iter().map(|(name, fact)| format!("{:<13}{fact}", format!("{name}:"))),
        );
        if !self.failed.is_empty() {
            lines.extend([String::new(), "Failed:".to_owned()]);
            lines.extend(self.failed.iter().map(|failed| format!("- {failed}")));
        }
        for part in [&self.link, &self.reason] {
            lines.extend([String::new(), part.clone()]);
        }
        lines.join("\r\n") + "\r\n"
    }

    fn html(&self) -> String {
        let (summary, link) = (escape(self.summary), escape(&self.link));
        let reason = escape(&self.reason);
        let row = |(name, fact): &(&str, String)| {
            format!("<tr><th align=\"left\">{name}</th><td>{}</td></tr>\r\n", escape(fact))
        };
        let facts: String = self.facts.iter().map(row).collect();
        let item = |failed: &String| format!("<li>{}</li>\r\n", escape(failed));
        let mut failed: String = self.failed.iter().map(item).collect();
        if !failed.is_empty() {
            failed = format!("<p>Failed:</p>\r\n<ul>\r\n{failed}</ul>\r\n");
        }
        let body = format!(
            "<p>{summary}</p>\r\n<table>\r\n{facts}</table>\r\n{failed}\
             <p><a href=\"{link}\">{link}</a></p>\r\n<p>{reason}</p>"
        );
        page(&self.subject, &body)
    }
}

/// Lists the known facts about the execution, each on one line.
fn facts(
    customer: &str,
    set: String,
    counts: String,
    execution: &ExecutionChanged,
    statistic: &ExecutionStatistic,
) -> Vec<(&'static str, String)> {
    let software = [&statistic.software_name, &statistic.software_version];
    let software: Vec<&str> = software.into_iter().flatten().map(String::as_str).collect();
    let requested = statistic.execution_request_time;
    let facts = [
        ("Result", name_of(execution.result())),
        ("Test set", set),
        ("Software", one_line(&software.join(" "))),
        ("Environment", one_line(statistic.environment_name.as_deref().unwrap_or_default())),
        ("Tags", one_line(&statistic.tags)),
        ("Tests", counts),
        ("Duration", duration(execution.run_duration_in_sec)),
        (
            "Requested",
            requested
                .map(|time| time.0.format("%Y-%m-%d %H:%M UTC").to_string())
                .unwrap_or_default(),
        ),
        ("Customer", one_line(customer)),
    ];
    facts.into_iter().filter(|(_, fact)| !fact.is_empty()).collect()
}

/// Summarizes the results of the test cases. The number of passed ones is always included.
fn counts(statistic: &ExecutionStatistic) -> String {
    let counts = [
        (statistic.test_cases_failed, "failed"),
        (statistic.test_cases_with_error, "with errors"),
        (statistic.test_cases_aborted, "aborted"),
        (statistic.test_cases_canceled, "canceled"),
    ];
    let others = counts.into_iter().filter(|(count, _)| *count > 0);
    let others = others.map(|(count, result)| format!(", {count} {result}"));
    format!("{} passed{}", statistic.test_cases_passed, others.collect::<String>())
}

/// Lists the first failed test cases, and the number of others.
fn failed(execution: &ExecutionChanged, statistic: &ExecutionStatistic) -> Vec<String> {
    let listed = &execution.failed_test_cases;
    let mut lines: Vec<String> = listed
        .iter()
        .map(|case| {
            let error = if case.result() == TestResult::Error { " (error)" } else { "" };
            one_line(&format!("{}: {}{error}", case.identifier, case.name))
        })
        .collect();
    let all = statistic.test_cases_failed + statistic.test_cases_with_error;
    let more = usize::try_from(all).unwrap_or_default().saturating_sub(listed.len());
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Formats a duration as hours, minutes and seconds.
fn duration(seconds: f64) -> String {
    let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use assay_proto::events::FailedTestCase;

    use super::*;

    fn execution() -> ExecutionChanged {
        ExecutionChanged {
            execution_id: "e".to_owned(),
            project_id: "p".to_owned(),
            status: ExecutionStatus::Completed.into(),
            result: TestResult::Failed.into(),
            test_set_name: Some("Nightly regression".to_owned()),
            statistic: Some(ExecutionStatistic {
                software_name: Some("Rocket OS".to_owned()),
                software_version: Some("1.2.3".to_owned()),
                test_cases_passed: 12,
                test_cases_failed: 2,
                test_cases_with_error: 1,
                ..ExecutionStatistic::default()
            }),
            run_duration_in_sec: 3723.9,
            failed_test_cases: vec![FailedTestCase {
                identifier: "LOGIN-2".to_owned(),
                name: "Log in".to_owned(),
                result: TestResult::Error.into(),
                ..FailedTestCase::default()
            }],
            ..ExecutionChanged::default()
        }
    }

    #[test]
    fn a_report_lists_only_known_facts() {
        let letter = execution_ended("Acme", "https://assay.example", true, &execution());
        assert_eq!(
            letter.subject,
            "[Assay] Failed: Nightly regression (12 passed, 2 failed, 1 with errors)"
        );
        for line in [
            "Result:      Failed",
            "Test set:    Nightly regression",
            "Software:    Rocket OS 1.2.3",
            "Tests:       12 passed, 2 failed, 1 with errors",
            "Duration:    01:02:03",
            "Customer:    Acme",
            "- LOGIN-2: Log in (error)",
            "- and 2 more",
            "https://assay.example/executions/e",
        ] {
            assert!(letter.text.lines().any(|found| found == line), "{line}: {}", letter.text);
        }
        for absent in ["Environment", "Tags", "Requested"] {
            assert!(!letter.text.contains(absent), "{absent}: {}", letter.text);
        }
        assert!(letter.html.contains("<td>Rocket OS 1.2.3</td>"), "{}", letter.html);
        assert!(letter.html.contains("<li>LOGIN-2: Log in (error)</li>"), "{}", letter.html);
        let letter = execution_ended("Acme", "https://assay.example", false, &execution());
        let record = "\r\nhttps://assay.example/api/projects/p/executions/e\r\n";
        assert!(letter.text.contains(record), "{}", letter.text);
    }

    #[test]
    fn a_canceled_execution_is_reported_as_canceled() {
        let mut execution = execution();
        execution.set_status(ExecutionStatus::Canceled);
        let letter = execution_ended("Acme", "https://assay.example", true, &execution);
        assert!(letter.subject.starts_with("[Assay] Canceled: Nightly regression ("));
        assert!(
            letter.text.contains("was canceled") && letter.text.contains("Result:      Failed")
        );
    }

    #[test]
    fn names_are_escaped_and_kept_on_one_line() {
        let name = "<b>\"x\"</b>\r\nBcc: eve@example.com\r\n\r\n- forged";
        let mut execution = execution();
        execution.test_set_name = Some(name.to_owned());
        execution.failed_test_cases[0].name = name.to_owned();
        let statistic = execution.statistic.as_mut().unwrap();
        statistic.software_name = Some(name.to_owned());
        statistic.environment_name = Some(name.to_owned());
        statistic.tags = name.to_owned();
        let letter = execution_ended(name, "https://assay.example", true, &execution);
        assert!(!letter.subject.contains(['\r', '\n']), "{}", letter.subject);
        assert!(!letter.html.contains("<b>"), "{}", letter.html);
        let forged = |line: &str| line.starts_with("Bcc:") || line == "- forged";
        assert!(!letter.text.lines().any(forged), "{}", letter.text);
    }
}
