//! Deleted projects and customers: nothing of them is found, and nothing of them is left.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::Result;
use assay_events::{Consumer, Event, Nats, NatsConfig, Relay, Stream, publish};
use assay_execution::{Deletions, purge_deleted};
use assay_proto::{
    CustomerId, Page,
    events::RecordChanged,
    execution::{
        DownloadArtifactRequest, Execution, ExportResultsRequest, GetDebugRecordRequest,
        ListExecutionStatisticsRequest, ListExecutionsRequest, ListTestCaseRunsRequest,
        UpdateExecutionRequest,
    },
};
use assay_runtime::nats::NatsServers;
use assay_testkit::{Broker, TestDatabase, eventually};
use futures::TryStreamExt;
use serde_json::json;
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::world::{Engine, World, instance, now, reason};

/// Deletes the project, or with the nil UUID the customer, as its event does.
async fn delete(world: &World, project: &str) -> Result<()> {
    sqlx::query("insert into deletion (customer_id, project_id) values ($1, $2::uuid)")
        .bind(world.user.customer)
        .bind(project)
        .execute(&world.db)
        .await?;
    Ok(())
}

/// An execution with a result, and one with a lease on one of its two schedules.
async fn with_work(world: &World) -> Result<(Execution, Engine, String)> {
    world.include(&[("a", 1), ("b", 1)]).await?;
    let external = world.start().await?;
    world.report(&external.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
    world.keep_file(&external.id, "run.log").await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?.id;
    Ok((external, engine, lease))
}

/// Reads and writes that name an execution, each with its name.
async fn all_calls(world: &World, execution: &Execution) -> Vec<(&'static str, Status)> {
    let (id, report) = (&execution.id, &execution.test_reports[0]);
    let project_id = world.project.clone();
    let export = ExportResultsRequest { project_id, execution_id: id.clone() };
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
        ("a file", world.keep_file(id, "late.log").await),
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
    Ok(batches.into_iter().map(|batch| batch.items.len()).sum())
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
    };
    world.statistics().list_test_case_runs(world.user.call(request)).await.map(drop)
}

#[tokio::test]
async fn nothing_of_a_deleted_project_is_found() -> Result<()> {
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
    assert_eq!(world.events().await?.len(), events, "nobody is told of what is gone");
    Ok(())
}

#[tokio::test]
async fn deleting_a_project_revokes_its_leases_and_withdraws_its_work() -> Result<()> {
    let world = World::new().await?;
    let (_, engine, lease) = with_work(&world).await?;

    delete(&world, &world.project).await?;

    let all = [
        engine.renew(&lease).await.map(drop),
        engine.report(&lease, json!([instance(1, "Passed")])).await.map(drop),
        engine.complete(&lease, false).await,
        engine.release(&lease).await,
    ];
    for sent in all {
        assert_eq!(reason(&sent.expect_err("the lease was lost")), "lease_lost");
    }
    assert!(engine.lease(now("", 5)).await?.is_empty());
    world.change("update lease set expires_at = now()").await?;
    world.change("update execution set deadline = now()").await?;
    world.reconcile().await?;
    assert!(engine.lease(now("", 5)).await?.is_empty(), "it does not come back");
    Ok(())
}

#[tokio::test]
async fn nothing_of_a_deleted_customer_is_found() -> Result<()> {
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

/// How many rows there are of executions, in all tables.
async fn rows(world: &World) -> Result<i64> {
    world
        .count(
            "select (select count(*) from execution) + (select count(*) from test_report)
                 + (select count(*) from instance) + (select count(*) from instance_detail)
                 + (select count(*) from schedule) + (select count(*) from lease)
                 + (select count(*) from artifact) + (select count(*) from test_case_counter)
                 + (select count(*) from stray_file) + (select count(*) from retention)",
        )
        .await
}

#[tokio::test]
async fn a_deleted_project_is_purged_and_its_neighbours_stay() -> Result<()> {
    let mut world = World::new().await?;
    let (kept, engine, _) = with_work(&world).await?;
    engine.lease(now("", 5)).await?;
    let (before, files) = (rows(&world).await?, world.files());
    let neighbour = (world.project.clone(), world.set.clone());
    (world.project, world.set) = world.project_with_set().await?;
    with_work(&world).await?;
    world.cancel(&world.start().await?.id).await?;
    world.change("update execution set archived = true where status = 'Canceled'").await?;

    delete(&world, &world.project).await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;

    assert_eq!((rows(&world).await?, world.files()), (before, files));
    (world.project, world.set) = neighbour;
    assert_eq!(world.execution(&kept.id).await?.test_reports, kept_reports(&world, &kept).await?);
    assert_eq!(list(&world).await?, 2);
    // As somebody who was writing at the time of the deletion may have left something, it is looked
    // at again for a while.
    let done = "select count(*) from deletion where purged_at is not null";
    assert_eq!(world.count(done).await?, 0);
    world.change("update deletion set deleted_at = now() - interval '1 day'").await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;
    assert_eq!(world.count(done).await?, 1);
    Ok(())
}

async fn kept_reports(
    world: &World,
    kept: &Execution,
) -> Result<Vec<assay_proto::execution::TestReport>> {
    let mut reports = Vec::new();
    for report in &kept.test_reports {
        reports.push(world.test_report(&report.id).await?);
    }
    Ok(reports)
}

#[tokio::test]
async fn a_file_that_cannot_be_removed_keeps_nothing_else() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let stuck = world.start().await?;
    for execution in [&stuck, &world.start().await?] {
        world.report(&execution.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
        world.keep_file(&execution.id, "run.log").await?;
    }
    let repair = world.spoil_files(&stuck.id)?;

    delete(&world, &world.project).await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;

    assert_eq!(world.count("select count(*) from instance").await?, 0);
    assert_eq!(world.count("select count(*) from execution").await?, 1, "the one that is stuck");
    fs::remove_file(repair)?;
    purge_deleted(&world.db, world.artifacts_store()).await?;
    assert_eq!((rows(&world).await?, world.files()), (0, 0));
    Ok(())
}

/// Makes an execution large: so many reports with ten instances each.
async fn enlarge(world: &World, execution: &str, reports: i32) -> Result<()> {
    sqlx::query(
        "update test_report set requested_instances_count = 10, finished_instances_count = 10
         where execution_id = $1::uuid",
    )
    .bind(execution)
    .execute(&world.db)
    .await?;
    sqlx::query(
        "insert into test_report
         select (jsonb_populate_record(r, jsonb_build_object(
             'id', overlay(gen_random_uuid()::text placing left(r.id::text, 14) from 1),
             'test_case_id', gen_random_uuid(), 'test_case_identifier', 'case ' || n
         ))).*
         from test_report r, generate_series(2, $2) as n
         where r.execution_id = $1::uuid",
    )
    .bind(execution)
    .bind(reports)
    .execute(&world.db)
    .await?;
    for statement in [
        "insert into instance (customer_id, test_report_id, id, instance_nr, duration_in_sec, result)
         select customer_id, r.id, gen_random_uuid(), n, 1, 'Passed'
         from test_report r, generate_series(1, 10) as n where r.execution_id = $1::uuid",
        "insert into instance_detail
         select customer_id, r.id, n, repeat('x', 500)::bytea, '', '', '', '', ''
         from test_report r, generate_series(1, 10) as n where r.execution_id = $1::uuid",
        "insert into schedule (customer_id, id, execution_id, project_id, test_report_id,
             report_sequence_nr, target_group, needs_public_ip, priority, status)
         select r.customer_id, gen_random_uuid(), r.execution_id, e.project_id, r.id, 1, 'lab',
             false, 0, 'Queued'
         from test_report r join execution e on e.id = r.execution_id
         where r.execution_id = $1::uuid",
    ] {
        sqlx::query(statement).bind(execution).execute(&world.db).await?;
    }
    Ok(())
}

/// How long the longest statement that removes something has been running, whenever looked at.
async fn longest_removal(db: PgPool, stop: CancellationToken) -> Result<Duration> {
    let mut longest = 0.0_f64;
    while !stop.is_cancelled() {
        let running: Option<f64> = sqlx::query_scalar(
            "select extract(epoch from max(clock_timestamp() - query_start))::float8
             from pg_stat_activity
             where datname = current_database() and state = 'active' and query like 'delete from%'",
        )
        .fetch_one(&db)
        .await?;
        longest = longest.max(running.unwrap_or_default());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(Duration::from_secs_f64(longest))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_project_is_removed_while_its_neighbour_keeps_working() -> Result<()> {
    let mut world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let large = world.start().await?;
    enlarge(&world, &large.id, 3000).await?;
    assert_eq!(world.count("select count(*) from instance").await?, 30_000);
    let deleted = world.project.clone();
    (world.project, world.set) = world.project_with_set().await?;
    world.include(&[("a", 10_000)]).await?;
    let neighbour = world.start().await?;
    delete(&world, &deleted).await?;

    let stop = CancellationToken::new();
    let longest = longest_removal(world.db.clone(), stop.clone());
    let work = async {
        let (mut nr, mut slowest) = (0_i32, Duration::ZERO);
        while !stop.is_cancelled() {
            nr += 1;
            let begun = Instant::now();
            let result = json!([{ "Identifier": "a", "InstanceNr": nr, "Result": "Passed" }]);
            world.report(&neighbour.id, result).await?;
            slowest = slowest.max(begun.elapsed());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        anyhow::Ok((nr, slowest))
    };
    let begun = Instant::now();
    let purge = async {
        purge_deleted(&world.db, world.artifacts_store()).await?;
        stop.cancel();
        Ok(())
    };
    let ((written, slowest), (), longest) = tokio::try_join!(work, purge, longest)?;
    let took = begun.elapsed();

    println!("removed in {took:?}, longest {longest:?}; {written} writes, slowest {slowest:?}");
    assert_eq!(world.count("select count(*) from execution").await?, 1);
    assert_eq!(world.count("select count(*) from schedule").await?, 0);
    let left = world.count("select count(*) from instance").await?;
    assert_eq!(left, i64::from(written));
    // Ten times what is aimed at, since tests share their machine.
    assert!(longest < Duration::from_secs(1), "a statement ran for {longest:?}");
    assert!(slowest < Duration::from_secs(2), "a neighbour waited for {slowest:?}");
    Ok(())
}

/// Publishes the events of a database as those of a service.
async fn relay(db: PgPool, nats: Nats, service: &'static str, stop: CancellationToken) {
    Relay::new(db, nats, Stream::of(service)).run(stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_events_take_effect_within_a_second() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let mut broker = Broker::new().await;
    broker.start().await;
    let config = NatsConfig {
        servers: NatsServers::at(broker.url().into()),
        nats_replicas: 1,
        event_retention_days: 1,
    };
    let nats = Nats::connect(&config, "test").await?;
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    for (name, service, noun) in [
        ("execution-projects", "catalog", "project"),
        ("execution-customers", "identity", "customer"),
    ] {
        let consumer = Consumer::new(name, Stream::of(service)).only(noun);
        tasks.spawn(consumer.run(world.db.clone(), nats.clone(), Deletions, stop.clone()));
    }
    tasks.spawn(relay(world.catalog_db().clone(), nats.clone(), "catalog", stop.clone()));
    let identity = TestDatabase::create("identity", &assay_execution::migrations()).await?;
    let identity = PgPool::connect_with(identity.options).await?;
    tasks.spawn(relay(identity.clone(), nats.clone(), "identity", stop.clone()));
    let applied = "select count(*) from inbox";
    let is_heard = async || (world.count(applied).await.ok()? > 0).then_some(());
    eventually("that the project's creation is heard of", is_heard).await;

    let begun = Instant::now();
    world.delete_project().await?;
    let is_gone = async || world.execution(&execution.id).await.err();
    let gone = eventually("that the execution is gone", is_gone).await;
    let took = begun.elapsed();
    assert_eq!(gone.code(), Code::NotFound);
    assert!(took < Duration::from_secs(1), "it took {took:?}");

    let customer = CustomerId::new();
    let changed = RecordChanged {
        source: "Customer".to_owned(),
        source_id: customer.to_string(),
        action: "Deleted".to_owned(),
        ..RecordChanged::default()
    };
    let event = Event::new(customer, customer, "customer", "deleted", &changed)?;
    let mut tx = assay_runtime::begin(&identity).await?;
    publish(&mut tx, &event).await?;
    tx.commit().await?;
    let noted = "select count(*) from deletion where project_id::text like '00000000-0000-%'";
    let is_noted = async || (world.count(noted).await.ok()? == 1).then_some(());
    eventually("that the customer is gone", is_noted).await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    broker.stop().await;
    Ok(())
}
