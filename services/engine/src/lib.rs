//! The reference engine: fetches work from Assay over HTTP, runs a command for it and reports what
//! came of it.

mod api;
mod command;
mod config;
mod job;
mod outcome;

use std::{sync::Arc, time::Duration};

use assay_proto::execution::LeaseInput;
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

pub use self::config::Config;
use self::{api::Api, job::Job};

/// How long a request waits for work; a bit of it is how long stopping may take.
const WAIT: i32 = 5;

/// How long to wait after Assay could not be reached, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Runs an engine until it is told to stop. Fails if Assay does not know it.
pub async fn run(config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let config = Arc::new(config);
    let api = Api::new(&config)?;
    tracing::info!(
        "{} runs tests of the target group {:?} at {}",
        config.name,
        config.target_group,
        config.url
    );
    let mut jobs = JoinSet::new();
    let fetched = fetch(&config, &api, &stop, &mut jobs).await;
    // Those that run end, or give back what they have, in their own time.
    while jobs.join_next().await.is_some() {}
    fetched
}

async fn fetch(
    config: &Arc<Config>,
    api: &Api,
    stop: &CancellationToken,
    jobs: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    let mut pause = PAUSES.0;
    while !stop.is_cancelled() {
        let free = config.parallel.saturating_sub(u16::try_from(jobs.len()).unwrap_or(u16::MAX));
        if free == 0 {
            tokio::select! {
                _ = jobs.join_next() => {}
                () = stop.cancelled() => {}
            }
            continue;
        }
        match api.lease(&wanted(config, free)).await {
            Ok(leases) => {
                pause = PAUSES.0;
                for lease in leases {
                    let (config, api, stop) = (config.clone(), api.clone(), stop.clone());
                    jobs.spawn(Job { config, api, stop, lease }.run());
                }
            }
            Err(refusal) if refusal.is_final() => return Err(refusal.into()),
            Err(refusal) => {
                tracing::warn!(%refusal, "no work to be had; trying again");
                stop.run_until_cancelled(sleep(pause)).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        }
        while jobs.try_join_next().is_some() {}
    }
    Ok(())
}

fn wanted(config: &Config, free: u16) -> LeaseInput {
    LeaseInput {
        target_group: Some(config.target_group.clone()),
        engine: Some(config.name.clone()),
        max_schedules: Some(free.min(100).into()),
        wait_in_sec: Some(WAIT),
        needs_public_ip: config.needs_public_ip,
    }
}
