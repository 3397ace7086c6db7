//! How much is let in: requests a minute, of an address and of a customer, and requests at once.
//!
//! Each gateway counts for itself; what it has counted is gone when it ends.

use std::{
    hash::Hash,
    net::IpAddr,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use assay_proto::{CustomerId, Fault};
use assay_runtime::http::network;
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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{address::ClientAddress, config::EdgeConfig, problem::Problem};

/// After so many requests, those are forgotten who have not asked for long.
const TIDY: u32 = 10_000;

/// Of draft-ietf-httpapi-ratelimit-headers-11.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEFT: HeaderName = HeaderName::from_static("ratelimit");

type Limiter<K> =
    RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock, StateInformationMiddleware>;

/// The limit of requests that are worked on together.
const AT_ONCE: &str = "at once";

/// Counts refused requests. A limit begins with none: an alert sees only what grows.
fn count_refused(limit: &'static str, requests: u64) {
    metrics::counter!("assay_requests_refused_total", "limit" => limit).increment(requests);
}

/// So many requests a minute for each `K`, which may all come at once.
struct Rate<K: Hash + Eq + Clone> {
    name: &'static str,
    most: NonZeroU32,
    limiter: Limiter<K>,
    spent: AtomicU32,
}

/// What is left of a rate.
struct Left {
    name: &'static str,
    most: NonZeroU32,
    rest: u32,
}

impl<K: Hash + Eq + Clone> Rate<K> {
    /// None where there is no limit.
    fn new(name: &'static str, most: u32) -> Option<Self> {
        let most = NonZeroU32::new(most)?;
        count_refused(name, 0);
        let quota = Quota::per_minute(most);
        let limiter = RateLimiter::keyed(quota).with_middleware();
        Some(Self { name, most, limiter, spent: AtomicU32::new(0) })
    }

    fn spend(&self, key: &K) -> Result<Left, Problem> {
        if self.spent.fetch_add(1, Ordering::Relaxed) % TIDY == TIDY - 1 {
            self.limiter.retain_recent();
        }
        match self.limiter.check_key(key) {
            Ok(left) => {
                let rest = left.remaining_burst_capacity();
                Ok(Left { name: self.name, most: self.most, rest })
            }
            Err(until) => {
                let now = self.limiter.clock().now();
                count_refused(self.name, 1);
                Err(Fault::Busy(until.wait_time_from(now)).into())
            }
        }
    }
}

/// What is let in.
#[derive(Clone)]
pub(crate) struct Limits(Arc<Inner>);

struct Inner {
    of_address: Option<Rate<IpAddr>>,
    of_customer: Option<Rate<CustomerId>>,
    at_once: Arc<Semaphore>,
}

impl Limits {
    pub(crate) fn new(config: &EdgeConfig) -> Self {
        count_refused(AT_ONCE, 0);
        Self(Arc::new(Inner {
            of_address: Rate::new("address", config.requests_per_address),
            of_customer: Rate::new("customer", config.requests_per_customer),
            at_once: Arc::new(Semaphore::new(config.requests_at_once)),
        }))
    }
}

/// What a request has spent so far.
#[derive(Clone)]
pub(crate) struct Account {
    limits: Limits,
    left: Arc<Mutex<Vec<Left>>>,
}

impl Account {
    fn charge<K: Hash + Eq + Clone>(&self, rate: Option<&Rate<K>>, key: &K) -> Result<(), Problem> {
        if let Some(rate) = rate {
            let left = rate.spend(key)?;
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push(left);
        }
        Ok(())
    }

    /// Counts the request for its customer.
    pub(crate) fn charge_customer(&self, customer: CustomerId) -> Result<(), Problem> {
        self.charge(self.limits.0.of_customer.as_ref(), &customer)
    }

    /// A place among the requests that are worked on, for as long as it is kept.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.limits.0.at_once.clone().try_acquire_owned().map_err(|_| {
            count_refused(AT_ONCE, 1);
            Problem::overloaded()
        })
    }

    fn tell(&self, headers: &mut HeaderMap) {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_empty() {
            return;
        }
        let policy = left.iter().map(|left| format!("\"{}\";q={};w=60", left.name, left.most));
        let rest = left.iter().map(|left| {
            let seconds = u64::from(left.most.get() - left.rest) * 60;
            let until_all = seconds.div_ceil(left.most.get().into());
            format!("\"{}\";r={};t={until_all}", left.name, left.rest)
        });
        let headers_of = [(POLICY, policy.collect::<Vec<_>>()), (LEFT, rest.collect())];
        for (name, values) in headers_of {
            if let Ok(value) = HeaderValue::try_from(values.join(", ")) {
                headers.insert(name, value);
            }
        }
    }
}

/// Counts each request for its address, and tells what is left.
pub(crate) async fn limit(
    State(limits): State<Limits>,
    mut request: Request,
    next: Next,
) -> Response {
    let account = Account { limits, left: Arc::default() };
    let address = request.extensions().get().and_then(|ClientAddress(address)| *address);
    let of_address = account.limits.0.of_address.as_ref();
    if let Some(address) = address
        && let Err(problem) = account.charge(of_address, &network(address))
    {
        return problem.into_response();
    }
    request.extensions_mut().insert(account.clone());
    let mut response = next.run(request).await;
    account.tell(response.headers_mut());
    response
}
