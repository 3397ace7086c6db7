//! The fields that readers of a share link see. A field that is not named here is not shared.

use assay_proto::{
    ExecutionStatistic, Timestamp,
    execution::{
        ExecutionSummary, Failure, Instance, InstanceAttempt, SharedAttempt, SharedExecution,
        SharedFailure, SharedInstance, SharedReport, SharedStatistic, SharedStep, Step,
        TestReportEntry, Verdict,
    },
};

pub(super) fn execution(
    summary: ExecutionSummary,
    verdict: &Verdict,
    expires_at: Timestamp,
) -> SharedExecution {
    let entry = summary.execution.unwrap_or_default();
    SharedExecution {
        test_set_name: entry.test_set_name,
        software_version: entry.software_version.unwrap_or_default(),
        software_name: entry.software_name.unwrap_or_default(),
        environment_name: entry.environment_name.unwrap_or_default(),
        branch: entry.branch.unwrap_or_default(),
        commit: entry.commit.unwrap_or_default(),
        request_time: entry.request_time,
        completion_date_time: entry.completion_date_time,
        status: entry.status,
        result: entry.result,
        statistic: entry.statistic.map(|counts| statistic(&counts)),
        changes: summary.changes,
        verdict: verdict.state,
        expires_at: Some(expires_at),
        duration_in_sec: entry.duration_in_sec,
    }
}

fn statistic(counts: &ExecutionStatistic) -> SharedStatistic {
    SharedStatistic {
        test_cases_total: counts.test_cases_total,
        test_cases_pending: counts.test_cases_pending,
        test_cases_passed: counts.test_cases_passed,
        test_cases_failed: counts.test_cases_failed,
        test_cases_with_error: counts.test_cases_with_error,
        test_cases_aborted: counts.test_cases_aborted,
        test_cases_canceled: counts.test_cases_canceled,
    }
}

pub(super) fn failure(failure: Failure) -> SharedFailure {
    SharedFailure {
        fingerprint: failure.fingerprint,
        headline: failure.headline,
        count: failure.count,
        variants: failure.variants,
        reports: failure.reports.into_iter().map(report).collect(),
    }
}

pub(super) fn report(entry: TestReportEntry) -> SharedReport {
    SharedReport {
        id: entry.id,
        test_case_identifier: entry.test_case_identifier,
        test_case_name: entry.test_case_name,
        result: entry.result,
        change: entry.change,
        is_flaky: entry.is_flaky,
        is_muted: entry.is_muted,
        attempts: entry.attempts,
        duration_in_sec: entry.duration_in_sec,
        fingerprint: entry.fingerprint,
        headline: entry.headline,
    }
}

pub(super) fn instance(entry: TestReportEntry, count: i32, instance: Instance) -> SharedInstance {
    let files = [
        instance.artifacts_uri,
        instance.report_uri,
        instance.debug_log_uri,
        instance.execution_log_uri,
        instance.installation_log_uri,
    ];
    SharedInstance {
        report: Some(report(entry)),
        instance_nr: instance.instance_nr,
        instance_count: count,
        variant: instance.variant,
        start_date_time: instance.start_date_time,
        finish_date_time: instance.finish_date_time,
        duration_in_sec: instance.duration_in_sec,
        result: instance.result,
        steps: instance.steps.into_iter().map(step).collect(),
        attempt: instance.attempt,
        attempts: instance.attempts.into_iter().map(attempt).collect(),
        files: files.into_iter().filter(|link| !link.is_empty()).collect(),
    }
}

fn attempt(attempt: InstanceAttempt) -> SharedAttempt {
    SharedAttempt {
        attempt: attempt.attempt,
        duration_in_sec: attempt.duration_in_sec,
        result: attempt.result,
        steps: attempt.steps.into_iter().map(step).collect(),
    }
}

fn step(step: Step) -> SharedStep {
    SharedStep {
        step_nr: step.step_nr,
        duration_in_sec: step.duration_in_sec,
        test_input: step.test_input,
        actual_result: step.actual_result,
        expected_result: step.expected_result,
        result: step.result,
        screenshots: step.screenshots,
        soft_verification: step.soft_verification,
    }
}
