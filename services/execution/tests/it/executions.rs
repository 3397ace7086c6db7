//! Starting, completing and reading executions.

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, Page, ReportStatus, TestResult,
    execution::{
        Execution, ExecutionEntry, ExecutionMode, GetExecutionRequest, ListExecutionsRequest,
        StartExecutionInput,
    },
};
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};

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
    for execution in futures::future::try_join_all(starts).await? {
        let [a, b] = &execution.test_reports[..] else { panic!("two reports") };
        assert_eq!(a.execution_number, b.execution_number);
        numbers.push(a.execution_number);
    }

    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    Ok(())
}

#[tokio::test]
async fn only_an_external_execution_can_be_started() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let request = world.user.call(world.start_request(ExecutionMode::Dispatch));

    let refused = world.executions().start_execution(request).await.map(drop).unwrap_err();

    assert_eq!(fields(&refused), ["Mode"]);
    Ok(())
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
async fn others_are_told_what_becomes_of_an_execution() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let execution = world.start().await?;
    world.report(&execution.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
    world.complete(&execution.id).await?;

    let events = world.events().await?;

    let subjects: Vec<&str> = events.iter().map(|(subject, _)| subject.as_str()).collect();
    let expected = [
        "execution.requested",
        "execution.progressed",
        "test_report.finished",
        "execution.completed",
        "test_report.finished",
    ];
    assert_eq!(subjects, expected);
    let (requested, progressed, a, completed, b) =
        (&events[0].1, &events[1].1, &events[2].1, &events[3].1, &events[4].1);
    assert_eq!(requested["Statistic"]["TestCasesPending"], 2);
    assert!(requested["Statistic"]["ExecutionRequestTime"].is_string());
    assert_eq!(progressed["Statistic"]["TestCasesPassed"], 1);
    assert_eq!(completed["Status"], "Completed");
    let revisions = [requested, progressed, completed].map(|event| event["Revision"].clone());
    assert_eq!(revisions, [json!(1), json!(2), json!(3)]);
    assert_eq!(a["Reports"][0]["Result"], "Passed");
    assert_eq!(b["Reports"][0]["Result"], "Aborted");
    assert_eq!(b["Reports"][0]["Revision"], 2);
    assert_eq!(b["Reports"].as_array().map(Vec::len), Some(1));
    Ok(())
}

async fn list(world: &World, set: Option<&str>, page: Page) -> Result<Vec<ExecutionEntry>, Status> {
    let request = ListExecutionsRequest {
        project_id: world.project.clone(),
        test_set_id: set.map(str::to_owned),
        page: Some(page),
        archived: Some(false),
    };
    let batches = world.executions().list_executions(world.user.call(request)).await?;
    let batches: Vec<_> = batches.into_inner().try_collect().await?;
    Ok(batches.into_iter().flat_map(|batch| batch.items).collect())
}

#[tokio::test]
async fn executions_are_listed_newest_first() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let mut started = Vec::new();
    for _ in 0..5 {
        started.insert(0, world.start().await?.id);
    }
    let ids = |entries: Vec<ExecutionEntry>| entries.into_iter().map(|e| e.id).collect::<Vec<_>>();

    assert_eq!(ids(list(&world, None, Page::default()).await?), started);
    assert_eq!(ids(list(&world, Some(&world.set), Page::default()).await?), started);
    let page = Page { limit: Some(2), cursor: Some(started[1].clone()), q: None };
    assert_eq!(ids(list(&world, None, page).await?), started[2..4]);
    for (q, found) in [("IGHT", 5), ("100%", 0)] {
        let page = Page { q: Some(q.to_owned()), ..Page::default() };
        assert_eq!(list(&world, Some(&world.set), page).await?.len(), found, "{q}");
    }

    sqlx::query("update execution set archived = true where id::text = $1")
        .bind(&started[0])
        .execute(&world.db)
        .await?;
    assert_eq!(ids(list(&world, None, Page::default()).await?), started[1..]);
    let unknown = list(&world, Some(&world.project), Page::default()).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
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
