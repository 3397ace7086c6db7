//! Limits of requests per minute by address and by customer, of concurrent requests, and of the
//! memory for their bodies. No customer gets all concurrent requests or all memory.
//!
//! Each gateway counts for itself, and starts at zero.

use std::{
    fmt::Write,
    hash::Hash,
    net::IpAddr,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use assay_proto::{CustomerId, Fault};
use assay_runtime::{Share, Shares, http::network};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
    state::keyed::DefaultKeyedStateStore,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::{address::ClientAddress, config::EdgeConfig, problem::Problem, telemetry};

/// Number of requests after which keys that have not been used recently are evicted.
const EVICTION_INTERVAL: u32 = 10_000;

/// Headers of draft-ietf-httpapi-ratelimit-headers-11.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit");

type Limiter<K> =
    RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock, StateInformationMiddleware>;

/// Labels of the limits of concurrent requests and of the memory for bodies.
const CONCURRENCY: &str = "at once";
const BODIES: &str = "bodies";

/// Counts rejected requests. Each limit starts with 0, so that alerts see the first increase.
fn count_rejected(limit: &'static str, requests: u64) {
    metrics::counter!(telemetry::REJECTED, "limit" => limit).increment(requests);
}

/// A limit of requests per minute for each `K`, with bursts up to the whole limit.
struct Rate<K: Hash + Eq + Clone> {
    name: &'static str,
    quota: NonZeroU32,
    limiter: Limiter<K>,
    requests: AtomicU32,
}

/// The rest of a rate.
struct Remaining {
    name: &'static str,
    quota: NonZeroU32,
    requests: u32,
}

impl<K: Hash + Eq + Clone> Rate<K> {
    /// Returns none if `quota` is 0: unlimited.
    fn new(name: &'static str, quota: u32) -> Option<Self> {
        let quota = NonZeroU32::new(quota)?;
        count_rejected(name, 0);
        let limiter = RateLimiter::keyed(Quota::per_minute(quota)).with_middleware();
        Some(Self { name, quota, limiter, requests: AtomicU32::new(0) })
    }

    fn charge(&self, key: &K) -> Result<Remaining, Problem> {
        if self.requests.fetch_add(1, Ordering::Relaxed) % EVICTION_INTERVAL
            == EVICTION_INTERVAL - 1
        {
            self.limiter.retain_recent();
        }
        match self.limiter.check_key(key) {
            Ok(state) => {
                let requests = state.remaining_burst_capacity();
                Ok(Remaining { name: self.name, quota: self.quota, requests })
            }
            Err(until) => {
                let now = self.limiter.clock().now();
                count_rejected(self.name, 1);
                Err(Fault::Busy(until.wait_time_from(now)).into())
            }
        }
    }
}

/// Size of the blocks by which the memory of bodies is counted, in bytes. The first block of a body
/// does not count.
const BLOCK: usize = 64 << 10;

/// Maximum number of blocks of all bodies in memory: 64 MiB.
const BLOCKS: usize = 1024;

/// The limits of this gateway.
#[derive(Clone)]
pub(crate) struct Limits(Arc<Inner>);

struct Inner {
    of_address: Option<Rate<IpAddr>>,
    of_customer: Option<Rate<CustomerId>>,
    concurrency: Shares,
    bodies: Shares,
}

impl Limits {
    pub(crate) fn new(config: &EdgeConfig) -> Self {
        for limit in [CONCURRENCY, BODIES] {
            count_rejected(limit, 0);
        }
        Self(Arc::new(Inner {
            of_address: Rate::new("address", config.requests_per_address),
            of_customer: Rate::new("customer", config.requests_per_customer),
            concurrency: Shares::new(config.requests_at_once),
            bodies: Shares::new(BLOCKS),
        }))
    }

    /// Charges a request to the address of its client.
    pub(crate) fn admit(&self, client: ClientAddress) -> Result<RequestLimits, Problem> {
        let rate = client.0.zip(self.0.of_address.as_ref());
        let remaining = rate.map(|(address, rate)| rate.charge(&network(address))).transpose()?;
        let used = Used { remaining: [remaining, None], ..Used::default() };
        Ok(RequestLimits(Arc::new((self.clone(), Mutex::new(used)))))
    }
}

/// The rates that a request has been charged to, and the shares that it holds until its response
/// begins.
#[derive(Clone)]
pub(crate) struct RequestLimits(Arc<(Limits, Mutex<Used>)>);

#[derive(Default)]
struct Used {
    /// The rest of the rate of the address, and of that of the customer.
    remaining: [Option<Remaining>; 2],
    /// None until the customer is known.
    customer: Option<CustomerId>,
    /// The share of the concurrent requests, if the request needs one.
    concurrency: Option<Share>,
    body: Vec<Share>,
}

impl Used {
    /// Returns the customer that shares are charged to: the nil id for requests without a token.
    fn customer(&self) -> CustomerId {
        self.customer.unwrap_or(CustomerId(Uuid::nil()))
    }
}

impl RequestLimits {
    fn limits(&self) -> &Inner {
        &self.0.0.0
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges the request to its customer. Fails if the customer has reached one of its limits.
    pub(crate) fn charge_customer(&self, customer: CustomerId) -> Result<(), Problem> {
        let rate = self.limits().of_customer.as_ref();
        let remaining = rate.map(|rate| rate.charge(&customer)).transpose()?;
        let mut used = self.used();
        used.remaining[1] = remaining;
        used.customer = Some(customer);
        if used.concurrency.take().is_some() {
            used.concurrency = Some(self.acquire(customer)?);
        }
        Ok(())
    }

    /// Counts the request as a concurrent one until its response begins.
    pub(crate) fn occupy(&self) -> Result<(), Problem> {
        let mut used = self.used();
        used.concurrency = Some(self.acquire(used.customer())?);
        Ok(())
    }

    fn acquire(&self, customer: CustomerId) -> Result<Share, Problem> {
        acquire(&self.limits().concurrency, customer, CONCURRENCY)
    }

    /// Counts the memory of the request's body, which has grown to `size` bytes.
    pub(crate) fn charge_body(&self, size: usize) -> Result<(), Problem> {
        let mut used = self.used();
        while used.body.len() < size.saturating_sub(1) / BLOCK {
            let block = acquire(&self.limits().bodies, used.customer(), BODIES)?;
            used.body.push(block);
        }
        Ok(())
    }

    /// Releases all shares.
    pub(crate) fn release(&self) {
        let mut used = self.used();
        used.concurrency = None;
        used.body = Vec::new();
    }

    /// Adds headers with the limits and their remaining requests.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        let used = self.used();
        let (mut policy, mut remaining) = (String::new(), String::new());
        for rate in used.remaining.iter().flatten() {
            let separator = if policy.is_empty() { "" } else { ", " };
            let Remaining { name, quota, requests } = rate;
            let seconds = u64::from(quota.get() - requests) * 60;
            let until_full = seconds.div_ceil(quota.get().into());
            let _ = write!(policy, "{separator}\"{name}\";q={quota};w=60");
            let _ = write!(remaining, "{separator}\"{name}\";r={requests};t={until_full}");
        }
        for (name, value) in [(POLICY, policy), (REMAINING, remaining)] {
            if !value.is_empty() {
                headers.extend(HeaderValue::try_from(value).map(|value| (name, value)));
            }
        }
    }
}

/// Acquires a share. Fails if the customer has too many or none is left.
fn acquire(shares: &Shares, customer: CustomerId, limit: &'static str) -> Result<Share, Problem> {
    shares.try_acquire(customer).map_err(|_| {
        count_rejected(limit, 1);
        Problem::overloaded()
    })
}
