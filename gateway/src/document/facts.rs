//! The facts of an execution as a whole: verdict, numbers, origin.

use assay_auth::Caller;
use assay_console::{Outcome as Shown, duration_if_known};
use assay_document::{Allowance, Changes, Counts, Outcome, Report, Rule, Tone, Verdict};
use assay_proto::{
    ExecutionStatistic, ExecutionStatus, TestResult, Timestamp,
    execution::{ChangeCounts, ExecutionEntry, ExecutionSummary, GetVerdictRequest, VerdictState},
    name_of,
};

use super::Documents;
use crate::problem::Problem;

/// Maximum length of a fact, in bytes, and of all of them.
const FACT: usize = 500;
const FACTS: usize = 64 << 10;

impl Documents {
    /// Reads the verdict of an execution, and returns the report without lists.
    pub(super) async fn facts(
        &mut self,
        caller: &Caller,
        summary: &ExecutionSummary,
    ) -> Result<Report, Problem> {
        let execution = summary.execution.clone().unwrap_or_default();
        let project_id = Some(summary.project_id.clone());
        let request = GetVerdictRequest { project_id, execution_id: execution.id.clone() };
        let verdict = self.executions.get_verdict(caller.call(request)).await?.into_inner();
        let mut rest = Allowance::new(FACTS);
        let rules = verdict.rules.iter().map(|rule| Rule {
            name: rest.line(&rule.rule, FACT),
            is_met: rule.is_met,
            message: rest.line(&rule.message, FACT),
        });
        let rules = rules.collect();
        let notes = summary.notes.iter().map(|note| rest.line(note, FACT)).collect();
        Ok(Report {
            verdict: match verdict.state() {
                VerdictState::Passed => Verdict::Passed,
                VerdictState::Failed => Verdict::Failed,
                VerdictState::Pending | VerdictState::Unspecified => Verdict::Pending,
            },
            rules,
            notes,
            changes: changes(&summary.changes.unwrap_or_default()),
            url: rest.line(summary.url.as_deref().unwrap_or_default(), FACT),
            ..of_execution(&execution, &mut rest)
        })
    }
}

fn of_execution(execution: &ExecutionEntry, rest: &mut Allowance) -> Report {
    let mut fact = |text: &str| rest.line(text, FACT);
    let subject = [&execution.software_name, &execution.software_version];
    let subject: Vec<_> = subject.into_iter().flatten().map(String::as_str).collect();
    Report {
        test_set: fact(&execution.test_set_name),
        result: match execution.status() {
            ExecutionStatus::Completed => of_run(execution.result()),
            status => Outcome { label: name_of(status), tone: Tone::Warn },
        },
        request_time: parts(execution.request_time.as_ref()),
        duration: took(execution).unwrap_or_default(),
        requested_by: fact(&execution.request_user),
        branch: fact(execution.branch.as_deref().unwrap_or_default()),
        commit: fact(execution.commit.as_deref().unwrap_or_default()),
        build: fact(execution.build.as_deref().unwrap_or_default()),
        environment: fact(execution.environment_name.as_deref().unwrap_or_default()),
        subject: fact(subject.join(" ").trim()),
        tags: fact(&execution.tags),
        counts: counts(&execution.statistic.clone().unwrap_or_default()),
        ..Report::default()
    }
}

fn counts(statistic: &ExecutionStatistic) -> Counts {
    Counts {
        total: statistic.test_cases_total,
        passed: statistic.test_cases_passed,
        failed: statistic.test_cases_failed,
        errors: statistic.test_cases_with_error,
        aborted: statistic.test_cases_aborted,
        canceled: statistic.test_cases_canceled,
        pending: statistic.test_cases_pending,
    }
}

/// Returns the numbers of changes. Those of failures do not count the known ones, which have a number of their own.
fn changes(counts: &ChangeCounts) -> Changes {
    Changes {
        new: counts.new - counts.muted_new,
        cause_changed: counts.cause_changed - counts.muted_cause_changed,
        still: counts.still - counts.muted_still,
        fixed: counts.fixed,
        flaky: counts.flaky - counts.muted_flaky,
        muted: counts.muted,
    }
}

/// Returns how long an execution has taken, unless it is running or that is not known.
fn took(execution: &ExecutionEntry) -> Option<String> {
    let is_running =
        matches!(execution.status(), ExecutionStatus::Queued | ExecutionStatus::Running);
    duration_if_known(execution.duration_in_sec).filter(|_| !is_running)
}

/// Returns the result of a test as the console knows it, which has its labels and rules.
pub(super) fn shown(result: TestResult) -> Shown {
    match result {
        TestResult::Passed => Shown::Passed,
        TestResult::Failed => Shown::Failed,
        TestResult::Error => Shown::Error,
        TestResult::Aborted => Shown::Aborted,
        TestResult::Canceled => Shown::Canceled,
        TestResult::NotExecuted => Shown::NotExecuted,
        TestResult::Unspecified => Shown::Absent,
    }
}

/// Returns the result of a test or a step in the words of readers.
pub(super) fn outcome(result: TestResult) -> Outcome {
    let result = shown(result);
    Outcome { label: result.label().to_owned(), tone: tone(result) }
}

/// Returns the result of an execution in the words of readers: tests that failed and tests with an error are one.
fn of_run(result: TestResult) -> Outcome {
    let result = shown(result);
    Outcome { label: result.summary().to_owned(), tone: tone(result) }
}

fn tone(result: Shown) -> Tone {
    match result {
        Shown::Passed => Tone::Pass,
        Shown::Failed | Shown::Error => Tone::Fail,
        Shown::Aborted => Tone::Warn,
        Shown::Canceled | Shown::NotExecuted | Shown::Absent => Tone::Dim,
    }
}

/// Returns year, month, day, hour, minute and second.
fn parts(time: Option<&Timestamp>) -> [u16; 6] {
    let text = time.map(ToString::to_string).unwrap_or_default();
    let mut numbers = text
        .split(|char: char| !char.is_ascii_digit())
        .map(|part| part.parse().unwrap_or_default());
    std::array::from_fn(|_| numbers.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_six_parts() {
        let time: Timestamp = serde_json::from_str("\"2026-03-02T09:30:04.100000Z\"").unwrap();
        assert_eq!(parts(Some(&time)), [2026, 3, 2, 9, 30, 4]);
        assert_eq!(parts(None), [0; 6]);
    }

    #[test]
    fn an_execution_has_the_result_and_the_duration_of_its_page() {
        let facts = |result: TestResult, status: ExecutionStatus, duration_in_sec| {
            let (result, status) = (result.into(), status.into());
            let execution =
                ExecutionEntry { result, status, duration_in_sec, ..Default::default() };
            let report = of_execution(&execution, &mut Allowance::new(1000));
            (report.result.label, report.duration)
        };
        let completed = ExecutionStatus::Completed;
        for (result, status, seconds, expected) in [
            (TestResult::Error, completed, 8.2, ("Failed", "8.2 s")),
            (TestResult::Canceled, completed, 0.0, ("Canceled", "")),
            (TestResult::Passed, completed, 0.0, ("Passed", "")),
            (TestResult::Passed, ExecutionStatus::Running, 8.2, ("Running", "")),
        ] {
            let (label, duration) = facts(result, status, seconds);
            assert_eq!((label.as_str(), duration.as_str()), expected);
        }
        assert_eq!(outcome(TestResult::Error).label, "Error", "a test has its own result");
        assert_eq!(outcome(TestResult::Canceled).label, "Skipped");
    }

    #[test]
    fn known_failures_are_counted_once() {
        let counts = ChangeCounts { new: 3, muted_new: 1, muted: 1, ..Default::default() };
        let changes = changes(&counts);
        assert_eq!((changes.new, changes.muted), (2, 1));
    }
}
