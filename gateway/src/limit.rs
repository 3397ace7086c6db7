//! Limits of requests per minute by address and by customer, of concurrent requests, and of the
//! memory for their bodies. No customer gets all concurrent requests or all memory.
//!
//! Each gateway counts for itself, and starts at zero.

use std::{
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
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
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
}

/// The rates that a request has been charged to, and the shares that it holds until its response
/// begins.
#[derive(Clone)]
pub(crate) struct RequestLimits {
    limits: Limits,
    remaining: Arc<Mutex<Vec<Remaining>>>,
    held: Arc<Mutex<HeldShares>>,
}

#[derive(Default)]
struct HeldShares {
    /// None until the customer is known.
    customer: Option<CustomerId>,
    /// The share of the concurrent requests, if the request needs one.
    concurrency: Option<Share>,
    body: Vec<Share>,
}

impl HeldShares {
    /// Returns the customer that shares are charged to: the nil id for requests without a token.
    fn customer(&self) -> CustomerId {
        self.customer.unwrap_or(CustomerId(Uuid::nil()))
    }
}

impl RequestLimits {
    fn charge<K: Hash + Eq + Clone>(&self, rate: Option<&Rate<K>>, key: &K) -> Result<(), Problem> {
        if let Some(rate) = rate {
            let remaining = rate.charge(key)?;
            self.remaining.lock().unwrap_or_else(PoisonError::into_inner).push(remaining);
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, HeldShares> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges the request to its customer. Fails if the customer has reached one of its limits.
    pub(crate) fn charge_customer(&self, customer: CustomerId) -> Result<(), Problem> {
        self.charge(self.limits.0.of_customer.as_ref(), &customer)?;
        let mut held = self.held();
        held.customer = Some(customer);
        if held.concurrency.take().is_some() {
            held.concurrency = Some(self.acquire(customer)?);
        }
        Ok(())
    }

    /// Counts the request as a concurrent one until its response begins.
    pub(crate) fn admit(&self) -> Result<(), Problem> {
        let mut held = self.held();
        held.concurrency = Some(self.acquire(held.customer())?);
        Ok(())
    }

    fn acquire(&self, customer: CustomerId) -> Result<Share, Problem> {
        acquire(&self.limits.0.concurrency, customer, CONCURRENCY)
    }

    /// Counts the memory of the request's body, which has grown to `size` bytes.
    pub(crate) fn charge_body(&self, size: usize) -> Result<(), Problem> {
        let mut held = self.held();
        while held.body.len() < size.saturating_sub(1) / BLOCK {
            let block = acquire(&self.limits.0.bodies, held.customer(), BODIES)?;
            held.body.push(block);
        }
        Ok(())
    }

    /// Adds headers with the limits and their remaining requests.
    fn add_headers(&self, headers: &mut HeaderMap) {
        let rates = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.is_empty() {
            return;
        }
        let policy = rates.iter().map(|rate| format!("\"{}\";q={};w=60", rate.name, rate.quota));
        let remaining = rates.iter().map(|rate| {
            let seconds = u64::from(rate.quota.get() - rate.requests) * 60;
            let until_full = seconds.div_ceil(rate.quota.get().into());
            format!("\"{}\";r={};t={until_full}", rate.name, rate.requests)
        });
        let headers_of = [(POLICY, policy.collect::<Vec<_>>()), (REMAINING, remaining.collect())];
        for (name, values) in headers_of {
            if let Ok(value) = HeaderValue::try_from(values.join(", ")) {
                headers.insert(name, value);
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

/// Charges each request to its address, and adds the remaining requests to the response.
pub(crate) async fn limit(
    State(limits): State<Limits>,
    mut request: Request,
    next: Next,
) -> Response {
    let used = RequestLimits { limits, remaining: Arc::default(), held: Arc::default() };
    let address = request.extensions().get().and_then(|ClientAddress(address)| *address);
    let of_address = used.limits.0.of_address.as_ref();
    if let Some(address) = address
        && let Err(problem) = used.charge(of_address, &network(address))
    {
        return problem.into_response();
    }
    request.extensions_mut().insert(used.clone());
    let mut response = next.run(request).await;
    *used.held() = HeldShares::default();
    used.add_headers(response.headers_mut());
    response
}
