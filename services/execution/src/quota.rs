//! Limits on what the clients of a customer leave behind: requests of launches, files, idempotency keys and
//! executions that have not ended. Their sum is read at most once a second for each customer, and what
//! this program has accepted since is added, so a limit can be exceeded by what all programs accept
//! within a second.

mod store;
mod watch;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use assay_proto::{CustomerId, Fault};
use sqlx::PgPool;

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
    known: Mutex<HashMap<CustomerId, Known>>,
}

struct Known {
    read: Instant,
    used: [i64; Kind::ALL.len()],
}

impl Quota {
    pub fn new(db: &PgPool, config: QuotaConfig) -> Self {
        Self(Arc::new(Inner { db: db.clone(), config, known: Mutex::default() }))
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
        self.count(customer, kind, size, size).await.map(drop)
    }

    /// Returns how much a customer has left, with the fault of more. Refuses a customer that has less than
    /// this, or nothing, left. Counts nothing: [`Quota::claim`] does at the end.
    pub(crate) async fn left(
        &self,
        customer: CustomerId,
        kind: Kind,
        announced: u64,
    ) -> Result<Option<(u64, Fault)>, Fault> {
        let announced = i64::try_from(announced).map_err(Fault::internal)?;
        let Some((used, limit)) = self.count(customer, kind, announced, 0).await? else {
            return Ok(None);
        };
        Ok(Some(((limit - used).unsigned_abs(), kind.exceeded(limit))))
    }

    /// Refuses a customer that would have more than its limit with `wanted` more, and counts `taken` of it.
    /// Returns what the customer has, and its limit, if there is one.
    async fn count(
        &self,
        customer: CustomerId,
        kind: Kind,
        wanted: i64,
        taken: i64,
    ) -> Result<Option<(i64, i64)>, Fault> {
        let Some(limit) = self.limit(kind) else { return Ok(None) };
        let is_known = self.known().get(&customer).is_some_and(Known::is_fresh);
        if !is_known {
            let used =
                store::of_customer(&self.0.db, customer, self.0.config.open_executions).await?;
            let mut known = self.known();
            known.retain(|_, known| known.is_fresh());
            known.insert(customer, Known { read: Instant::now(), used });
        }
        let mut known = self.known();
        let Some(known) = known.get_mut(&customer) else { return Ok(None) };
        let used = &mut known.used[kind as usize];
        // A full customer is refused, also if nothing is added yet.
        if used.saturating_add(wanted) > limit || *used == limit {
            metrics::counter!(watch::REFUSED, "kind" => kind.name()).increment(1);
            return Err(kind.exceeded(limit));
        }
        *used += taken;
        Ok(Some((*used, limit)))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<CustomerId, Known>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_fresh(&self) -> bool {
        self.read.elapsed() < FRESH
    }
}
