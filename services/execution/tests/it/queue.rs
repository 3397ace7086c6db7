//! The queue: engines that wait for work, and many engines at once.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::Result;
use assay_execution::Queue;
use assay_proto::{ReportStatus, execution::LeaseInput};
use assay_servers::{DataDir, Nats};
use assay_testkit::{eventually, test_dir};
use futures::{TryStreamExt, future::try_join_all, stream::FuturesUnordered};
use serde_json::json;
use uuid::Uuid;

use crate::world::{Engine, Server, World, instance, now};

/// Returns a request that waits for the maximum time.
fn waiting(group: &str) -> LeaseInput {
    LeaseInput { wait_in_sec: Some(30), ..now(group, 1) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_engine_gets_new_work_immediately() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let (engine, other) = (world.engine(), world.engine());
    let (begun, mine, others) = (Instant::now(), waiting(""), waiting("others"));
    let waits = async { engine.lease(mine).await };
    let waits_elsewhere = async { other.lease(others).await };
    let work = async {
        let execution = world.dispatch().await?;
        let in_use = || world.db.size() as usize - world.db.num_idle();
        let idle = async || (in_use() == 0).then_some(());
        eventually("idle connections", idle).await;
        Ok(execution)
    };
    let rest = async {
        let (leases, execution) = tokio::try_join!(waits, work)?;
        assert_eq!(leases[0].execution_id, execution.id);
        world.engine().release(&leases[0].id).await?;
        let again = world.engine().lease(waiting("")).await?;
        assert_eq!(again[0].schedule_id, leases[0].schedule_id);
        world.stop();
        Ok(())
    };
    let (nothing, ()) = tokio::try_join!(waits_elsewhere, rest)?;
    assert!(nothing.is_empty(), "stopping the program ends the wait");
    assert!(begun.elapsed() < Duration::from_secs(5), "the wait took until the next poll");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_wakes_engines_at_other_servers() -> Result<()> {
    let data = DataDir::lock(test_dir()?.join(Uuid::now_v7().to_string()))?;
    let nats = Nats::start(&data, None).await?;
    let client = async_nats::connect(nats.url()).await?;
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let queues = Mutex::new(Vec::new());
    let start = || {
        Server::start_with(&world, |runtime| {
            let queue = Queue::connect(runtime, client.clone());
            queues.lock().unwrap().push(queue.clone());
            Ok(queue)
        })
    };
    let servers = [start()?, start()?];
    let other_queue = queues.lock().unwrap()[1].clone();
    let [here, there] = servers.each_ref().map(|server| world.engine().at(server.connect()));
    eventually("a response", || async { there.lease(now("", 1)).await.ok() }).await;
    world.dispatch().await?;
    let lease = eventually("a lease", || async { here.lease_one().await.ok() }).await;
    let released = async {
        let waits = async || (other_queue.waiting() == 1).then_some(());
        eventually("an engine that waits at the other server", waits).await;
        here.release(&lease.id).await?;
        Ok(Instant::now())
    };
    let (leases, released) = tokio::try_join!(there.lease(waiting("")), released)?;
    assert_eq!(leases[0].schedule_id, lease.schedule_id);
    let took = released.elapsed();
    assert!(took < Duration::from_secs(3), "not woken by NATS: {took:?}");
    nats.stop().await
}

#[tokio::test]
async fn an_engine_waits_no_longer_than_requested() -> Result<()> {
    let world = World::new().await?;
    let begun = Instant::now();
    let request = LeaseInput { wait_in_sec: Some(1), ..now("", 1) };
    assert!(world.engine().lease(request).await?.is_empty());
    assert!((1..5).contains(&begun.elapsed().as_secs()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_engines_get_distinct_work_and_counts_are_exact() -> Result<()> {
    let world = World::new().await?;
    let names: Vec<String> = (0..100).map(|nr| format!("case {nr}")).collect();
    let cases: Vec<(&str, i32)> = names.iter().map(|name| (name.as_str(), 3)).collect();
    world.include(&cases).await?;
    let execution = world.dispatch().await?;

    // Each of fifty engines leases two schedules, and reports their instances concurrently.
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

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_engines_can_wait_for_the_same_work() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let engine = world.engine();
    let mut waits: FuturesUnordered<_> = (0..300).map(|_| engine.lease(waiting(""))).collect();
    let waiting = async |count| {
        let are_waiting = async || (world.queue.waiting() == count).then_some(());
        eventually("waiting engines", are_waiting).await;
    };
    let work = async {
        waiting(300).await;
        world.dispatch().await?;
        anyhow::Ok(())
    };
    let first = async { anyhow::Ok(waits.try_next().await?.unwrap_or_default()) };
    let (first, ()) = tokio::try_join!(first, work)?;
    assert_eq!(first.len(), 1);
    waiting(299).await;

    // The work is handed over, so that the end of the services cannot prevent that.
    world.stop();
    let others: Vec<_> = waits.try_collect().await?;
    assert_eq!(others.iter().flatten().count(), 0);
    Ok(())
}
