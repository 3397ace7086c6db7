//! Limits on what the clients of a customer leave behind: requests of launches, files, idempotency keys and
//! executions that have not ended. Their sum is read at most once a second for each customer, and what
//! this program has accepted since is added, so a limit can be exceeded by what all programs accept
//! within a second. The limit of artifacts is exact for files: they claim room in the database
//! ([`Quota::room`], [`Quota::check_added`]).

pub(crate) mod drift;
mod store;
mod watch;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use assay_proto::{CustomerId, Fault};
use sqlx::{PgPool, PgTransaction};

pub use self::store::{Usage, list};
pub(crate) use self::watch::spawn;

/// Time for which a sum is used.
const FRESH: Duration = Duration::from_secs(1);

/// Limits for each customer; 0 for no limit.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct QuotaConfig {
    /// Maximum size of the requests of launches of a customer that are not results yet, in MiB; 0 for no
    /// limit
    #[arg(long, env = "ASSAY_STAGED_MIB", default_value_t = Self::default().staged_mib)]
    pub staged_mib: u32,
    /// Maximum size of the artifacts of a customer, in GiB; 0 for no limit
    #[arg(long, env = "ASSAY_ARTIFACTS_GIB", default_value_t = Self::default().artifacts_gib)]
    pub artifacts_gib: u32,
    /// Maximum size of the idempotency keys of a customer with their requests, in MiB; 0 for no limit
    #[arg(long, env = "ASSAY_KEYS_MIB", default_value_t = Self::default().keys_mib)]
    pub keys_mib: u32,
    /// Maximum number of executions of a customer that have not ended; 0 for no limit
    #[arg(long, env = "ASSAY_OPEN_EXECUTIONS", default_value_t = Self::default().open_executions)]
    pub open_executions: u32,
}

impl Default for QuotaConfig {
    fn default() -> Self {
        Self { staged_mib: 2048, artifacts_gib: 1024, keys_mib: 256, open_executions: 10_000 }
    }
}

/// The kinds of what clients leave behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Staged,
    Artifacts,
    Keys,
    OpenExecutions,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Staged, Self::Artifacts, Self::Keys, Self::OpenExecutions];

    /// Returns the name in the table and in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Artifacts => "artifacts",
            Self::Keys => "keys",
            Self::OpenExecutions => "open_executions",
        }
    }

    /// Returns the fault of a customer that would exceed the limit.
    fn exceeded(self, limit: i64) -> Fault {
        let mib = limit >> 20;
        let reason = match self {
            Self::Staged => format!(
                "the customer has {mib} MiB of requests of launches that are not results yet, its \
                 limit: finish launches, and wait until their results are stored"
            ),
            Self::Artifacts => format!(
                "the customer has {mib} MiB of artifacts, its limit: delete executions, shorten the \
                 retention of projects, or ask the operator for more (ASSAY_ARTIFACTS_GIB)"
            ),
            Self::Keys => format!(
                "the customer has {mib} MiB of idempotency keys, its limit: they are removed with \
                 their executions; requests without a key are accepted"
            ),
            Self::OpenExecutions => {
                let reason = format!(
                    "the customer has {limit} executions that have not ended, its limit: complete or \
                     cancel executions"
                );
                return Fault::Exhausted { code: "too_many_open_executions", reason };
            }
        };
        Fault::Refused { code: "quota_exceeded", reason }
    }
}

/// The limits, and what is known about the customers of the last second.
#[derive(Clone)]
pub struct Quota(Arc<Inner>);

struct Inner {
    db: PgPool,
    config: QuotaConfig,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: HashMap<CustomerId, Known>,
}

struct Known {
    read: Instant,
    used: [i64; Kind::ALL.len()],
}

impl Quota {
    pub fn new(db: &PgPool, config: QuotaConfig) -> Self {
        Self(Arc::new(Inner { db: db.clone(), config, state: Mutex::default() }))
    }

    /// Returns the limit of a kind, in bytes or executions, if there is one.
    pub(crate) fn limit(&self, kind: Kind) -> Option<i64> {
        let QuotaConfig { staged_mib, artifacts_gib, keys_mib, open_executions } = self.0.config;
        let limit = match kind {
            Kind::Staged => i64::from(staged_mib) << 20,
            Kind::Artifacts => i64::from(artifacts_gib) << 30,
            Kind::Keys => i64::from(keys_mib) << 20,
            Kind::OpenExecutions => i64::from(open_executions),
        };
        (limit > 0).then_some(limit)
    }

    /// Counts what a client is about to leave behind, in bytes or executions. Refuses it if the customer
    /// would have more than its limit.
    pub(crate) async fn claim(
        &self,
        customer: CustomerId,
        kind: Kind,
        size: usize,
    ) -> Result<(), Fault> {
        let size = i64::try_from(size).map_err(Fault::internal)?;
        self.read(customer, kind).await?;
        let mut state = self.state();
        let left = state.left(self, customer, kind)?;
        if left.is_some_and(|left| size > left) {
            return Err(self.refused(kind));
        }
        state.count(customer, kind, size);
        Ok(())
    }

    /// Returns how many bytes a customer has left for files that become artifacts, if there is a limit. Refuses one
    /// that has fewer than the wanted ones, or none. The transaction records what it claims of them, and others wait
    /// for it.
    pub(crate) async fn room(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        wanted: i64,
    ) -> Result<Option<i64>, Fault> {
        let Some(limit) = self.limit(Kind::Artifacts) else { return Ok(None) };
        let left = limit.saturating_sub(store::lock_artifacts(tx, customer).await?);
        if wanted > left || left <= 0 {
            return Err(self.refused(Kind::Artifacts));
        }
        Ok(Some(left))
    }

    /// Fails if the artifacts of a customer exceed its limit with those that a transaction has added. Others that ask
    /// wait until it ends.
    pub(crate) async fn check_added(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
    ) -> Result<(), Fault> {
        let Some(limit) = self.limit(Kind::Artifacts) else { return Ok(()) };
        if store::lock_artifacts(tx, customer).await? > limit {
            return Err(self.refused(Kind::Artifacts));
        }
        Ok(())
    }

    /// Reads the sums of a customer, unless they are known or not limited.
    async fn read(&self, customer: CustomerId, kind: Kind) -> Result<(), Fault> {
        let is_known = self.state().known.get(&customer).is_some_and(Known::is_fresh);
        if is_known || self.limit(kind).is_none() {
            return Ok(());
        }
        let used = store::of_customer(&self.0.db, customer, self.0.config.open_executions).await?;
        let mut state = self.state();
        state.known.retain(|_, known| known.is_fresh());
        state.known.insert(customer, Known { read: Instant::now(), used });
        Ok(())
    }

    /// Returns the fault of a customer that would exceed the limit, and counts it.
    fn refused(&self, kind: Kind) -> Fault {
        metrics::counter!(watch::REFUSED, "kind" => kind.name()).increment(1);
        kind.exceeded(self.limit(kind).unwrap_or_default())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns how much a customer has left of a kind, if there is a limit. Refuses one that has nothing left, also if
    /// nothing is added yet.
    fn left(&self, quota: &Quota, customer: CustomerId, kind: Kind) -> Result<Option<i64>, Fault> {
        let Some(limit) = quota.limit(kind) else { return Ok(None) };
        let used = self.known.get(&customer).map_or(0, |known| known.used[kind as usize]);
        let left = limit.saturating_sub(used);
        if left > 0 { Ok(Some(left)) } else { Err(quota.refused(kind)) }
    }

    fn count(&mut self, customer: CustomerId, kind: Kind, size: i64) {
        if let Some(known) = self.known.get_mut(&customer) {
            known.used[kind as usize] += size;
        }
    }
}

impl Known {
    fn is_fresh(&self) -> bool {
        self.read.elapsed() < FRESH
    }
}
