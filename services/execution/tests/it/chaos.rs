//! Engines that die, engines that come too late, and a service that is killed: every schedule ends,
//! with exactly what was acknowledged.

mod crew;
mod server;

use std::{collections::HashMap, time::Duration};

use anyhow::Result;
use assay_proto::{ExecutionStatus, ReportStatus};
use tokio::time::{interval, timeout};

use self::{
    crew::{Crew, Ledger},
    server::Server,
};
use crate::world::World;

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(100);

/// How many executions of the set there are at once.
const EXECUTIONS: usize = 4;

/// A set of so many cases, of which some run twice, is executed four times by twenty engines, while
/// `trouble` goes on. Checks what has come of it.
async fn weather(cases: usize, trouble: impl AsyncFn(&World, &Crew) -> Result<()>) -> Result<()> {
    let world = World::new().await?;
    let names: Vec<String> = (0..cases).map(|nr| format!("case {nr}")).collect();
    let of = |(nr, name)| (name, if nr % 25 == 0 { 2 } else { 1 });
    let cases: Vec<_> = names.iter().map(String::as_str).enumerate().map(of).collect();
    world.include(&cases).await?;
    for _ in 0..EXECUTIONS {
        world.dispatch().await?;
    }
    let server = Server::start(&world)?;
    let crew = Crew::muster(&world, 20, server);
    let done = async {
        let mut tick = interval(Duration::from_millis(50));
        while world.count("select count(*) from execution where status <> 'Completed'").await? > 0 {
            tick.tick().await;
        }
        anyhow::Ok(())
    };
    timeout(PATIENCE, async {
        tokio::select! {
            done = done => done,
            trouble = trouble(&world, &crew) => trouble,
        }
    })
    .await??;
    let ledger = crew.dismiss();
    assess(&world, &ledger).await?;
    Ok(())
}

/// Compares what is stored with what engines were told, and all sums with what they are sums of.
async fn assess(world: &World, ledger: &Ledger) -> Result<()> {
    let stored: Vec<(String, i32, f64)> =
        sqlx::query_as("select test_report_id::text, instance_nr, duration_in_sec from instance")
            .fetch_all(&world.db)
            .await?;
    let stored: HashMap<(String, i32), f64> =
        stored.into_iter().map(|(report, nr, mark)| ((report, nr), mark)).collect();
    let is_stored = |(report, nr, mark): &(String, i32, f64)| {
        stored.get(&(report.clone(), *nr)).is_some_and(|stored| stored.to_bits() == mark.to_bits())
    };
    assert!(ledger.accepted.iter().all(is_stored), "something was lost that was acknowledged");
    assert!(!ledger.refused.iter().any(is_stored), "something is there that was refused");
    println!(
        "{} accepted, {} refused, {} leases",
        ledger.accepted.len(),
        ledger.refused.len(),
        world.count("select count(*) from lease").await?,
    );

    let wrong = "select count(*) from test_report r
         cross join lateral (
             select count(*) as instances, sum(duration_in_sec) as seconds from instance i
             where i.customer_id = r.customer_id and i.test_report_id = r.id
         ) of
         where status <> 'InReview' or result <> 'Passed'
            or finished_instances_count <> requested_instances_count
            or finished_instances_count <> instances or total_duration_in_sec <> seconds";
    assert_eq!(world.count(wrong).await?, 0);
    assert_eq!(world.count("select count(*) from schedule where status <> 'Completed'").await?, 0);
    let wrong = "select count(*) from execution
         where test_cases_passed <> test_cases_total or completion_date_time is null";
    assert_eq!(world.count(wrong).await?, 0);
    let id: String =
        sqlx::query_scalar("select id::text from execution limit 1").fetch_one(&world.db).await?;
    let execution = world.execution(&id).await?;
    assert_eq!(execution.status(), ExecutionStatus::Completed);
    assert!(execution.test_reports.iter().all(|report| report.status() == ReportStatus::InReview));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_and_the_service_are_killed_and_nothing_is_lost_or_done_twice() -> Result<()> {
    weather(500, async |world, crew| {
        let mut tick = interval(Duration::from_millis(100));
        let mut restarted = false;
        loop {
            tick.tick().await;
            crew.kill_one();
            let ended = "select count(*) from schedule where status = 'Completed'";
            if !restarted && world.count(ended).await? > 800 {
                restarted = true;
                crew.kill_server();
                crew.serve(Server::start(world)?);
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_run_out_while_results_arrive_and_nothing_is_lost_or_done_twice() -> Result<()> {
    weather(100, async |world, crew| {
        let mut tick = interval(Duration::from_millis(20));
        for round in 0.. {
            tick.tick().await;
            // Not those that engines have just got, or nobody would ever get anything done.
            world
                .change(
                    "update lease set expires_at = now()
                     where ended_at is null and random() < 0.1
                       and leased_at < now() - interval '20 milliseconds'",
                )
                .await?;
            if round % 10 == 0 {
                crew.kill_one();
            }
        }
        Ok(())
    })
    .await
}
