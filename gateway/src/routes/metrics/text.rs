//! Metrics in the text format of Prometheus.

use std::fmt::Write;

use assay_proto::{
    ExecutionStatistic, Timestamp,
    execution::{ChangeCounts, ProjectMetrics, TestSetOutcome, VerdictState},
};

/// The beginning of a page for the documentation.
pub(super) const EXAMPLE: &str = r#"# HELP assay_test_cases Test cases of the last execution, by result.
# TYPE assay_test_cases gauge
assay_test_cases{project="Web shop",test_set="Nightly",test_set_id="019cade2-11c0-7b21-8d4f-0a96c3e15f72",environment="",result="Passed"} 97
"#;

/// Returns the page of a project.
pub(super) fn of(metrics: &ProjectMetrics) -> String {
    let mut page = Page { text: String::new(), metrics };
    page.family("assay_test_cases", "Test cases of the last execution, by result.", |outcome| {
        by_result(&outcome.statistic.clone().unwrap_or_default())
    });
    page.family(
        "assay_test_case_changes",
        "Test cases of the last execution that changed, by change.",
        |outcome| by_change(outcome.changes.unwrap_or_default()),
    );
    page.family(
        "assay_test_cases_muted",
        "Test cases of the last execution whose failures are known.",
        |outcome| vec![("", f64::from(outcome.changes.unwrap_or_default().muted))],
    );
    page.family(
        "assay_execution_passed",
        "Whether the last execution meets the rules of its test set.",
        |outcome| vec![("", f64::from(u8::from(outcome.verdict() == VerdictState::Passed)))],
    );
    page.family("assay_execution_duration_seconds", "Duration of the last execution.", |outcome| {
        vec![("", outcome.duration_in_sec)]
    });
    page.family(
        "assay_execution_end_timestamp_seconds",
        "Time when the last execution ended, in seconds since 1970.",
        |outcome| vec![("", seconds(outcome))],
    );
    page.omitted();
    page.text
}

struct Page<'p> {
    text: String,
    metrics: &'p ProjectMetrics,
}

impl Page<'_> {
    /// Adds a gauge with the samples of each outcome, which are distinguished by a label.
    fn family(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Fn(&TestSetOutcome) -> Vec<(&'static str, f64)>,
    ) {
        self.head(name, help);
        let project = escaped(&self.metrics.project_name);
        for outcome in &self.metrics.outcomes {
            let labels = format!(
                r#"project="{project}",test_set="{}",test_set_id="{}",environment="{}""#,
                escaped(&outcome.test_set_name),
                outcome.test_set_id,
                escaped(outcome.environment_name()),
            );
            for (label, value) in samples(outcome) {
                let _ = writeln!(self.text, "{name}{{{labels}{label}}} {value}");
            }
        }
    }

    fn omitted(&mut self) {
        let name = "assay_outcomes_omitted";
        self.head(name, "Test sets and environments whose earlier outcomes are left out.");
        let project = escaped(&self.metrics.project_name);
        let _ = writeln!(self.text, r#"{name}{{project="{project}"}} {}"#, self.metrics.omitted);
    }

    fn head(&mut self, name: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} gauge");
    }
}

fn by_result(statistic: &ExecutionStatistic) -> Vec<(&'static str, f64)> {
    let counts = [
        (r#",result="Passed""#, statistic.test_cases_passed),
        (r#",result="Failed""#, statistic.test_cases_failed),
        (r#",result="Error""#, statistic.test_cases_with_error),
        (r#",result="Aborted""#, statistic.test_cases_aborted),
        (r#",result="Canceled""#, statistic.test_cases_canceled),
    ];
    counts.map(|(label, count)| (label, f64::from(count))).into()
}

fn by_change(changes: ChangeCounts) -> Vec<(&'static str, f64)> {
    let counts = [
        (r#",change="New""#, changes.new),
        (r#",change="CauseChanged""#, changes.cause_changed),
        (r#",change="Still""#, changes.still),
        (r#",change="Fixed""#, changes.fixed),
        (r#",change="Flaky""#, changes.flaky),
    ];
    counts.map(|(label, count)| (label, f64::from(count))).into()
}

fn seconds(outcome: &TestSetOutcome) -> f64 {
    let end = outcome.completion_date_time.unwrap_or_default();
    (end.0 - Timestamp::default().0).as_seconds_f64()
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> ProjectMetrics {
        let outcome = TestSetOutcome {
            test_set_id: "019cade2-11c0-7b21-8d4f-0a96c3e15f72".to_owned(),
            test_set_name: "Nightly".to_owned(),
            statistic: Some(ExecutionStatistic { test_cases_passed: 97, ..Default::default() }),
            changes: Some(ChangeCounts { cause_changed: 2, ..Default::default() }),
            verdict: VerdictState::Passed.into(),
            duration_in_sec: 12.5,
            ..Default::default()
        };
        ProjectMetrics { project_name: "Web shop".to_owned(), outcomes: vec![outcome], omitted: 3 }
    }

    #[test]
    fn each_family_has_a_type_and_its_samples() {
        let page = of(&metrics());
        assert!(page.starts_with(EXAMPLE), "{page}");
        assert!(page.ends_with("assay_outcomes_omitted{project=\"Web shop\"} 3\n"), "{page}");
        assert!(page.contains("environment=\"\"} 12.5\n"), "{page}");
        assert!(page.contains("environment=\"\",change=\"CauseChanged\"} 2\n"), "{page}");
        assert_eq!(page.matches("# TYPE").count(), 7, "{page}");
    }

    #[test]
    fn each_change_has_a_sample() {
        let mut metrics = metrics();
        let changes = ChangeCounts {
            new: 1,
            cause_changed: 2,
            still: 3,
            fixed: 4,
            flaky: 5,
            ..Default::default()
        };
        metrics.outcomes[0].changes = Some(changes);
        let page = of(&metrics);
        for (change, count) in
            [("New", 1), ("CauseChanged", 2), ("Still", 3), ("Fixed", 4), ("Flaky", 5)]
        {
            assert!(
                page.contains(&format!("change=\"{change}\"}} {count}\n")),
                "{change} in {page}"
            );
        }
    }

    #[test]
    fn names_cannot_end_a_label() {
        let mut metrics = metrics();
        metrics.outcomes[0].test_set_name = "a\"} 1\nassay_up{b=\"\\".to_owned();
        let page = of(&metrics);
        assert!(page.contains(r#"test_set="a\"} 1\nassay_up{b=\"\\","#), "{page}");
        assert_eq!(page.lines().count(), of(&self::metrics()).lines().count());
    }
}
