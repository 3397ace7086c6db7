//! Statistics of test sets, and the history of test cases.

use anyhow::Result;
use assay_proto::{
    Batch as _, ExecutionStatistic, Page, TestResult,
    execution::{
        ListExecutionStatisticsRequest, ListTestCaseRunsRequest, TestCaseRun,
        UpdateExecutionRequest,
    },
};
use assay_testkit::assert_planned_once;
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};
use uuid::{NoContext, Timestamp, Uuid};

use crate::world::{World, fields};

async fn statistics(
    world: &World,
    filter: ListExecutionStatisticsRequest,
) -> Result<Vec<ExecutionStatistic>, Status> {
    let request = ListExecutionStatisticsRequest {
        project_id: world.project.clone(),
        test_set_id: world.set.clone(),
        ..filter
    };
    let batches = world.statistics().list_execution_statistics(world.user.call(request)).await?;
    let batches: Vec<_> = batches.into_inner().try_collect().await?;
    Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

/// Creates an execution that was requested at this time, with these tags and this environment.
async fn requested(
    world: &World,
    time: &str,
    tags: &str,
    environment: Option<Uuid>,
) -> Result<String> {
    let id = world.start().await?.id;
    let seconds = chrono::DateTime::parse_from_rfc3339(time)?.timestamp().try_into()?;
    let then = Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, 0));
    // The foreign keys would be violated within the statement.
    for table in ["test_report", "execution_tag"] {
        let drop = format!("alter table {table} drop constraint if exists {table}_execution_fkey");
        sqlx::query(sqlx::AssertSqlSafe(drop)).execute(&world.db).await?;
    }
    sqlx::query(
        "with moved as (update test_report set execution_id = $2 where execution_id::text = $1)
         update execution
         set id = $2, request_time = $3::timestamptz, tags = $4, environment_id = $5
         where id::text = $1",
    )
    .bind(&id)
    .bind(then)
    .bind(time)
    .bind(tags)
    .bind(environment)
    .execute(&world.db)
    .await?;
    Ok(then.to_string())
}

/// Adds copies of an execution, of which PostgreSQL has statistics.
async fn start_many(world: &World, copies: i32) -> Result<()> {
    world.include(&[("a", 1)]).await?;
    world.start().await?;
    sqlx::query(
        "insert into execution
         select (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid()))).*
         from execution e, generate_series(1, $1)",
    )
    .bind(copies)
    .execute(&world.db)
    .await?;
    sqlx::query("analyze execution").execute(&world.db).await?;
    Ok(())
}

#[tokio::test]
async fn the_planner_expects_most_executions_to_be_live() -> Result<()> {
    let world = World::new().await?;
    start_many(&world, 1000).await?;

    let plan: serde_json::Value = sqlx::query_scalar(
        "explain (format json)
         select id from live_execution where customer_id = (select customer_id from execution limit 1)",
    )
    .fetch_one(&world.db)
    .await?;

    // Otherwise, the latest executions would be found by reading all.
    let rows = plan[0]["Plan"]["Plan Rows"].as_u64();
    assert!(rows.is_some_and(|rows| rows > 250), "{plan:#}");
    Ok(())
}

/// A plan of its own for each page takes PostgreSQL as long as the page.
#[tokio::test]
async fn postgresql_plans_statistics_once_also_when_it_has_those_of_the_table() -> Result<()> {
    let world = World::new().await?;
    start_many(&world, 2000).await?;
    for _ in 0..200 {
        let page = Page { limit: Some(100), ..Page::default() };
        let page = ListExecutionStatisticsRequest { page: Some(page), ..Default::default() };
        assert_eq!(statistics(&world, page).await?.len(), 100);
    }
    assert_planned_once(&world.db, "%from live_execution%limit 101%").await;
    Ok(())
}

#[tokio::test]
async fn statistics_of_a_set_can_be_filtered() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let lab = Uuid::now_v7();
    let early = requested(&world, "2026-03-01T00:00:00Z", "nightly, smoke", None).await?;
    let late = requested(&world, "2026-03-01T23:59:59Z", "weekly", Some(lab)).await?;
    let next = requested(&world, "2026-03-02T00:00:00Z", "smoke test", Some(lab)).await?;
    let all = [next.as_str(), late.as_str(), early.as_str()];
    let day = |day: &str| Some(format!("2026-{day}"));

    for (filter, expected) in [
        (ListExecutionStatisticsRequest::default(), &all[..]),
        (ListExecutionStatisticsRequest { from_date: day("03-01"), ..Default::default() }, &all),
        (
            ListExecutionStatisticsRequest { from_date: day("03-02"), ..Default::default() },
            &all[..1],
        ),
        (ListExecutionStatisticsRequest { to_date: day("03-01"), ..Default::default() }, &all[1..]),
        (ListExecutionStatisticsRequest { to_date: day("02-28"), ..Default::default() }, &[]),
        (
            ListExecutionStatisticsRequest {
                from_date: day("03-01"),
                to_date: day("03-01"),
                environment_id: Some(lab.to_string()),
                ..Default::default()
            },
            &all[1..2],
        ),
        (
            ListExecutionStatisticsRequest { tag: Some("smoke".into()), ..Default::default() },
            &all[2..],
        ),
        (ListExecutionStatisticsRequest { tag: Some("smok".into()), ..Default::default() }, &[]),
        (
            ListExecutionStatisticsRequest {
                page: Some(Page { limit: Some(1), cursor: Some(next.clone()), q: None }),
                ..Default::default()
            },
            &all[1..2],
        ),
    ] {
        let found = statistics(&world, filter.clone()).await?;
        let found: Vec<&str> =
            found.iter().map(|statistic| statistic.execution_id.as_str()).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_statistic_counts_cases_by_result() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1), ("c", 1)]).await?;
    let execution = world.start().await?;
    let results = json!([
        { "Identifier": "a", "Result": "Passed" }, { "Identifier": "b", "Result": "Failed" },
    ]);
    world.report(&execution.id, results).await?;
    let archived = UpdateExecutionRequest {
        project_id: world.project.clone(),
        id: execution.id.clone(),
        changes: Some(assay_proto::execution::ExecutionInput { archived: true }),
        fields: vec!["Archived".to_owned()],
        data_version: None,
    };
    world.executions().update_execution(world.user.call(archived)).await?;

    let listed = statistics(&world, ListExecutionStatisticsRequest::default()).await?;

    assert_eq!(Some(&listed[0]), world.execution(&execution.id).await?.statistic.as_ref());
    let counts = (listed[0].test_cases_pending, listed[0].test_cases_passed);
    assert_eq!((listed[0].test_cases_total, counts, listed[0].test_cases_failed), (3, (1, 1), 1));
    Ok(())
}

#[tokio::test]
async fn invalid_filters_are_rejected() -> Result<()> {
    let world = World::new().await?;
    let filter = ListExecutionStatisticsRequest {
        from_date: Some("2026-02-30".into()),
        to_date: Some("tomorrow".into()),
        environment_id: Some("0".into()),
        tag: Some("\0".into()),
        ..Default::default()
    };
    let refused = statistics(&world, filter).await.unwrap_err();
    assert_eq!(fields(&refused), ["fromDate", "toDate", "tag", "environmentId"]);
    let unknown = ListExecutionStatisticsRequest {
        environment_id: Some(Uuid::now_v7().to_string()),
        ..Default::default()
    };
    assert_eq!(fields(&statistics(&world, unknown).await.unwrap_err()), ["environmentId"]);

    let elsewhere = ListExecutionStatisticsRequest {
        project_id: world.project.clone(),
        test_set_id: world.project.clone(),
        ..Default::default()
    };
    let missing = world.statistics().list_execution_statistics(world.user.call(elsewhere)).await;
    assert_eq!(missing.map(drop).unwrap_err().code(), Code::NotFound);
    Ok(())
}

async fn runs(world: &World, case: &str, page: Page) -> Result<Vec<TestCaseRun>, Status> {
    let request = ListTestCaseRunsRequest {
        project_id: world.project.clone(),
        test_case_id: case.to_owned(),
        page: Some(page),
        ..Default::default()
    };
    let batches = world.statistics().list_test_case_runs(world.user.call(request)).await?;
    let batches: Vec<_> = batches.into_inner().try_collect().await?;
    Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

#[tokio::test]
async fn the_history_of_a_case_shows_its_flakiness() -> Result<()> {
    use TestResult::{Aborted, Failed, NotExecuted, Passed};

    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let mut case = String::new();
    for result in ["Passed", "Failed", "Passed", "Passed", "Aborted"] {
        let execution = world.start().await?;
        let results = json!([
            { "Identifier": "a", "Result": result, "DurationInSec": 2.5 },
            { "Identifier": "b", "Result": "Passed" },
        ]);
        world.report(&execution.id, results).await?;
        case = execution.test_reports[0].test_case_id.clone();
    }
    world.start().await?;

    let all = runs(&world, &case, Page::default()).await?;

    let results: Vec<TestResult> = all.iter().map(TestCaseRun::result).collect();
    assert_eq!(results, [NotExecuted, Aborted, Passed, Passed, Failed, Passed]);
    let numbers: Vec<i32> = all.iter().map(|run| run.execution_number).collect();
    assert_eq!(numbers, [6, 5, 4, 3, 2, 1]);
    let scores: Vec<f64> = all.iter().map(|run| run.flakiness_score).collect();
    assert_eq!(scores, [2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0, 1.0, 1.0, 0.0]);
    assert_eq!((all[1].average_duration_in_sec, all[1].tags.as_str()), (2.5, "nightly"));
    assert!(all[1].request_time.is_some());

    // The scores do not depend on the page.
    let mut paged = Vec::new();
    while paged.len() < all.len() {
        let cursor = paged.last().map(|run: &TestCaseRun| run.id.clone());
        let page = Page { limit: Some(2), cursor, q: None };
        paged.extend(runs(&world, &case, page).await?);
    }
    assert_eq!(paged, all);

    // A page does not begin with the latest runs again if the last run of the page before was removed.
    let removed = Some("01900000-0000-7000-8000-000000000000".to_owned());
    let page = Page { limit: Some(2), cursor: removed, q: None };
    assert!(runs(&world, &case, page).await?.is_empty());

    let missing = runs(&world, &world.set, Page::default()).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    Ok(())
}
