//! Many engines at one queue, and engines that wait.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::Result;
use assay_execution::Queue;
use assay_proto::{ReportStatus, execution::LeaseInput};
use assay_runtime::Runtime;
use assay_servers::{DataDir, Nats};
use assay_testkit::{eventually, test_dir};
use futures::future::try_join_all;
use serde_json::json;
use uuid::Uuid;

use crate::world::{Engine, Server, World, instance, now};

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
        let held = || world.db.size() as usize - world.db.num_idle();
        let idle = async || (held() == 0).then_some(());
        eventually("that those who wait hold no connection to the database", idle).await;
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

/// How long an engine that waits at one server has to wait for work that is queued at another.
async fn waits_elsewhere(queue: impl Fn(&Runtime) -> Result<Queue>) -> Result<Duration> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let made = Mutex::new(Vec::new());
    let start = || {
        Server::start_with(&world, |runtime| {
            let queue = queue(runtime)?;
            made.lock().unwrap().push(queue.clone());
            Ok(queue)
        })
    };
    let servers = [start()?, start()?];
    let of_there = made.lock().unwrap()[1].clone();
    let [here, there] = servers.each_ref().map(|server| world.engine().at(server.connect()));
    eventually("an answer", || async { there.lease(now("", 1)).await.ok() }).await;
    world.dispatch().await?;
    let lease = eventually("a lease", || async { here.lease_one().await.ok() }).await;
    let queued = async {
        let waits = async || (of_there.waiting() == 1).then_some(());
        eventually("that the other one has found nothing", waits).await;
        here.release(&lease.id).await?;
        Ok(Instant::now())
    };
    let (leases, queued) = tokio::try_join!(there.lease(patient("")), queued)?;
    assert_eq!(leases[0].schedule_id, lease.schedule_id);
    Ok(queued.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_at_another_server_hears_of_work_over_nats() -> Result<()> {
    let data = DataDir::lock(test_dir()?.join(Uuid::now_v7().to_string()))?;
    let nats = Nats::start(&data, None).await?;
    let client = async_nats::connect(nats.url()).await?;
    let took = waits_elsewhere(|runtime| Ok(Queue::connect(runtime, client.clone()))).await?;
    assert!(took < Duration::from_secs(3), "it was not told: {took:?}");
    nats.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_finds_work_that_nobody_tells_it_of() -> Result<()> {
    let took = waits_elsewhere(|runtime| Ok(Queue::local(runtime))).await?;
    assert!(took < Duration::from_secs(10), "it does not look by itself: {took:?}");
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

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_engines_wake_and_none_is_refused() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let engine = world.engine();
    let wanted = LeaseInput { wait_in_sec: Some(5), ..now("", 1) };
    let waiting = try_join_all((0..300).map(|_| engine.lease(wanted.clone())));
    let work = async {
        let all = async || (world.queue.waiting() == 300).then_some(());
        eventually("that all have found nothing", all).await;
        world.dispatch().await
    };

    let (leases, _) = tokio::try_join!(waiting, work)?;

    assert_eq!(leases.iter().flatten().count(), 1);
    Ok(())
}
