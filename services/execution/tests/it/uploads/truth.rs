//! Failures and numbers that a tool reports beside its tests, and files that are broken.

use anyhow::Result;
use assay_proto::{
    ReportStatus, TestResult,
    execution::{
        Execution, FormFile, GetVerdictRequest, OpenExecutionInput, TestReport,
        UploadResultsTarget, VerdictState,
    },
};
use tonic::Status;

use super::only_instance;
use crate::world::{World, reason};

const ROBOT: &[u8] = include_bytes!("../../../../kit/formats/tests/files/robot/suite-teardown.xml");
const RERUNS: &[u8] =
    include_bytes!("../../../../kit/formats/tests/files/junit/pytest-xdist-reruns.xml");
const BAZEL: &[u8] = include_bytes!("../../../../kit/formats/tests/files/junit/bazel-timeout.xml");

fn report<'e>(execution: &'e Execution, identifier: &str) -> &'e TestReport {
    let found = execution.test_reports.iter().find(|one| one.test_case_identifier == identifier);
    found.unwrap_or_else(|| panic!("no {identifier}: {:#?}", execution.test_reports))
}

async fn partial(world: &World, file: &str) -> Result<Execution, Status> {
    let target = UploadResultsTarget { partial: Some(true), ..world.upload_target() };
    world.upload_to(target, &[(FormFile::default(), file.as_bytes())]).await
}

#[tokio::test]
async fn a_failed_teardown_of_a_suite_fails_the_tests_that_were_read_before() -> Result<()> {
    let world = World::new().await?;

    let execution = world.upload(&[ROBOT]).await?;

    assert_eq!(execution.result(), TestResult::Failed);
    assert_eq!(execution.statistic.as_ref().unwrap().test_cases_failed, 2);
    let instance = only_instance(&world, report(&execution, "Shop.Adds")).await?;
    let last = instance.steps.last().unwrap();
    assert_eq!(last.actual_result, "Parent suite teardown failed:\ndatabase still open");
    Ok(())
}

#[tokio::test]
async fn a_skipped_teardown_of_a_suite_skips_the_tests_that_were_read_before() -> Result<()> {
    let world = World::new().await?;
    let file = "<robot><suite name='Shop'><test name='Adds'><status status='PASS'/></test>\
        <test name='Pays'><status status='FAIL'>200 == 401</status></test>\
        <status status='SKIP'>Skipped in suite teardown:\nno database</status></suite></robot>";

    let execution = world.upload(&[file.as_bytes()]).await?;

    for identifier in ["Shop.Adds", "Shop.Pays"] {
        let report = report(&execution, identifier);
        assert_eq!(report.result(), TestResult::Canceled, "{identifier}");
        let instance = only_instance(&world, report).await?;
        let last = instance.steps.last().unwrap();
        assert_eq!(last.actual_result, "Skipped in parent suite teardown:\nno database");
    }
    Ok(())
}

#[tokio::test]
async fn a_report_that_announces_more_tests_than_it_has_meets_no_gate() -> Result<()> {
    let world = World::new().await?;

    let execution = world.upload(&[b"TAP version 13\n1..7\nok 1 - adds\n"]).await?;

    assert_eq!(execution.result(), TestResult::Aborted);
    let run = only_instance(&world, report(&execution, "Test run")).await?;
    assert!(run.steps[0].actual_result.contains("6 of 7 tests are missing"));
    let request = GetVerdictRequest { project_id: None, execution_id: execution.id };
    let verdict = world.executions().get_verdict(world.user.call(request)).await?.into_inner();
    assert_eq!(verdict.state(), VerdictState::Failed);
    Ok(())
}

#[tokio::test]
async fn reruns_between_which_other_tests_stand_are_attempts() -> Result<()> {
    let world = World::new().await?;

    let execution = world.upload(&[RERUNS]).await?;

    assert_eq!(execution.test_reports.iter().filter(|report| report.is_flaky).count(), 4);
    let always = report(&execution, "test_flaky.test_always");
    assert_eq!((always.result(), always.requested_instances_count), (TestResult::Failed, 1));
    let instance = only_instance(&world, always).await?;
    assert_eq!((instance.attempt, instance.attempts.len()), (2, 1));
    assert_eq!(instance.attempts[0].result(), TestResult::Failed);
    Ok(())
}

#[tokio::test]
async fn a_test_that_passed_again_is_not_flaky() -> Result<()> {
    let world = World::new().await?;
    let test = |name: &str, first: &str| {
        format!(
            r#"{{"name": "{name}", "status": "passed", "duration": 1, "retries": 1,
                "retryAttempts": [{{"attempt": 1, "status": "{first}"}}]}}"#
        )
    };
    // Playwright repeats all tests of a serial group if one of them fails.
    let (opens, pays) = (test("opens", "passed"), test("pays", "failed"));
    let file = format!(
        r#"{{"reportFormat": "CTRF", "specVersion": "0.0.0",
            "results": {{"tool": {{"name": "playwright"}}, "tests": [{opens}, {pays}]}}}}"#
    );

    let execution = world.upload(&[file.as_bytes()]).await?;

    let (opens, pays) = (report(&execution, "opens"), report(&execution, "pays"));
    assert_eq!((opens.is_flaky, pays.is_flaky), (false, true));
    assert_eq!(only_instance(&world, opens).await?.attempt, 2);
    Ok(())
}

#[tokio::test]
async fn a_file_of_failed_tests_that_ran_again_has_further_attempts() -> Result<()> {
    let suite = |time: &str, tests: &str| {
        format!("<testsuite name='s' timestamp='2026-11-20T{time}Z'>{tests}</testsuite>")
    };
    let failed = "<testcase classname='c' name='pays' time='1'><failure/></testcase>";
    let passed = "<testcase classname='c' name='pays' time='1'/>";
    let other = "<testcase classname='c' name='adds' time='60'/>";
    let first = suite("10:00:00", &[failed, other].concat());
    for (second, instances) in [
        (suite("10:05:00", passed), 1),
        // A matrix of jobs at the same time.
        (suite("10:00:00", passed), 2),
        // It began after the failed test, while the other one of the first file still ran.
        (suite("10:00:30", passed), 2),
        (suite("10:05:00", &[passed, other].concat()), 2),
    ] {
        let world = World::new().await?;
        let execution = world.upload(&[first.as_bytes(), second.as_bytes()]).await?;
        let pays = report(&execution, "c.pays");
        assert_eq!(pays.requested_instances_count, instances, "{second}");
        assert_eq!(pays.is_flaky, instances == 1, "{second}");
        let expected = if instances == 1 { TestResult::Passed } else { TestResult::Failed };
        assert_eq!(pays.result(), expected, "{second}");
    }
    Ok(())
}

#[tokio::test]
async fn a_test_of_several_files_is_not_retried_whatever_its_tool_does_within_a_file() -> Result<()>
{
    // As pytest and Gradle write them, for two versions of Python and two variants of a build.
    let pytest = |tests: &str| format!("<testsuite name='pytest' tests='1'>{tests}</testsuite>");
    let gradle = |tests: &str| {
        format!(
            "<testsuite name='c' tests='1' skipped='0' failures='0' errors='0' \
             timestamp='2026-11-20T10:00:00' hostname='h' time='1'>{tests}</testsuite>"
        )
    };
    let failed = "<testcase classname='c' name='pays' time='1'><failure/></testcase>";
    let passed = "<testcase classname='c' name='pays' time='1'/>";
    for (first, second, expected) in [
        (pytest(passed), pytest(passed), TestResult::Passed),
        (pytest(failed), pytest(passed), TestResult::Failed),
        (gradle(failed), gradle(passed), TestResult::Failed),
    ] {
        let world = World::new().await?;
        let execution = world.upload(&[first.as_bytes(), second.as_bytes()]).await?;
        let pays = report(&execution, "c.pays");
        assert_eq!((pays.requested_instances_count, pays.is_flaky), (2, false), "{first}");
        assert_eq!(pays.result(), expected, "{first}");
    }
    Ok(())
}

#[tokio::test]
async fn the_output_of_a_suite_explains_its_failed_tests() -> Result<()> {
    let world = World::new().await?;
    let execution = world.upload(&[BAZEL]).await?;
    let instance = only_instance(&world, report(&execution, "pay/pay_test")).await?;
    let text = &instance.steps[0].actual_result;
    assert!(text.contains("exited with error code 142") && text.contains("Test timed out at"));
    Ok(())
}

#[tokio::test]
async fn replaced_characters_are_a_note_of_the_execution() -> Result<()> {
    let world = World::new().await?;
    let file = b"<testsuite name='s'><testcase name='a\xff' classname='c'/></testsuite>";

    let execution = world.upload(&[file]).await?;

    assert_eq!(execution.result(), TestResult::Passed);
    let note = "1 character is not valid text and was replaced by U+FFFD.";
    assert_eq!(execution.notes, [note]);
    assert_eq!(world.execution(&execution.id).await?.notes, [note]);
    Ok(())
}

#[tokio::test]
async fn a_broken_file_is_named_and_its_sound_tests_are_kept_on_request() -> Result<()> {
    let world = World::new().await?;
    let broken = "<testsuite name='s'>\n<testcase classname='c' name='a'/>\n<testcase name='b'";
    let sound = "<testsuite name='s'><testcase classname='c' name='z'/></testsuite>";
    let named = |name: &str| FormFile { name: name.to_owned(), ..FormFile::default() };
    let files = [(named("z.xml"), sound.as_bytes()), (named("a.xml"), broken.as_bytes())];

    let refused = world.upload_form(&files).await.unwrap_err();

    assert_eq!(reason(&refused), "malformed");
    for part in ["a.xml (file 2 of 2)", "JUnit XML", "line 3, column 1", "No file", "partial=true"]
    {
        assert!(refused.message().contains(part), "{}", refused.message());
    }
    assert_eq!(world.count("select count(*) from execution").await?, 0);

    let execution = partial(&world, broken).await?;
    assert_eq!(report(&execution, "c.a").result(), TestResult::Passed);
    let rest = report(&execution, "Incomplete report");
    assert_eq!((rest.result(), rest.status()), (TestResult::Aborted, ReportStatus::InReview));
    Ok(())
}

#[tokio::test]
async fn notes_of_reports_are_collected_in_an_open_execution() -> Result<()> {
    let world = World::new().await?;
    let input = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        ..OpenExecutionInput::default()
    };
    let execution = world.open(input).await?;
    let notes = world.add_report(&execution.id, None, b"1..1\nok 1 - a \xff\n").await?.notes;
    assert_eq!(notes.len(), 1);
    assert_eq!(world.execution(&execution.id).await?.notes, notes);
    Ok(())
}
