//! Removal of the rows and files of deleted projects.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::Result;
use assay_execution::purge_deleted;
use assay_proto::execution::{Execution, TestReport};
use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{delete, list, rows, with_work};
use crate::{
    retention::set_retention,
    world::{World, now},
};

#[tokio::test]
async fn purging_a_project_keeps_other_projects() -> Result<()> {
    let mut world = World::new().await?;
    let (kept, engine, _) = with_work(&world).await?;
    engine.lease(now("", 5)).await?;
    let (before, files) = (rows(&world).await?, world.files());
    let other = (world.project.clone(), world.set.clone());
    (world.project, world.set) = world.project_with_set().await?;
    with_work(&world).await?;
    world.cancel(&world.start().await?.id).await?;
    world.change("update execution set archived = true where status = 'Canceled'").await?;

    delete(&world, &world.project).await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;

    assert_eq!((rows(&world).await?, world.files()), (before, files));
    (world.project, world.set) = other;
    assert_eq!(world.execution(&kept.id).await?.test_reports, kept_reports(&world, &kept).await?);
    assert_eq!(list(&world).await?, 2);
    // A transaction that was running during the deletion may have left rows, so the purge is repeated
    // until no such transaction can remain.
    let done = "select count(*) from deletion where purged_at is not null";
    assert_eq!(world.count(done).await?, 0);
    world.change("update deletion set deleted_at = now() - interval '1 day'").await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;
    assert_eq!(world.count(done).await?, 1);
    Ok(())
}

async fn kept_reports(world: &World, kept: &Execution) -> Result<Vec<TestReport>> {
    let mut reports = Vec::new();
    for report in &kept.test_reports {
        reports.push(world.test_report(&report.id).await?);
    }
    Ok(reports)
}

#[tokio::test]
async fn additions_during_the_deletion_of_a_customer_are_removed() -> Result<()> {
    let world = World::new().await?;
    delete(&world, &Uuid::nil().to_string()).await?;

    // Transactions that have begun before, and events that arrive in another order.
    set_retention(&world, 30).await?;
    for added in [
        "insert into pool (customer_id, project_id, id, name, values)
         select customer_id, customer_id, gen_random_uuid(), 'accounts', '[{}]' from deletion",
        "insert into appliances (customer_id, target_groups, revision)
         select customer_id, '{lab}', 1 from deletion",
        "insert into customer_state (customer_id, is_archived, changed_at)
         select customer_id, false, now() from deletion",
    ] {
        world.change(added).await?;
    }
    world.change("update deletion set deleted_at = now() - interval '1 day'").await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;

    for table in ["retention", "pool", "appliances", "customer_state"] {
        let count = format!("select count(*) from {table}");
        let left: i64 = sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&world.db).await?;
        assert_eq!(left, 0, "{table}");
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_cannot_be_removed_delays_only_its_execution() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let obstructed = world.start().await?;
    for execution in [&obstructed, &world.start().await?] {
        world.report(&execution.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
        world.upload_file(&execution.id, "run.log").await?;
    }
    let obstacle = world.obstruct_removal(&obstructed.id)?;

    delete(&world, &world.project).await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;

    assert_eq!(world.count("select count(*) from instance").await?, 0);
    assert_eq!(
        world.count("select count(*) from execution").await?,
        1,
        "the execution with the file"
    );
    fs::remove_file(obstacle)?;
    world.change("update unfinished_work set next_attempt_at = now()").await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;
    assert_eq!((rows(&world).await?, world.files()), (0, 0));
    Ok(())
}

/// Gives an execution this number of reports, with ten instances each.
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
        "insert into attempt (customer_id, test_report_id, instance_nr, attempt, steps,
             artifacts_uri, report_uri, debug_log_uri, execution_log_uri, installation_log_uri)
         select customer_id, r.id, n, 1, repeat('x', 500)::bytea, '', '', '', '', ''
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

/// Returns a timer that lets at least this much time pass between two ticks.
fn every(milliseconds: u64) -> Interval {
    let mut timer = interval(Duration::from_millis(milliseconds));
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    timer
}

/// Returns the longest observed duration of a statement that deletes rows.
async fn longest_removal(db: PgPool, stop: CancellationToken) -> Result<Duration> {
    let (mut longest, mut timer) = (0.0_f64, every(10));
    while stop.run_until_cancelled(timer.tick()).await.is_some() {
        let running: Option<f64> = sqlx::query_scalar(
            "select extract(epoch from max(clock_timestamp() - query_start))::float8
             from pg_stat_activity
             where datname = current_database() and state = 'active' and query like 'delete from%'",
        )
        .fetch_one(&db)
        .await?;
        longest = longest.max(running.unwrap_or_default());
    }
    Ok(Duration::from_secs_f64(longest))
}

#[tokio::test(flavor = "multi_thread")]
async fn purging_a_large_project_does_not_delay_writes_to_another() -> Result<()> {
    let mut world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let large = world.start().await?;
    enlarge(&world, &large.id, 3000).await?;
    assert_eq!(world.count("select count(*) from instance").await?, 30_000);
    let deleted = world.project.clone();
    (world.project, world.set) = world.project_with_set().await?;
    world.include(&[("a", 10_000)]).await?;
    let other = world.start().await?;
    delete(&world, &deleted).await?;

    let stop = CancellationToken::new();
    let longest = longest_removal(world.db.clone(), stop.clone());
    let work = async {
        let (mut nr, mut slowest, mut timer) = (0_i32, Duration::ZERO, every(5));
        while stop.run_until_cancelled(timer.tick()).await.is_some() {
            nr += 1;
            let begun = Instant::now();
            let result = json!([{ "Identifier": "a", "InstanceNr": nr, "Result": "Passed" }]);
            world.report(&other.id, result).await?;
            slowest = slowest.max(begun.elapsed());
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
    let remaining = world.count("select count(*) from instance").await?;
    assert_eq!(remaining, i64::from(written));
    // The limits are ten times the goals, since tests share their machine.
    assert!(longest < Duration::from_secs(1), "a statement ran for {longest:?}");
    assert!(slowest < Duration::from_secs(2), "a write waited for {slowest:?}");
    Ok(())
}
