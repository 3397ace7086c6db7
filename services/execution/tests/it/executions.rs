//! Starting, completing and reading executions.

mod lists;

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, ReportStatus, TestResult,
    catalog::TestSetInput,
    execution::{
        Execution, ExecutionMode, GetExecutionRequest, ListExecutionsRequest, StartExecutionInput,
        StartExecutionRequest,
    },
};
use futures::future::try_join_all;
use serde_json::json;
use tonic::Code;

use crate::world::{World, fields, reason};

#[tokio::test]
async fn a_started_execution_waits_for_its_results() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("login", 1), ("search", 3)]).await?;

    let execution = world.start().await?;

    assert_eq!(execution.status(), ExecutionStatus::Running);
    assert_eq!(execution.result(), TestResult::NotExecuted);
    assert_eq!(execution.test_set_name, "Nightly");
    assert_eq!(execution.tags, "nightly");
    assert_eq!(execution.request_user, "Ada Lovelace");
    assert!(execution.request_time.is_some() && execution.completion_date_time.is_none());
    let statistic = execution.statistic.as_ref().unwrap();
    assert_eq!((statistic.test_cases_total, statistic.test_cases_pending), (2, 2));
    let reports: Vec<_> = execution
        .test_reports
        .iter()
        .map(|report| (report.test_case_identifier.as_str(), report.requested_instances_count))
        .collect();
    assert_eq!(reports, [("login", 1), ("search", 3)]);
    let report = &execution.test_reports[0];
    assert_eq!(report.status(), ReportStatus::NotExecuted);
    assert_eq!(report.result(), TestResult::NotExecuted);
    assert_eq!((report.execution_number, report.tags.as_str()), (1, "nightly"));
    assert_eq!(world.execution(&execution.id).await?, execution);
    Ok(())
}

#[tokio::test]
async fn executions_of_a_test_case_are_counted() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let starts = (0..6).map(|_| world.start());

    let mut numbers = Vec::new();
    for execution in try_join_all(starts).await? {
        let [a, b] = &execution.test_reports[..] else { panic!("two reports") };
        assert_eq!(a.execution_number, b.execution_number);
        numbers.push(a.execution_number);
    }

    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    Ok(())
}

#[tokio::test]
async fn a_request_with_a_key_starts_one_execution_however_often_it_is_sent() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let with_key = |key: &str| {
        let request = world.start_request(ExecutionMode::External);
        StartExecutionRequest { idempotency_key: Some(key.to_owned()), ..request }
    };

    let started = try_join_all((0..8).map(|_| world.start_by(with_key("one")))).await?;
    let again = world.start_by(with_key("one")).await?;

    assert!(started.iter().all(|execution| execution.id == again.id));
    assert_eq!(world.count("select count(*) from execution").await?, 1);
    assert_eq!(again.test_reports[0].execution_number, 1);
    assert_ne!(world.start_by(with_key("two")).await?.id, again.id);
    assert_ne!(world.start().await?.id, again.id);

    let mut other = with_key("one");
    other.execution.as_mut().unwrap().tags = Some("other".into());
    let refused = world.start_by(other).await.unwrap_err();
    assert_eq!(
        (refused.code(), reason(&refused).as_str()),
        (Code::InvalidArgument, "idempotency_key_reused")
    );
    let refused = world.start_by(with_key("a key")).await.unwrap_err();
    assert_eq!(fields(&refused), ["Idempotency-Key"]);
    Ok(())
}

#[tokio::test]
async fn a_canceled_execution_is_over_at_once() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("passed", 1), ("failed", 2), ("none", 1)]).await?;
    let execution = world.start().await?;
    let results = json!([
        { "Identifier": "passed", "Result": "Passed" },
        { "Identifier": "failed", "Result": "Failed" },
    ]);
    world.report(&execution.id, results).await?;

    world.cancel(&execution.id).await?;

    let canceled = world.execution(&execution.id).await?;
    assert_eq!(canceled.status(), ExecutionStatus::Canceled);
    assert!(canceled.completion_date_time.is_some());
    assert_eq!(
        ends(&canceled),
        [
            (TestResult::Passed, ReportStatus::InReview),
            (TestResult::Failed, ReportStatus::InReview),
            (TestResult::Canceled, ReportStatus::Canceled),
        ]
    );
    assert_eq!(counts(&canceled), [3, 0, 1, 0, 0, 1, 1]);
    world.cancel(&execution.id).await?;
    assert_eq!(world.execution(&execution.id).await?, canceled, "again is no change");
    let late = json!([{ "Identifier": "none", "Result": "Passed" }]);
    let refused = world.report(&execution.id, late).await.unwrap_err();
    assert_eq!(reason(&refused), "execution_ended");
    let (last, data) = world.events().await?.into_iter().nth(3).unwrap();
    assert_eq!((last.as_str(), &data["Status"]), ("execution.canceled", &json!("Canceled")));

    let completed = world.start().await?;
    world.complete(&completed.id).await?;
    let refused = world.cancel(&completed.id).await.unwrap_err();
    assert_eq!(
        (refused.code(), reason(&refused).as_str()),
        (Code::FailedPrecondition, "execution_ended")
    );
    let unknown = world.cancel(&world.set).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn a_failure_cancels_what_has_not_started() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("half", 2), ("b", 1), ("c", 1)]).await?;
    world.stop_on_failure().await?;
    let execution = world.start().await?;
    let results = json!([
        { "Identifier": "half", "Result": "Passed" },
        { "Identifier": "a", "Result": "Failed" },
        { "Identifier": "b", "Result": "Passed" },
    ]);

    world.report(&execution.id, results).await?;

    let stopped = world.execution(&execution.id).await?;
    assert_eq!(
        ends(&stopped),
        [
            (TestResult::Failed, ReportStatus::InReview),
            (TestResult::Passed, ReportStatus::Running),
            (TestResult::Passed, ReportStatus::InReview),
            (TestResult::Canceled, ReportStatus::Canceled),
        ]
    );
    assert_eq!(stopped.status(), ExecutionStatus::Running, "its caller completes it");
    let late = json!([{ "Identifier": "c", "Result": "Passed" }]);
    assert_eq!(reason(&world.report(&execution.id, late).await.unwrap_err()), "report_ended");
    let rest = json!([{ "Identifier": "half", "InstanceNr": 2, "Result": "Passed" }]);
    world.report(&execution.id, rest).await?;
    assert_eq!(counts(&world.complete(&execution.id).await?), [4, 0, 1, 0, 0, 2, 1]);
    Ok(())
}

#[tokio::test]
async fn what_has_not_finished_in_time_is_aborted() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("passed", 1), ("none", 1)]).await?;
    let changes = TestSetInput { time_out: 10.0, ..TestSetInput::default() };
    world.change_set(changes, &["TimeOut"]).await?;
    let execution = world.start().await?;
    let result = json!([{ "Identifier": "passed", "Result": "Passed" }]);
    world.report(&execution.id, result).await?;

    world.reconcile().await?;
    assert_eq!(world.execution(&execution.id).await?.status(), ExecutionStatus::Running);
    let in_time = "select count(*) from execution
         where deadline = request_time + make_interval(mins => 10)";
    assert_eq!(world.count(in_time).await?, 1);
    world.change("update execution set deadline = now()").await?;
    world.reconcile().await?;

    let over = world.execution(&execution.id).await?;
    assert_eq!((over.status(), over.result()), (ExecutionStatus::Completed, TestResult::Aborted));
    assert_eq!(counts(&over), [2, 0, 0, 1, 0, 1, 0]);
    Ok(())
}

fn ends(execution: &Execution) -> Vec<(TestResult, ReportStatus)> {
    execution.test_reports.iter().map(|report| (report.result(), report.status())).collect()
}

#[tokio::test]
async fn what_the_catalog_refuses_is_refused() -> Result<()> {
    let world = World::new().await?;
    assert_eq!(world.start().await.unwrap_err().code(), Code::InvalidArgument);

    world.include(&[("a", 1)]).await?;
    let mut request = world.start_request(ExecutionMode::External);
    let input = request.execution.as_mut().unwrap();
    *input = StartExecutionInput { subject_id: Some(world.set.clone()), ..input.clone() };
    let unknown = world.executions().start_execution(world.user.call(request)).await;
    assert_eq!(fields(&unknown.map(drop).unwrap_err()), ["SubjectId"]);

    let mut request = world.start_request(ExecutionMode::External);
    request.test_set_id = world.project.clone();
    let unknown = world.executions().start_execution(world.user.call(request)).await;
    assert_eq!(unknown.map(drop).unwrap_err().code(), Code::NotFound);
    assert_eq!(world.count("select count(*) from execution").await?, 0);
    Ok(())
}

#[tokio::test]
async fn completing_aborts_what_is_missing() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("passed", 1), ("half", 2), ("failed", 2), ("error", 2), ("none", 1)]).await?;
    let execution = world.start().await?;
    let results = json!([
        { "Identifier": "passed", "Result": "Passed" },
        { "Identifier": "half", "Result": "Passed" },
        { "Identifier": "failed", "Result": "Failed" },
        { "Identifier": "error", "Result": "Error" },
    ]);
    world.report(&execution.id, results).await?;

    let completed = world.complete(&execution.id).await?;

    assert_eq!(completed.status(), ExecutionStatus::Completed);
    assert_eq!(completed.result(), TestResult::Error);
    assert!(completed.completion_date_time.is_some());
    let ends: Vec<_> =
        completed.test_reports.iter().map(|report| (report.result(), report.status())).collect();
    assert_eq!(
        ends,
        [
            (TestResult::Passed, ReportStatus::InReview),
            (TestResult::Aborted, ReportStatus::InReview),
            (TestResult::Failed, ReportStatus::InReview),
            (TestResult::Error, ReportStatus::EngineExecutionFailure),
            (TestResult::Aborted, ReportStatus::InReview),
        ]
    );
    assert_eq!(counts(&completed), [5, 0, 0, 2, 1, 1, 1]);
    assert_eq!(world.complete(&execution.id).await?, completed, "again is no change");
    Ok(())
}

/// Total, pending, canceled, aborted, with error, passed, failed.
fn counts(execution: &Execution) -> [i32; 7] {
    let statistic = execution.statistic.as_ref().unwrap();
    [
        statistic.test_cases_total,
        statistic.test_cases_pending,
        statistic.test_cases_canceled,
        statistic.test_cases_aborted,
        statistic.test_cases_with_error,
        statistic.test_cases_passed,
        statistic.test_cases_failed,
    ]
}

#[tokio::test]
async fn what_others_run_or_have_canceled_cannot_be_completed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    for (change, expected) in [
        ("update execution set mode = 'Dispatch'", "not_external"),
        ("update execution set mode = 'External', status = 'Canceled'", "execution_ended"),
    ] {
        let execution = world.start().await?;
        sqlx::query(change).execute(&world.db).await?;
        let refused = world.complete(&execution.id).await.unwrap_err();
        assert_eq!(
            (refused.code(), reason(&refused).as_str()),
            (Code::FailedPrecondition, expected)
        );
    }
    Ok(())
}

#[tokio::test]
async fn another_customers_execution_is_not_found() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let stranger = world.stranger().await;
    let request =
        GetExecutionRequest { project_id: world.project.clone(), id: execution.id.clone() };

    let theirs = world.executions().get_execution(stranger.call(request.clone())).await;
    assert_eq!(theirs.map(drop).unwrap_err().code(), Code::NotFound);
    let lists = ListExecutionsRequest { project_id: world.project.clone(), ..Default::default() };
    let theirs = world.executions().list_executions(stranger.call(lists)).await;
    assert_eq!(theirs.map(drop).unwrap_err().code(), Code::NotFound);
    for (project, id) in [(&world.set, &execution.id), (&world.project, &"0".to_owned())] {
        let request = GetExecutionRequest { project_id: project.clone(), id: id.clone() };
        let misplaced = world.executions().get_execution(world.user.call(request)).await;
        assert_eq!(misplaced.map(drop).unwrap_err().code(), Code::NotFound);
    }
    Ok(())
}

#[tokio::test]
async fn an_execution_without_a_time_out_ends_some_day() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let (vanished, unheard) = (world.start().await?, world.dispatch().await?);
    let due = "select count(*) from execution where deadline - request_time = interval '168 hours'";
    assert_eq!(world.count(due).await?, 2);
    world.change("update execution set deadline = deadline - interval '168 hours'").await?;
    world.reconcile().await?;
    for execution in [vanished, unheard] {
        let ended = world.execution(&execution.id).await?;
        assert_eq!(
            (ended.status(), ended.result()),
            (ExecutionStatus::Completed, TestResult::Aborted)
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn large_variables_are_copied_up_to_a_bound() -> Result<()> {
    let world = World::new().await?;
    let names: Vec<String> = (0..70).map(|nr| format!("case {nr}")).collect();
    let cases: Vec<(&str, i32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    world.include(&cases[..10]).await?;
    let enlarge = "update test_plan set variables = jsonb_build_array(jsonb_build_object(
        'PoolName', '', 'IsSecured', false, 'ValidationRule', '', 'ValidationErrorMsg', null,
        'Name', 'BLOB', 'DisplayName', '', 'Content', repeat('x', 1000000)))";
    sqlx::query(enlarge).execute(world.catalog_db()).await?;

    let execution = world.start().await?;

    assert_eq!(execution.test_reports.len(), 10);
    for (report, name) in execution.test_reports.iter().zip(&names) {
        assert_eq!(&report.test_case_identifier, name);
        assert_eq!(report.variables.as_ref().unwrap().items[0].content.len(), 1_000_000);
    }

    world.include(&cases[10..]).await?;
    sqlx::query(enlarge).execute(world.catalog_db()).await?;
    let refused = world.start().await.unwrap_err();
    assert_eq!(reason(&refused), "execution_too_large");
    assert_eq!(world.count("select count(*) from execution").await?, 1);
    Ok(())
}
