//! Limits: requests a minute from an address and from a customer, concurrent requests, and the size of
//! their bodies. One customer never gets all of the last two.
//!
//! Each gateway counts for itself; what it has counted is gone when it ends.

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

use crate::{address::ClientAddress, config::EdgeConfig, problem::Problem};

/// After so many requests, those are forgotten who have not asked for long.
const TIDY: u32 = 10_000;

/// Of draft-ietf-httpapi-ratelimit-headers-11.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEFT: HeaderName = HeaderName::from_static("ratelimit");

type Limiter<K> =
    RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock, StateInformationMiddleware>;

/// The limit of requests that are worked on together, and that of the bodies that they keep.
const AT_ONCE: &str = "at once";
const BODIES: &str = "bodies";

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

/// Size of the pieces that bodies are charged by, in bytes. The first piece of each is free.
const PIECE: usize = 64 << 10;

/// Maximum number of pieces of bodies that are kept at once: 64 MiB.
const PIECES: usize = 1024;

/// What is let in.
#[derive(Clone)]
pub(crate) struct Limits(Arc<Inner>);

struct Inner {
    of_address: Option<Rate<IpAddr>>,
    of_customer: Option<Rate<CustomerId>>,
    at_once: Shares,
    bodies: Shares,
}

impl Limits {
    pub(crate) fn new(config: &EdgeConfig) -> Self {
        for limit in [AT_ONCE, BODIES] {
            count_refused(limit, 0);
        }
        Self(Arc::new(Inner {
            of_address: Rate::new("address", config.requests_per_address),
            of_customer: Rate::new("customer", config.requests_per_customer),
            at_once: Shares::new(config.requests_at_once),
            bodies: Shares::new(PIECES),
        }))
    }
}

/// The limits that a request has used so far, and the shares that it holds until its answer begins.
#[derive(Clone)]
pub(crate) struct Account {
    limits: Limits,
    left: Arc<Mutex<Vec<Left>>>,
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    /// None until the customer is known.
    customer: Option<CustomerId>,
    /// The request's place among those at once, if it needs one.
    place: Option<Share>,
    body: Vec<Share>,
}

impl Held {
    /// Returns the customer that shares are charged to: for requests without a token, one that
    /// doesn't exist.
    fn customer(&self) -> CustomerId {
        self.customer.unwrap_or(CustomerId(Uuid::nil()))
    }
}

impl Account {
    fn charge<K: Hash + Eq + Clone>(&self, rate: Option<&Rate<K>>, key: &K) -> Result<(), Problem> {
        if let Some(rate) = rate {
            let left = rate.spend(key)?;
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push(left);
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the request for its customer, which may have taken its share of all requests.
    pub(crate) fn charge_customer(&self, customer: CustomerId) -> Result<(), Problem> {
        self.charge(self.limits.0.of_customer.as_ref(), &customer)?;
        let mut held = self.held();
        held.customer = Some(customer);
        if held.place.take().is_some() {
            held.place = Some(self.place_for(customer)?);
        }
        Ok(())
    }

    /// Takes a place among the requests that are worked on, until the answer begins.
    pub(crate) fn admit(&self) -> Result<(), Problem> {
        let mut held = self.held();
        held.place = Some(self.place_for(held.customer())?);
        Ok(())
    }

    fn place_for(&self, customer: CustomerId) -> Result<Share, Problem> {
        share(&self.limits.0.at_once, customer, AT_ONCE)
    }

    /// Counts what is kept of the request's body, whose size has grown to this.
    pub(crate) fn charge_body(&self, size: usize) -> Result<(), Problem> {
        let mut held = self.held();
        while held.body.len() < size.saturating_sub(1) / PIECE {
            let piece = share(&self.limits.0.bodies, held.customer(), BODIES)?;
            held.body.push(piece);
        }
        Ok(())
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

/// A share, or the refusal of a customer that has too many.
fn share(shares: &Shares, customer: CustomerId, limit: &'static str) -> Result<Share, Problem> {
    shares.try_acquire(customer).map_err(|_| {
        count_refused(limit, 1);
        Problem::overloaded()
    })
}

/// Counts each request for its address, and tells what is left.
pub(crate) async fn limit(
    State(limits): State<Limits>,
    mut request: Request,
    next: Next,
) -> Response {
    let account = Account { limits, left: Arc::default(), held: Arc::default() };
    let address = request.extensions().get().and_then(|ClientAddress(address)| *address);
    let of_address = account.limits.0.of_address.as_ref();
    if let Some(address) = address
        && let Err(problem) = account.charge(of_address, &network(address))
    {
        return problem.into_response();
    }
    request.extensions_mut().insert(account.clone());
    let mut response = next.run(request).await;
    *account.held() = Held::default();
    account.tell(response.headers_mut());
    response
}
