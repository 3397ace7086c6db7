//! The reference engine: leases queued tests from Assay over HTTP, runs a command for each and
//! reports the results.

mod api;
mod cache;
mod command;
mod config;
mod download;
mod files;
mod job;
mod live_log;
mod outcome;

use std::{collections::HashSet, sync::Arc, time::Duration};

use assay_client::Backoff;
use assay_proto::execution::{Lease, LeaseInput};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::config::Config;
use self::{api::Api, cache::Cache, job::Job};

/// Time that a request waits for work, in seconds. It also bounds the time that an idle engine takes
/// to stop.
const WAIT: i32 = 5;

/// Time below which an answer without work has not waited for it.
const SHORT: Duration = Duration::from_secs(1);

/// Maximum number of schedules in one request.
const MAX_SCHEDULES: u16 = 100;

/// Runs an engine until `stop` is cancelled. Fails if Assay rejects its requests, such as for an
/// invalid token.
pub async fn run(config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let config = Arc::new(config);
    let api = Api::new(&config)?;
    let cache = Cache::open(&config)?.map(Arc::new);
    tracing::info!(
        "engine {} runs tests of target group {:?} at {}",
        config.name,
        config.target_group,
        config.account.url.origin().ascii_serialization()
    );
    let mut jobs = JoinSet::new();
    let outcome = lease_jobs(&config, &api, cache.as_ref(), &stop, &mut jobs).await;
    // Running jobs finish, or release their leases after the grace period.
    while jobs.join_next().await.is_some() {}
    outcome
}

/// Leases schedules and spawns a job for each, never more than may run concurrently.
async fn lease_jobs(
    config: &Arc<Config>,
    api: &Api,
    cache: Option<&Arc<Cache>>,
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
        let requested = Instant::now();
        match api.lease(&request(config, free)).await.map(|leases| valid(leases, free)) {
            // A queue that is drained, or a proxy, may not wait for work.
            Ok(leases) if leases.is_empty() && requested.elapsed() < SHORT => {
                stop.run_until_cancelled(backoff.wait()).await;
            }
            Ok(leases) => {
                backoff = Backoff::default();
                for lease in leases {
                    let (config, api, stop) = (config.clone(), api.clone(), stop.clone());
                    let cache = cache.cloned();
                    jobs.spawn(Job { config, api, cache, stop, lease, requested }.run());
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

/// Returns the leases that are valid, not more than were asked for. Others expire.
fn valid(leases: Vec<Lease>, free: u16) -> Vec<Lease> {
    let (count, mut ids) = (leases.len(), HashSet::new());
    if count > free.into() {
        tracing::warn!(
            "Assay returned {count} leases instead of {free}; the others are left to expire"
        );
    }
    // The id becomes a part of paths.
    let mut is_valid = |lease: &Lease| {
        let is_valid = Uuid::parse_str(&lease.id).is_ok_and(|id| ids.insert(id));
        if !is_valid {
            tracing::warn!(
                lease.id,
                "the id of the lease is not a UUID of its own; it is left to expire"
            );
        }
        is_valid
    };
    leases.into_iter().take(free.into()).filter(|lease| is_valid(lease)).collect()
}

fn request(config: &Config, free: u16) -> LeaseInput {
    LeaseInput {
        target_group: Some(config.target_group.clone()),
        engine: Some(config.name.clone()),
        max_schedules: Some(free.min(MAX_SCHEDULES).into()),
        wait_in_sec: Some(WAIT),
        needs_public_ip: config.needs_public_ip,
        labels: config.labels.clone(),
        project_ids: config.projects.iter().map(Uuid::to_string).collect(),
        version: Some(concat!("assay-engine ", env!("CARGO_PKG_VERSION")).to_owned()),
    }
}
