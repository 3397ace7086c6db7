//! The reference engine: leases queued tests from Assay over HTTP, runs a command for each and
//! reports the results.

mod api;
mod command;
mod config;
mod job;
mod outcome;

use std::sync::Arc;

use assay_client::Backoff;
use assay_proto::execution::LeaseInput;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::config::Config;
use self::{api::Api, job::Job};

/// Time that a request waits for work, in seconds. It also bounds the time that an idle engine takes
/// to stop.
const WAIT: i32 = 5;

/// Maximum number of schedules in one request.
const MAX_SCHEDULES: u16 = 100;

/// Runs an engine until `stop` is cancelled. Fails if Assay rejects its requests, such as for an
/// invalid token.
pub async fn run(config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let config = Arc::new(config);
    let api = Api::new(&config)?;
    tracing::info!(
        "engine {} runs tests of target group {:?} at {}",
        config.name,
        config.target_group,
        config.account.url
    );
    let mut jobs = JoinSet::new();
    let outcome = lease_jobs(&config, &api, &stop, &mut jobs).await;
    // Running jobs finish, or release their leases after the grace period.
    while jobs.join_next().await.is_some() {}
    outcome
}

/// Leases schedules and spawns a job for each, never more than may run concurrently.
async fn lease_jobs(
    config: &Arc<Config>,
    api: &Api,
    stop: &CancellationToken,
    jobs: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    let mut backoff = Backoff::default();
    while !stop.is_cancelled() {
        let free = config.parallel.saturating_sub(u16::try_from(jobs.len()).unwrap_or(u16::MAX));
        if free == 0 {
            tokio::select! {
                _ = jobs.join_next() => {}
                () = stop.cancelled() => {}
            }
            continue;
        }
        match api.lease(&request(config, free)).await {
            Ok(leases) => {
                backoff = Backoff::default();
                for lease in leases {
                    let (config, api, stop) = (config.clone(), api.clone(), stop.clone());
                    jobs.spawn(Job { config, api, stop, lease }.run());
                }
            }
            Err(error) if error.is_permanent() => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "cannot lease tests; will retry");
                stop.run_until_cancelled(backoff.wait()).await;
            }
        }
        while jobs.try_join_next().is_some() {}
    }
    Ok(())
}

fn request(config: &Config, free: u16) -> LeaseInput {
    LeaseInput {
        target_group: Some(config.target_group.clone()),
        engine: Some(config.name.clone()),
        max_schedules: Some(free.min(MAX_SCHEDULES).into()),
        wait_in_sec: Some(WAIT),
        needs_public_ip: config.needs_public_ip,
    }
}
