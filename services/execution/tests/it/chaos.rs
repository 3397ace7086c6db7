//! Faults: engines that die, engines that report too late, and a service that is killed. All schedules
//! complete, with exactly the results that were acknowledged.

mod engines;

use std::{collections::HashMap, time::Duration};

use anyhow::Result;
use assay_proto::{ExecutionStatus, ReportStatus};
use tokio::time::{interval, timeout};

use self::engines::{Engines, Ledger};
use crate::world::{Server, World};

/// Maximum duration of a test. It takes half a minute alone, and a busy machine needs two.
const TIMEOUT: Duration = Duration::from_mins(4);

/// Number of concurrent executions of the set.
const EXECUTIONS: usize = 4;

/// Lets twenty engines run four executions of a set while `faults` runs, and verifies the results.
/// Some of the cases have two instances.
async fn run_with_faults(
    cases: usize,
    faults: impl AsyncFn(&World, &Engines) -> Result<()>,
) -> Result<()> {
    let world = World::new().await?;
    let names: Vec<String> = (0..cases).map(|nr| format!("case {nr}")).collect();
    let of = |(nr, name)| (name, if nr % 25 == 0 { 2 } else { 1 });
    let cases: Vec<_> = names.iter().map(String::as_str).enumerate().map(of).collect();
    world.include(&cases).await?;
    for _ in 0..EXECUTIONS {
        world.dispatch().await?;
    }
    let server = Server::start(&world)?;
    let engines = Engines::start(&world, 20, server);
    let done = async {
        let mut tick = interval(Duration::from_millis(50));
        while world.count("select count(*) from execution where status <> 'Completed'").await? > 0 {
            tick.tick().await;
        }
        anyhow::Ok(())
    };
    timeout(TIMEOUT, async {
        tokio::select! {
            done = done => done,
            failed = faults(&world, &engines) => failed,
        }
    })
    .await??;
    let ledger = engines.stop();
    verify(&world, &ledger).await?;
    Ok(())
}

/// Compares the stored instances with the responses to the engines, and all totals with their parts.
async fn verify(world: &World, ledger: &Ledger) -> Result<()> {
    let stored: Vec<(String, i32, f64)> =
        sqlx::query_as("select test_report_id::text, instance_nr, duration_in_sec from instance")
            .fetch_all(&world.db)
            .await?;
    let stored: HashMap<(String, i32), f64> =
        stored.into_iter().map(|(report, nr, mark)| ((report, nr), mark)).collect();
    let is_stored = |(report, nr, mark): &(String, i32, f64)| {
        stored.get(&(report.clone(), *nr)).is_some_and(|stored| stored.to_bits() == mark.to_bits())
    };
    assert!(ledger.accepted.iter().all(is_stored), "an acknowledged result was lost");
    assert!(!ledger.refused.iter().any(is_stored), "a rejected result is stored");
    println!(
        "{} accepted, {} refused, {} leases",
        ledger.accepted.len(),
        ledger.refused.len(),
        world.count("select count(*) from lease").await?,
    );

    let inconsistent = "select count(*) from test_report r
         cross join lateral (
             select count(*) as instances, sum(duration_in_sec) as seconds from instance i
             where i.customer_id = r.customer_id and i.test_report_id = r.id
         ) of
         where status <> 'InReview' or result <> 'Passed'
            or finished_instances_count <> requested_instances_count
            or finished_instances_count <> instances or total_duration_in_sec <> seconds";
    assert_eq!(world.count(inconsistent).await?, 0);
    assert_eq!(world.count("select count(*) from schedule where status <> 'Completed'").await?, 0);
    let inconsistent = "select count(*) from execution
         where test_cases_passed <> test_cases_total or completion_date_time is null";
    assert_eq!(world.count(inconsistent).await?, 0);
    let id: String =
        sqlx::query_scalar("select id::text from execution limit 1").fetch_one(&world.db).await?;
    let execution = world.execution(&id).await?;
    assert_eq!(execution.status(), ExecutionStatus::Completed);
    assert!(execution.test_reports.iter().all(|report| report.status() == ReportStatus::InReview));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_engines_and_a_killed_service_lose_and_repeat_no_result() -> Result<()> {
    run_with_faults(250, async |world, engines| {
        let mut tick = interval(Duration::from_millis(200));
        let mut restarted = false;
        loop {
            tick.tick().await;
            engines.kill_one();
            let ended = "select count(*) from schedule where status = 'Completed'";
            if !restarted && world.count(ended).await? > 400 {
                restarted = true;
                engines.kill_server();
                engines.connect(Server::start(world)?);
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_that_expire_while_results_arrive_lose_and_repeat_no_result() -> Result<()> {
    run_with_faults(30, async |world, engines| {
        let mut tick = interval(Duration::from_millis(20));
        for round in 0.. {
            tick.tick().await;
            // New leases are spared, so that engines make progress. Leases that the service has locked are spared
            // as well, because it locks them in an order of its own.
            world
                .change(
                    "update lease set expires_at = now()
                     where id in (
                         select id from lease
                         where ended_at is null and random() < 0.1
                           and leased_at < now() - interval '20 milliseconds'
                         for update skip locked
                     )",
                )
                .await?;
            if round % 10 == 0 {
                engines.kill_one();
            }
        }
        Ok(())
    })
    .await
}
