//! Deletion of projects and customers: none of their records is found.

mod events;
mod lost;
mod order;
mod purge;
mod records;
mod tables;

use anyhow::Result;
use assay_execution::purge_deleted;
use assay_proto::{
    Batch as _, Page,
    execution::{
        DownloadArtifactRequest, Execution, ExportResultsRequest, GetDebugRecordRequest,
        ListExecutionStatisticsRequest, ListExecutionsRequest, ListTestCaseRunsRequest,
        UpdateExecutionRequest,
    },
};
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::world::{Engine, World, instance, now, reason};

/// Deletes a project, or with the nil UUID the customer, in the same way as its event.
async fn delete(world: &World, project: &str) -> Result<()> {
    sqlx::query("insert into deletion (customer_id, project_id) values ($1, $2::uuid)")
        .bind(world.user.customer)
        .bind(project)
        .execute(&world.db)
        .await?;
    Ok(())
}

/// Creates an execution with a result, and one with a lease on one of its two schedules.
async fn with_work(world: &World) -> Result<(Execution, Engine, String)> {
    world.include(&[("a", 1), ("b", 1)]).await?;
    let external = world.start().await?;
    world.report(&external.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
    world.upload_file(&external.id, "run.log").await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?.id;
    Ok((external, engine, lease))
}

/// Calls all methods that name an execution, and returns the error of each with its name.
async fn all_calls(world: &World, execution: &Execution) -> Vec<(&'static str, Status)> {
    let (id, report) = (&execution.id, &execution.test_reports[0]);
    let project_id = world.project.clone();
    let export = ExportResultsRequest { project_id, execution_id: id.clone(), format: 0 };
    let export = async { world.results().export_results(world.user.call(export)).await.map(drop) };
    let debug = GetDebugRecordRequest { id: report.id.clone() };
    let debug = async { world.debug().get_debug_record(world.user.call(debug)).await.map(drop) };
    let project_id = world.project.clone();
    let archive = UpdateExecutionRequest { project_id, id: id.clone(), ..Default::default() };
    let archive =
        async { world.executions().update_execution(world.user.call(archive)).await.map(drop) };
    let path = world.instance_path(report, &Uuid::now_v7().to_string());
    let instance = async { world.reports().get_instance(world.user.call(path)).await.map(drop) };
    let result = json!([{ "Identifier": "b", "Result": "Passed" }]);
    let upload = b"<testsuite><testcase name='x'/></testsuite>";
    let answers = [
        ("the execution", world.execution(id).await.map(drop)),
        ("the permanent URL of a report", world.test_report(&report.id).await.map(drop)),
        ("instances", world.instances(report).await.map(drop)),
        ("an instance", instance.await),
        ("JUnit", export.await),
        ("the debug record", debug.await),
        ("the archive", archive.await),
        ("cancel", world.cancel(id).await),
        ("complete", world.complete(id).await.map(drop)),
        ("results", world.report(id, result).await.map(drop)),
        ("a file", world.upload_file(id, "late.log").await),
        ("lists", list(world).await.map(drop)),
        ("statistics", statistics(world).await),
        ("the history of a test case", runs(world, &report.test_case_id).await),
        ("start", world.start().await.map(drop)),
        ("upload", world.upload(&[upload]).await.map(drop)),
    ];
    answers.map(|(name, answer)| (name, answer.expect_err(name))).into()
}

async fn list(world: &World) -> Result<usize, Status> {
    let request = ListExecutionsRequest { project_id: world.project.clone(), ..Default::default() };
    let batches = world.executions().list_executions(world.user.call(request)).await?;
    let batches: Vec<_> = batches.into_inner().try_collect().await?;
    Ok(batches.into_iter().map(|batch| batch.parse().unwrap().len()).sum())
}

async fn statistics(world: &World) -> Result<(), Status> {
    let request = ListExecutionStatisticsRequest {
        project_id: world.project.clone(),
        test_set_id: world.set.clone(),
        ..Default::default()
    };
    world.statistics().list_execution_statistics(world.user.call(request)).await.map(drop)
}

async fn runs(world: &World, test_case: &str) -> Result<(), Status> {
    let request = ListTestCaseRunsRequest {
        project_id: world.project.clone(),
        test_case_id: test_case.to_owned(),
        page: Some(Page::default()),
        ..Default::default()
    };
    world.statistics().list_test_case_runs(world.user.call(request)).await.map(drop)
}

/// Counts the rows of executions in all tables.
async fn rows(world: &World) -> Result<i64> {
    world
        .count(
            "select (select count(*) from execution) + (select count(*) from test_report)
                 + (select count(*) from instance) + (select count(*) from attempt)
                 + (select count(*) from schedule) + (select count(*) from lease)
                 + (select count(*) from artifact) + (select count(*) from test_case_counter)
                 + (select count(*) from stray_file) + (select count(*) from retention)
                 + (select count(*) from failure) + (select count(*) from case_day)
                 + (select count(*) from known_failure) + (select count(*) from share_link)
                 + (select count(*) from cause_rule) + (select count(*) from changed_causes)
                 + (select count(*) from test_case_state) + (select count(*) from monitor)
                 + (select count(*) from incident) + (select count(*) from incident_search)
                 + (select count(*) from launch) + (select count(*) from launch_request)
                 + (select count(*) from incident) + (select count(*) from incident_execution)
                 + (select count(*) from incident_search)
                 + (select count(*) from number) + (select count(*) from number_counter)",
        )
        .await
}

#[tokio::test]
async fn deleting_a_project_hides_all_its_records() -> Result<()> {
    let world = World::new().await?;
    let (execution, ..) = with_work(&world).await?;
    let events = world.events().await?.len();
    let link = world.artifact_link(&execution.id, "other.log").await?;
    let download = async |link: DownloadArtifactRequest| {
        world.artifacts().download_artifact(tonic::Request::new(link)).await.map(drop)
    };
    download(link.clone()).await?;

    delete(&world, &world.project).await?;

    for (name, refused) in all_calls(&world, &execution).await {
        assert_eq!(refused.code(), Code::NotFound, "{name}: {refused:?}");
    }
    assert_eq!(download(link).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(world.events().await?.len(), events, "no event was published");
    Ok(())
}

#[tokio::test]
async fn deleting_a_project_revokes_its_leases_and_dequeues_its_work() -> Result<()> {
    let world = World::new().await?;
    let (_, engine, lease) = with_work(&world).await?;
    let length = world.length("", &[]).await?;
    assert_eq!((length.queued, length.running), (1, 1));

    delete(&world, &world.project).await?;

    assert_eq!(world.length("", &[]).await?.total, 0, "no engine is needed for it");
    let responses = [
        engine.renew(&lease).await.map(drop),
        engine.report(&lease, json!([instance(1, "Passed")])).await.map(drop),
        engine.complete(&lease, false).await,
        engine.release(&lease).await,
    ];
    for response in responses {
        assert_eq!(reason(&response.expect_err("a lost lease")), "lease_lost");
    }
    assert!(engine.lease(now("", 5)).await?.is_empty());
    world.change("update lease set expires_at = now()").await?;
    world.change("update execution set deadline = now()").await?;
    world.reconcile().await?;
    assert!(engine.lease(now("", 5)).await?.is_empty(), "the work is not queued again");
    Ok(())
}

#[tokio::test]
async fn deleting_a_customer_hides_and_removes_all_its_records() -> Result<()> {
    let world = World::new().await?;
    let (execution, engine, lease) = with_work(&world).await?;

    delete(&world, &Uuid::nil().to_string()).await?;

    for (name, refused) in all_calls(&world, &execution).await {
        assert_eq!(refused.code(), Code::NotFound, "{name}: {refused:?}");
    }
    assert_eq!(reason(&engine.renew(&lease).await.unwrap_err()), "lease_lost");
    assert!(engine.lease(now("", 5)).await?.is_empty());
    purge_deleted(&world.db, world.artifacts_store()).await?;
    assert_eq!((rows(&world).await?, world.files()), (0, 0));
    Ok(())
}
