//! Starting and reading executions.

mod ends;
mod filters;
mod lists;

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, ReportStatus, TestResult,
    execution::{
        ExecutionMode, GetExecutionRequest, ListExecutionsRequest, OpenExecutionInput,
        OpenExecutionRequest, StartExecutionInput, StartExecutionRequest,
    },
};
use futures::future::try_join_all;
use serde_json::json;
use tonic::Code;

use crate::world::{World, fields, reason};

#[tokio::test]
async fn a_new_external_execution_is_running_without_results() -> Result<()> {
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
async fn executions_of_a_test_case_are_numbered_consecutively() -> Result<()> {
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
async fn requests_with_the_same_idempotency_key_start_one_execution() -> Result<()> {
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
async fn texts_with_nul_characters_are_refused() -> Result<()> {
    let world = World::new().await?;
    for (project, set) in [("Sh\0op", "Nightly"), ("Shop", "Night\0ly")] {
        let input = OpenExecutionInput {
            project: project.to_owned(),
            test_set: set.to_owned(),
            ..OpenExecutionInput::default()
        };
        let request =
            OpenExecutionRequest { execution: Some(input), ..OpenExecutionRequest::default() };
        let refused =
            world.executions().open_execution(world.user.call(request)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
    let body = json!({ "name": "Nightly", "attributes": [{ "key": "a", "value": "b\0" }] });
    world.start_launch_as(body).await?;
    Ok(())
}

#[tokio::test]
async fn the_idempotency_keys_of_a_deleted_project_are_free() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let request = world.start_request(ExecutionMode::External);
    let key = Some("one".to_owned());
    let first =
        world.start_by(StartExecutionRequest { idempotency_key: key.clone(), ..request }).await?;
    world
        .change(
            "insert into deletion (customer_id, project_id)
             select distinct customer_id, project_id from execution",
        )
        .await?;
    let input = OpenExecutionInput {
        project: "Other".to_owned(),
        test_set: "Nightly".to_owned(),
        ..OpenExecutionInput::default()
    };
    let request = OpenExecutionRequest {
        execution: Some(input),
        idempotency_key: key,
        ..OpenExecutionRequest::default()
    };
    let mut opened =
        world.executions().open_execution(world.user.call(request)).await?.into_inner();
    assert_ne!(opened.message().await?.unwrap().id, first.id);
    Ok(())
}

#[tokio::test]
async fn an_execution_needs_an_existing_set_subject_and_an_executable_case() -> Result<()> {
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
async fn executions_of_other_customers_are_not_found() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let stranger = world.stranger().await;
    let request =
        GetExecutionRequest { project_id: world.project.clone(), id: execution.id.clone() };

    let hidden = world.executions().get_execution(stranger.call(request.clone())).await;
    assert_eq!(hidden.map(drop).unwrap_err().code(), Code::NotFound);
    let lists = ListExecutionsRequest { project_id: world.project.clone(), ..Default::default() };
    let hidden = world.executions().list_executions(stranger.call(lists)).await;
    assert_eq!(hidden.map(drop).unwrap_err().code(), Code::NotFound);
    for (project, id) in [(&world.set, &execution.id), (&world.project, &"0".to_owned())] {
        let request = GetExecutionRequest { project_id: project.clone(), id: id.clone() };
        let misplaced = world.executions().get_execution(world.user.call(request)).await;
        assert_eq!(misplaced.map(drop).unwrap_err().code(), Code::NotFound);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_copied_up_to_a_total_size() -> Result<()> {
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
