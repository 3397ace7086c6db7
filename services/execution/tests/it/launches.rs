//! Launches of ReportPortal, whose requests become results when they are over.

mod changes;
mod endings;
mod late;

use anyhow::Result;
use assay_execution::purge_deleted;
use assay_proto::{
    ExecutionStatus, TestResult,
    execution::{AddLaunchEntryRequest, Execution, FindLaunchesRequest, LaunchEntryKind, Step},
};
use serde_json::json;
use tonic::Code;
use uuid::Uuid;

use crate::world::{World, reason};

/// The number of artifacts with requests that did not become results.
const LATE: &str = "select count(*) from artifact where name like '%late.ndjson'";

/// Returns the number of test cases: all, pending, aborted, passed and failed.
fn counts(execution: &Execution) -> [i32; 5] {
    let statistic = execution.statistic.as_ref().unwrap();
    [
        statistic.test_cases_total,
        statistic.test_cases_pending,
        statistic.test_cases_aborted,
        statistic.test_cases_passed,
        statistic.test_cases_failed,
    ]
}

/// Returns the steps of the first instance of a test case.
async fn steps(world: &World, execution: &Execution, case: &str) -> Result<Vec<Step>> {
    let reports = &execution.test_reports;
    let report = reports.iter().find(|report| report.test_case_identifier == case).unwrap();
    let first = world.instances(report).await?.remove(0);
    let path = world.instance_path(report, &first.id);
    Ok(world.reports().get_instance(world.user.call(path)).await?.into_inner().steps)
}

#[tokio::test]
async fn a_launch_becomes_results_when_it_is_over() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    let suite = launch.item(None, "cart", json!({ "type": "SUITE" })).await?;
    let pays = launch.item(Some(&suite), "pays", json!({ "testCaseId": "cart.pays" })).await?;
    let fails = launch.item(Some(&suite), "fails", json!({ "codeRef": "cart.fails" })).await?;
    let step = launch.item(Some(&fails), "opens", json!({ "hasStats": false })).await?;
    for (item, status) in [(&step, "PASSED"), (&fails, "failed"), (&pays, "Passed")] {
        launch.finish_item(item, status).await?;
    }
    launch.finish_item(&suite, "FAILED").await?;

    let id = launch.finish().await?;
    let running = world.execution(&id).await?;
    assert_eq!(
        (running.status(), running.test_set_name.as_str()),
        (ExecutionStatus::Running, "Nightly")
    );
    assert_eq!(counts(&running), [2, 2, 0, 0, 0], "the catalog has adopted the test cases");
    world.launches.round().await?;
    assert_eq!(world.execution(&id).await?.status(), ExecutionStatus::Running, "logs may follow");
    launch.log(&fails, "ERROR", "AssertionError: 200 is not 201").await?;
    world.close_launches().await?;

    let ended = world.execution(&id).await?;
    assert_eq!((ended.status(), ended.result()), (ExecutionStatus::Completed, TestResult::Failed));
    assert_eq!(counts(&ended), [2, 0, 0, 1, 1]);
    let steps = steps(&world, &ended, "cart.fails").await?;
    let texts: Vec<_> = steps.iter().map(|step| step.actual_result.as_str()).collect();
    assert_eq!(texts, ["", "AssertionError: 200 is not 201"]);
    world.forget_requests().await?;
    assert_eq!(world.count("select count(*) from launch_request").await?, 0);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn requests_are_kept_until_their_launch_starts() -> Result<()> {
    let world = World::new().await?;
    let id = Uuid::now_v7().to_string();
    let launch = world.launch(&id);
    launch.test("early", "PASSED").await?;
    assert_eq!(launch.finish().await.unwrap_err().code(), Code::NotFound);

    let body = json!({ "name": "Nightly", "uuid": id });
    let (one, other) =
        tokio::try_join!(world.start_launch_as(body.clone()), world.start_launch_as(body))?;
    assert_eq!((&one.id, &one.link), (&id, &other.link));
    launch.test("later", "PASSED").await?;
    let execution = launch.finish().await?;
    world.close_launches().await?;

    assert_eq!(counts(&world.execution(&execution).await?), [2, 0, 0, 2, 0]);
    Ok(())
}

#[tokio::test]
async fn requests_of_a_launch_that_does_not_start_are_removed() -> Result<()> {
    let world = World::new().await?;
    world.launch(&Uuid::now_v7().to_string()).test("lost", "PASSED").await?;
    let kept = "select count(*) from launch where due_at > now() + interval '23 hours'";
    assert_eq!(world.count(kept).await?, 1);
    world.close_launches().await?;
    let rows = "select (select count(*) from launch) + (select count(*) from launch_request)";
    assert_eq!(world.count(rows).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_launch_that_has_ended_accepts_logs_but_no_items() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    let test = launch.test("pays", "PASSED").await?;
    let id = launch.finish().await?;
    assert_eq!(launch.finish().await?, id, "finishing again has no effect");
    world.close_launches().await?;

    assert_eq!(launch.finish().await?, id);
    let refused = launch.item(None, "late", json!({})).await.unwrap_err();
    assert_eq!(reason(&refused), "launch_ended");
    launch.log(&test, "INFO", "a late log").await?;
    launch.finish_item(&test, "FAILED").await?;
    world.close_launches().await?;

    assert_eq!(counts(&world.execution(&id).await?), [1, 0, 0, 1, 0]);
    assert_eq!(world.count(LATE).await?, 1);
    world.close_launches().await?;
    assert_eq!(world.count(LATE).await?, 1);
    world.forget_requests().await?;
    assert_eq!(world.count("select count(*) from launch_request").await?, 0);
    world.change("update launch set ended_at = now() - interval '8 days'").await?;
    world.launches.round().await?;
    assert_eq!(world.count("select count(*) from launch").await?, 0);
    Ok(())
}

#[tokio::test]
async fn the_next_caller_adopts_the_test_cases_of_a_launch_that_nobody_finished() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    launch.item(None, "hangs", json!({})).await?;
    launch.item(None, "empty file", json!({ "type": "TEST" })).await?;
    let replica = world.launches_of_replica()?;
    world.close_launches_with(&replica).await?;
    let ended = "select count(*) from launch where ended_at is not null";
    assert_eq!(world.count(ended).await?, 0, "the test cases are unknown, and so is a caller");

    world.start_launch("Another").await?;
    world.launches.round().await?;

    assert_eq!(world.count(ended).await?, 1);
    let id: String = sqlx::query_scalar(
        "select id::text from execution where test_set_name = 'Nightly' and status = 'Completed'",
    )
    .fetch_one(&world.db)
    .await?;
    assert_eq!(counts(&world.execution(&id).await?), [2, 0, 1, 1, 0]);
    Ok(())
}

#[tokio::test]
async fn files_of_logs_become_artifacts_of_instances() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    let test = launch.item(None, "pays", json!({})).await?;
    launch.file(&test, "attach-shot_shot", "one").await?;
    launch.file(&test, "attach-shot_shot", "another").await?;
    launch.finish_item(&test, "PASSED").await?;
    let id = launch.finish().await?;
    world.close_launches().await?;

    let execution = world.execution(&id).await?;
    let steps = steps(&world, &execution, "pays").await?;
    let links = &steps.last().unwrap().screenshots;
    assert_eq!(links.len(), 2, "{links:?}");
    assert_eq!(world.files(), 2);
    Ok(())
}

#[tokio::test]
async fn a_log_cannot_name_a_link_as_its_file() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    let test = launch.item(None, "pays", json!({ "codeRef": "pays" })).await?;
    let file = json!({ "name": "a", "artifact": "javascript:alert(1)" });
    launch.log_with(&test, json!({ "level": "INFO", "message": "x", "file": file })).await?;
    launch.finish_item(&test, "FAILED").await?;
    let id = launch.finish().await?;
    world.close_launches().await?;
    let steps = steps(&world, &world.execution(&id).await?, "pays").await?;
    assert!(!steps.is_empty() && steps.iter().all(|step| step.screenshots.is_empty()), "{steps:?}");
    Ok(())
}

#[tokio::test]
async fn launches_of_other_customers_are_unknown() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    let stranger = world.stranger().await;
    let find = FindLaunchesRequest { ids: vec![launch.id.clone()], numbers: Vec::new() };
    let found = world.launch_service().find_launches(stranger.call(find)).await?.into_inner();
    assert_eq!(found.launches.len(), 0);
    let body = json!({ "launchUuid": launch.id, "name": "x", "type": "STEP" }).to_string().into();
    let mut entry = AddLaunchEntryRequest { body, ..Default::default() };
    entry.set_kind(LaunchEntryKind::Start);
    world.launch_service().add_launch_entry(stranger.call(entry)).await?;

    let id = launch.finish().await?;
    world.close_launches().await?;
    assert_eq!(counts(&world.execution(&id).await?), [0, 0, 0, 0, 0]);
    Ok(())
}

#[tokio::test]
async fn the_launches_of_a_deleted_project_are_removed() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    world.start_launch("Also").await?.test("pays", "PASSED").await?;
    sqlx::query("insert into deletion (customer_id, project_id) values ($1, $2::uuid)")
        .bind(world.user.customer)
        .bind(&world.project)
        .execute(&world.db)
        .await?;

    world
        .change(
            "update launch set due_at = null where id = (select min(id::text)::uuid from launch)",
        )
        .await?;
    world.close_launches().await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;

    let rows = "select (select count(*) from launch) + (select count(*) from launch_request)
        + (select count(*) from execution)";
    assert_eq!(world.count(rows).await?, 0);
    Ok(())
}

#[tokio::test]
async fn launches_of_one_customer_do_not_delay_those_of_another() -> Result<()> {
    let world = World::new().await?;
    let other = world.stranger().await;
    for statement in [
        "create table taken (customer_id uuid, place bigint generated always as identity)",
        "create function note_taken() returns trigger language plpgsql as
         'begin insert into taken (customer_id) values (new.customer_id); return new; end'",
        "create trigger note_taken after update on launch for each row
         when (new.leased_until > now()) execute function note_taken()",
    ] {
        world.change(statement).await?;
    }
    let insert = "insert into launch (customer_id, id, number, due_at, leased_until)
         select $1, gen_random_uuid(), n, now() - make_interval(mins => $2),
             case when n = 1 then now() + interval '1 minute' end
         from generate_series($3, 20) as n";
    for (customer, minutes, first) in [(world.user.customer, 60, 1), (other.customer, 1, 20)] {
        let insert = sqlx::query(insert).bind(customer).bind(minutes).bind(first);
        insert.execute(&world.db).await?;
    }

    world.launches.round().await?;

    let place: i64 = sqlx::query_scalar("select place from taken where customer_id = $1")
        .bind(other.customer)
        .fetch_one(&world.db)
        .await?;
    assert!(place <= 3, "taken as number {place} of 20");
    Ok(())
}
