//! Many engines at one queue, and engines that wait.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_proto::{ReportStatus, execution::LeaseInput};
use futures::future::try_join_all;
use serde_json::json;

use crate::world::{Engine, World, instance, now};

/// An engine that waits for its turn as long as engines may.
fn patient(group: &str) -> LeaseInput {
    LeaseInput { wait_in_sec: Some(30), ..now(group, 1) }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_waits_gets_work_as_soon_as_there_is_some() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let (engine, other) = (world.engine(), world.engine());
    let (begun, mine, others) = (Instant::now(), patient(""), patient("others"));
    let waits = async { engine.lease(mine).await };
    let waits_elsewhere = async { other.lease(others).await };
    let work = async {
        let execution = world.dispatch().await?;
        // A connection to the database is not held by those who wait.
        assert_eq!(world.db.size() - u32::try_from(world.db.num_idle()).unwrap_or(0), 0);
        Ok(execution)
    };
    let rest = async {
        let (leases, execution) = tokio::try_join!(waits, work)?;
        assert_eq!(leases[0].execution_id, execution.id);
        world.engine().release(&leases[0].id).await?;
        let again = world.engine().lease(patient("")).await?;
        assert_eq!(again[0].schedule_id, leases[0].schedule_id);
        world.stop();
        Ok(())
    };
    let (nothing, ()) = tokio::try_join!(waits_elsewhere, rest)?;
    assert!(nothing.is_empty(), "a program that stops lets nobody wait");
    assert!(begun.elapsed() < Duration::from_secs(5), "nobody has waited for a second look");
    Ok(())
}

#[tokio::test]
async fn an_engine_does_not_wait_longer_than_it_wants() -> Result<()> {
    let world = World::new().await?;
    let begun = Instant::now();
    let wanted = LeaseInput { wait_in_sec: Some(1), ..now("", 1) };
    assert!(world.engine().lease(wanted).await?.is_empty());
    assert!((1..5).contains(&begun.elapsed().as_secs()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_two_engines_get_the_same_and_counts_stay_exact() -> Result<()> {
    let world = World::new().await?;
    let names: Vec<String> = (0..100).map(|nr| format!("case {nr}")).collect();
    let cases: Vec<(&str, i32)> = names.iter().map(|name| (name.as_str(), 3)).collect();
    world.include(&cases).await?;
    let execution = world.dispatch().await?;

    // Each of fifty takes two, and reports their instances one by one, those of both at once.
    let all = try_join_all((0..50).map(|_| work(world.engine()))).await?;

    let mut schedules: Vec<String> = all.into_iter().flatten().collect();
    schedules.sort_unstable();
    schedules.dedup();
    assert_eq!(schedules.len(), 100);
    let done = world.execution(&execution.id).await?;
    let statistic = done.statistic.as_ref().unwrap();
    let counts = (statistic.test_cases_pending, statistic.test_cases_passed);
    assert_eq!((counts, statistic.test_cases_failed), ((0, 50), 50));
    for report in &done.test_reports {
        assert_eq!(report.status(), ReportStatus::InReview);
        assert!((report.total_duration_in_sec - 1.5).abs() < 1e-9, "{report:?}");
    }
    assert_eq!(world.count("select count(*) from instance").await?, 300);
    Ok(())
}

async fn work(engine: Engine) -> Result<Vec<String>> {
    let leases = engine.lease(now("", 2)).await?;
    assert_eq!(leases.len(), 2);
    let reports = leases.iter().zip(["Passed", "Failed"]).map(async |(lease, result)| {
        for nr in [2, 1, 3] {
            engine.report(&lease.id, json!([instance(nr, result)])).await?;
        }
        engine.complete(&lease.id, false).await
    });
    try_join_all(reports).await?;
    Ok(leases.into_iter().map(|lease| lease.schedule_id).collect())
}
