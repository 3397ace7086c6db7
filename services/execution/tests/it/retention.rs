//! Retention: results older than their project keeps them are removed.

use anyhow::Result;
use assay_execution::enforce_retention;
use assay_proto::{
    Batch, TestResult,
    execution::{Execution, ExportResultsRequest, ListArtifactsRequest},
};
use futures::TryStreamExt;
use serde_json::json;
use uuid::{NoContext, Timestamp, Uuid};

use crate::world::World;

/// Sets the retention of the project, in days.
pub(crate) async fn set_retention(world: &World, days: i32) -> Result<()> {
    sqlx::query(
        "insert into retention (customer_id, project_id, days, revision)
         values ($1, $2::uuid, $3, 1)
         on conflict (customer_id, project_id) do update set days = $3",
    )
    .bind(world.user.customer)
    .bind(&world.project)
    .bind(days)
    .execute(&world.db)
    .await?;
    Ok(())
}

/// Creates an execution with two results that was completed this number of days ago.
pub(crate) async fn completed(world: &World, days_ago: i32) -> Result<Execution> {
    let execution = world.start().await?;
    let step = json!([{ "StepNr": 1, "Result": "Passed", "DurationInSec": 1 }]);
    let results = json!([
        { "Identifier": "a", "InstanceNr": 1, "Result": "Passed", "Steps": step },
        { "Identifier": "a", "InstanceNr": 2, "Result": "Failed", "Steps": step },
    ]);
    world.report(&execution.id, results).await?;
    world.complete(&execution.id).await?;
    sqlx::query(
        "update execution set completion_date_time = now() - make_interval(days => $2)
         where id::text = $1",
    )
    .bind(&execution.id)
    .bind(days_ago)
    .execute(&world.db)
    .await?;
    Ok(world.execution(&execution.id).await?)
}

async fn counts(world: &World) -> Result<(i64, i64)> {
    let instances = world.count("select count(*) from instance").await?;
    let details = world.count("select count(*) from attempt").await?;
    Ok((instances, details))
}

#[tokio::test]
async fn results_past_their_retention_are_removed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    let (old, young) = (completed(&world, 31).await?, completed(&world, 29).await?);
    let running = world.start().await?;
    world.upload_file(&old.id, "old.log").await?;
    world.upload_file(&young.id, "young.log").await?;
    assert_eq!((counts(&world).await?, world.files()), ((4, 4), 2));

    enforce_retention(&world.db, world.artifacts_store()).await?;
    assert_eq!(
        (counts(&world).await?, world.files()),
        ((4, 4), 2),
        "a project without a retention keeps all results"
    );

    set_retention(&world, 30).await?;
    enforce_retention(&world.db, world.artifacts_store()).await?;

    assert_eq!((counts(&world).await?, world.files()), ((2, 2), 1));
    assert_eq!(world.execution(&old.id).await?, old, "the execution and its reports are kept");
    assert!(world.instances(&old.test_reports[0]).await?.is_empty());
    assert_eq!(world.instances(&young.test_reports[0]).await?.len(), 2);
    world.report(&running.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
    let unfinished =
        "select count(*) from execution where (expired_at is null) <> (pruned_at is null)";
    assert_eq!(world.count(unfinished).await?, 0);
    Ok(())
}

#[tokio::test]
async fn expired_results_are_not_shown_although_they_are_not_removed_yet() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    let execution = completed(&world, 31).await?;
    world.upload_file(&execution.id, "old.log").await?;
    assert_eq!(world.instances(&execution.test_reports[0]).await?.len(), 2);
    let list = ListArtifactsRequest {
        project_id: world.project.clone(),
        execution_id: execution.id.clone(),
        ..Default::default()
    };
    world.change("update execution set expired_at = now()").await?;

    assert!(world.instances(&execution.test_reports[0]).await?.is_empty());
    let artifacts = world.artifacts().list_artifacts(world.user.call(list)).await?.into_inner();
    let artifacts: Vec<_> = artifacts.try_collect().await?;
    assert_eq!(artifacts.iter().flat_map(|batch| batch.parse().unwrap()).count(), 0);
    assert_eq!((counts(&world).await?, world.files()), ((2, 2), 1));
    Ok(())
}

#[tokio::test]
async fn expired_executions_are_exported_without_instances() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    let old = completed(&world, 2).await?;
    set_retention(&world, 1).await?;
    enforce_retention(&world.db, world.artifacts_store()).await?;

    let request = ExportResultsRequest {
        project_id: world.project.clone(),
        execution_id: old.id.clone(),
        format: 0,
    };
    let file = world.results().export_results(world.user.call(request)).await?.into_inner();
    let file: Vec<_> = file.try_collect().await?;
    let file: Vec<u8> = file.iter().flat_map(|part| part.chunk.to_vec()).collect();
    let again = world.upload(&[&file]).await?;

    assert_eq!(again.test_reports[0].result(), TestResult::Failed);
    assert_eq!(again.test_reports[0].requested_instances_count, 1, "the instances are removed");
    Ok(())
}

/// Gives an execution, its reports and its instances the ids of another day.
async fn move_to(world: &World, execution: &Execution, day: &str) -> Result<()> {
    let seconds = chrono::DateTime::parse_from_rfc3339(day)?.timestamp().try_into()?;
    let new = || Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, 0));
    for table in ["test_report", "execution_tag"] {
        let drop = format!("alter table {table} drop constraint if exists {table}_execution_fkey");
        sqlx::query(sqlx::AssertSqlSafe(drop)).execute(&world.db).await?;
    }
    let (id, report) = (new(), new());
    for (statement, from, to) in [
        ("update execution set id = $2 where id::text = $1", &execution.id, id),
        (
            "update test_report set execution_id = $2 where execution_id::text = $1",
            &execution.id,
            id,
        ),
        (
            "update test_report set id = $2 where id::text = $1",
            &execution.test_reports[0].id,
            report,
        ),
        (
            "update instance set test_report_id = $2 where test_report_id::text = $1",
            &execution.test_reports[0].id,
            report,
        ),
        (
            "update attempt set test_report_id = $2 where test_report_id::text = $1",
            &execution.test_reports[0].id,
            report,
        ),
    ] {
        sqlx::query(statement).bind(from).bind(to).execute(&world.db).await?;
    }
    Ok(())
}

#[tokio::test]
async fn partitions_of_fully_expired_months_are_dropped() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    for month in ["2021-05-01", "2021-06-01"] {
        // The first partition contains everything before the current month.
        sqlx::query("select make_instance_partitions($1::date)")
            .bind(chrono::NaiveDate::parse_from_str(month, "%Y-%m-%d")?)
            .execute(&world.db)
            .await
            .expect_err("an overlapping partition");
    }
    for table in ["instance", "attempt"] {
        let text = format!(
            "alter table {table} detach partition {table}_before;
             create table {table}_2021_05 partition of {table}
                 for values from (first_id_at('2021-05-01Z')) to (first_id_at('2021-06-01Z'));
             create table {table}_2021_06 partition of {table}
                 for values from (first_id_at('2021-06-01Z')) to (first_id_at('2021-07-01Z'))"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&world.db).await?;
    }
    let (may, june) = (completed(&world, 2000).await?, completed(&world, 2000).await?);
    let now = completed(&world, 0).await?;
    move_to(&world, &may, "2021-05-15T00:00:00Z").await?;
    move_to(&world, &june, "2021-06-15T00:00:00Z").await?;
    assert_eq!(counts(&world).await?, (6, 6));
    // The execution of June has not expired.
    sqlx::query(
        "update execution set completion_date_time = now()
         where id >= first_id_at('2021-06-01Z') and id < first_id_at('2021-07-01Z')",
    )
    .execute(&world.db)
    .await?;
    set_retention(&world, 30).await?;

    enforce_retention(&world.db, world.artifacts_store()).await?;

    let tables = "select count(*) from pg_class where relname like '%2021\\___'
        and relkind = 'r'";
    assert_eq!(world.count(tables).await?, 2, "the partitions of June are kept");
    assert_eq!(counts(&world).await?, (4, 4));
    // As if the execution had been added since the partition was chosen.
    let drop = sqlx::query("select drop_instance_partition('instance_2021_06')");
    let refused = drop.execute(&world.db).await.expect_err("an execution that has not expired");
    let code = refused.as_database_error().and_then(sqlx::error::DatabaseError::code);
    assert_eq!(code.as_deref(), Some("55P03"), "the next run tries again: {refused}");
    assert_eq!(counts(&world).await?, (4, 4));
    assert_eq!(world.instances(&now.test_reports[0]).await?.len(), 2);
    // A repetition has no effect.
    enforce_retention(&world.db, world.artifacts_store()).await?;
    assert_eq!(counts(&world).await?, (4, 4));
    Ok(())
}

#[tokio::test]
async fn partitions_exist_for_the_next_months() -> Result<()> {
    let world = World::new().await?;
    let beyond = "select count(*) from pg_inherits
        where inhparent = 'instance'::regclass
          and pg_get_expr((select relpartbound from pg_class where oid = inhrelid), inhrelid)
              like '%' || first_id_at(date_trunc('month', now() + interval '2 months', 'utc'))::text || '%'";
    assert!(world.count(beyond).await? > 0);
    Ok(())
}

#[tokio::test]
async fn a_file_that_cannot_be_removed_delays_only_its_execution() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    let (obstructed, other) = (completed(&world, 3).await?, completed(&world, 2).await?);
    for execution in [&obstructed, &other] {
        world.upload_file(&execution.id, "run.log").await?;
    }
    let obstacle = world.obstruct_removal(&obstructed.id)?;
    set_retention(&world, 1).await?;

    enforce_retention(&world.db, world.artifacts_store()).await?;

    let unfinished = "select count(*) from execution where pruned_at is null";
    assert_eq!(world.count(unfinished).await?, 1);
    assert_eq!(counts(&world).await?, (2, 2), "the results of the other execution are removed");
    std::fs::remove_file(obstacle)?;
    enforce_retention(&world.db, world.artifacts_store()).await?;
    assert_eq!(
        (world.count(unfinished).await?, counts(&world).await?, world.files()),
        (0, (0, 0), 0)
    );
    Ok(())
}
