//! Labels of engines and environments, and environments that only one test at a time may use.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_ledger::schedule::store;
use assay_proto::{
    catalog::{EnvironmentInput, TestSetInput},
    execution::{Lease, LeaseInput},
};
use assay_testkit::eventually;
use futures::future::try_join_all;
use serde_json::json;
use sqlx::{PgPool, postgres::PgPoolOptions};

use super::expire_leases;
use crate::world::{World, fields, instance, now};

fn environment(group: &str, labels: &[&str], exclusive: bool) -> EnvironmentInput {
    EnvironmentInput {
        name: "Lab".into(),
        target_group: group.into(),
        labels: labels.iter().map(ToString::to_string).collect(),
        exclusive,
        ..EnvironmentInput::default()
    }
}

fn offering(group: &str, labels: &[&str], max: i32) -> LeaseInput {
    LeaseInput { labels: labels.iter().map(ToString::to_string).collect(), ..now(group, max) }
}

fn executions(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.execution_id.as_str()).collect()
}

#[tokio::test]
async fn engines_get_work_whose_labels_they_all_offer() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let mut dispatched = Vec::new();
    for (group, labels) in
        [("", &[][..]), ("linux", &[]), ("linux", &["gpu", "usb"]), ("", &["usb"])]
    {
        world.select(environment(group, labels, false)).await?;
        dispatched.push(world.dispatch().await?.id);
    }
    let [plain, linux, both, usb] = [0, 1, 2, 3].map(|nr| dispatched[nr].as_str());
    let engine = world.engine();
    for (group, labels) in [("gpu", &["usb2"][..]), ("linux ", &["gpu"]), ("mac", &[])] {
        assert!(engine.lease(offering(group, labels, 9)).await?.is_empty(), "{group} {labels:?}");
    }
    // One target group is one label, as ever.
    let of_linux = engine.lease(now("linux", 9)).await?;
    assert_eq!(executions(&of_linux), [linux]);
    assert_eq!(of_linux[0].environment.as_ref().unwrap().target_group, "linux");
    let with_gpu = offering("gpu", &["linux"], 9);
    assert!(engine.lease(with_gpu).await?.is_empty(), "the label usb is missing");
    let all = engine.lease(offering("gpu", &["usb", "linux"], 9)).await?;
    assert_eq!(executions(&all), [both, usb], "the oldest work comes first");
    assert_eq!(all[0].environment.as_ref().unwrap().labels, ["gpu", "usb"]);
    // Returned work finds its queue again.
    engine.release(&all[0].id).await?;
    assert!(engine.lease(now("linux", 9)).await?.is_empty());
    assert_eq!(executions(&engine.lease(offering("usb", &["gpu", "linux"], 9)).await?), [both]);
    assert_eq!(executions(&engine.lease(now("", 9)).await?), [plain]);
    Ok(())
}

#[tokio::test]
async fn work_of_several_labels_comes_by_priority() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.select(environment("linux", &[], false)).await?;
    let normal = world.dispatch().await?.id;
    world.select(environment("linux", &["gpu"], false)).await?;
    let changes = TestSetInput { priority: Some("High".into()), ..TestSetInput::default() };
    world.change_set(changes, &["Priority"]).await?;
    let urgent = world.dispatch().await?.id;
    let leases = world.engine().lease(offering("linux", &["gpu"], 5)).await?;
    assert_eq!(executions(&leases), [urgent.as_str(), normal.as_str()]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn new_work_wakes_engines_that_offer_its_labels() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.select(environment("", &["usb", "gpu"], false)).await?;
    let engine = world.engine();
    let request = LeaseInput { wait_in_sec: Some(30), ..offering("linux", &["usb", "gpu"], 1) };
    let begins = async {
        let waits = async || (world.queue.waiting() == 1).then_some(());
        eventually("a waiting engine", waits).await;
        world.dispatch().await?;
        anyhow::Ok(Instant::now())
    };
    let waits = async { anyhow::Ok(engine.lease(request).await?) };
    let (leases, begun) = tokio::try_join!(waits, begins)?;
    assert_eq!(leases.len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(3), "not woken");
    Ok(())
}

#[tokio::test]
async fn labels_are_validated() -> Result<()> {
    let world = World::new().await?;
    let many: Vec<_> = (0..21).map(|nr| format!("label {nr}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    for (labels, field) in [
        (&many[..], "Labels"),
        (&[""], "Labels/0"),
        (&["a", "b\u{1f}c"], "Labels/1"),
        (&["x".repeat(65).as_str()], "Labels/0"),
    ] {
        let refused = world.engine().lease(offering("", labels, 1)).await.unwrap_err();
        assert_eq!(fields(&refused), [field]);
        assert!(world.select(environment("", labels, false)).await.is_err());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_test_at_a_time_uses_an_exclusive_environment() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1), ("c", 1)]).await?;
    world.select(environment("pads", &[], true)).await?;
    let executions = [world.dispatch().await?.id, world.dispatch().await?.id];

    // Twenty engines at once, and each asks for all of the work.
    let asked = try_join_all((0..20).map(|_| async { world.engine().lease(now("pads", 9)).await }));
    let mut leases: Vec<Lease> = asked.await?.into_iter().flatten().collect();
    assert_eq!(leases.len(), 1);

    let engine = world.engine();
    for nr in 0..6 {
        let lease = leases.remove(0);
        assert_eq!(lease.execution_id, executions[nr / 3], "in the order of arrival");
        engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
        assert!(engine.lease(now("pads", 9)).await?.is_empty(), "the lease is still held");
        engine.complete(&lease.id, false).await?;
        leases = engine.lease(now("pads", 9)).await?;
    }
    assert!(leases.is_empty());
    Ok(())
}

#[tokio::test]
async fn an_exclusive_environment_returns_with_its_lease() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    world.select(environment("pads", &[], true)).await?;
    let execution = world.dispatch().await?;
    let engine = world.engine();
    let lease = async || engine.lease(now("pads", 9)).await;
    // The engine is killed, then it releases its lease.
    assert_eq!(lease().await?.len(), 1);
    assert!(lease().await?.is_empty());
    expire_leases(&world).await?;
    let again = lease().await?.remove(0);
    engine.release(&again.id).await?;
    let last = lease().await?.remove(0);

    // An engine that has to stop uses the environment until it has stopped.
    world.cancel(&execution.id).await?;
    world.dispatch().await?;
    assert!(lease().await?.is_empty());
    assert!(!engine.renew(&last.id).await?.r#continue);
    engine.complete(&last.id, false).await?;
    assert_eq!(lease().await?.len(), 1);

    // Other environments are not affected.
    world.select(environment("pads", &[], false)).await?;
    world.dispatch().await?;
    assert_eq!(lease().await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn one_request_takes_an_exclusive_environment_once() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.select(environment("pads", &[], true)).await?;
    world.dispatch().await?;
    let other = world.dispatch().await?;
    // The environment had other labels then, so that its work is in another queue.
    sqlx::query(
        "update schedule set target_group = replace(target_group, 'pads', e'pads\\x1fusb')
         where execution_id = $1::uuid",
    )
    .bind(&other.id)
    .execute(&world.db)
    .await?;
    let both = LeaseInput { labels: vec!["usb".to_owned()], ..now("pads", 9) };
    let first = world.engine().lease(both.clone()).await?;
    assert_eq!(first.len(), 1);
    assert!(world.engine().lease(both.clone()).await?.is_empty());
    world.engine().complete(&first[0].id, true).await?;
    assert_eq!(world.engine().lease(both).await?[0].execution_id, other.id);
    Ok(())
}

#[tokio::test]
async fn one_request_takes_work_of_queues_in_their_common_order() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let mut started = Vec::new();
    for labels in [&["gpu"][..], &[], &["gpu"], &[]] {
        world.select(environment("linux", labels, false)).await?;
        started.push(world.dispatch().await?.id);
    }
    let both = LeaseInput { labels: vec!["gpu".to_owned()], ..now("linux", 3) };
    let leases = world.engine().lease(both.clone()).await?;
    let order: Vec<_> = leases.into_iter().map(|lease| lease.execution_id).collect();
    assert_eq!(order, started[..3]);
    assert_eq!(world.engine().lease(both).await?[0].execution_id, started[3]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_are_woken_when_an_exclusive_environment_is_free() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    world.select(environment("pads", &[], true)).await?;
    world.dispatch().await?;
    let engine = world.engine();
    let first = engine.lease(now("pads", 1)).await?.remove(0);
    let next = LeaseInput { wait_in_sec: Some(30), ..now("pads", 1) };
    let ends = async {
        let waits = async || (world.queue.waiting() == 1).then_some(());
        eventually("a waiting engine", waits).await;
        engine.complete(&first.id, true).await?;
        anyhow::Ok(Instant::now())
    };
    let waits = async { anyhow::Ok(engine.lease(next).await?) };
    let (leases, begun) = tokio::try_join!(waits, ends)?;
    assert_eq!(leases.len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(3), "not woken");
    Ok(())
}

#[tokio::test]
async fn queues_are_found_by_the_index_among_much_work() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.select(environment("linux", &["gpu"], false)).await?;
    world.dispatch().await?;
    // A hundred thousand schedules of three queues, and those of another customer.
    sqlx::query("alter table schedule drop constraint schedule_test_report_fkey")
        .execute(&world.db)
        .await?;
    for customer in ["customer_id", "gen_random_uuid()"] {
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "insert into schedule (customer_id, project_id, execution_id, target_group,
                 needs_public_ip, priority, status, id, test_report_id, report_sequence_nr)
             select {customer}, project_id, execution_id,
                 (array['a', 'linux', 'z'])[1 + nr % 3], false, 0, 'Queued', gen_random_uuid(),
                 gen_random_uuid(), nr
             from (select * from schedule limit 1) as one, generate_series(1, 50000) as nr"
        )))
        .execute(&world.db)
        .await?;
    }
    sqlx::query("analyze schedule").execute(&world.db).await?;

    // Statistics of a connection are exact for that connection.
    let db = PgPoolOptions::new().max_connections(1).connect(&world.database_url).await?;
    let (customer, offered) = (world.user.customer, ["linux".to_owned(), "gpu".to_owned()]);
    let before = reads(&db).await?;
    let parts = store::parts(&db, customer, &offered, &[]).await?;
    assert_eq!(parts.len(), 4);
    let mut tx = assay_database::begin(&db).await?;
    assert_eq!(store::dequeue(&mut tx, customer, &parts[0], None, 1).await?.len(), 1);
    tx.rollback().await?;
    let rows = reads(&db).await? - before;
    assert!(rows < 200, "{rows} rows were read instead of those of the index");
    Ok(())
}

/// Returns the number of schedules that statements of this connection have read.
pub(super) async fn reads(db: &PgPool) -> Result<i64> {
    sqlx::query("select pg_stat_force_next_flush()").execute(db).await?;
    let reads = sqlx::query_scalar(
        "select (seq_tup_read + (
             select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'schedule'
         ))::bigint
         from pg_stat_user_tables where relname = 'schedule'",
    );
    Ok(reads.fetch_one(db).await?)
}

#[tokio::test]
async fn an_engine_serves_only_the_appliances_of_its_customer() -> Result<()> {
    let world = World::new().await?;
    sqlx::query("insert into appliances values ($1, '{linux,windows}', 1)")
        .bind(world.user.customer)
        .execute(&world.db)
        .await?;
    let engine = world.engine();
    for group in ["linux", "windows", ""] {
        assert!(engine.lease(now(group, 1)).await?.is_empty(), "{group:?}");
    }
    let refused = engine.lease(now("mac", 1)).await.unwrap_err();
    assert_eq!(fields(&refused), ["TargetGroup"]);
    let stranger = world.stranger().await;
    assert!(world.engine_of(&stranger).lease(now("mac", 1)).await?.is_empty());
    Ok(())
}
