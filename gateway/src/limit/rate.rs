//! Requests per minute.

use std::{
    fmt::Write,
    hash::Hash,
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
};

use assay_proto::Fault;
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
    state::keyed::DefaultKeyedStateStore,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, sleep};

use crate::{problem::Problem, telemetry};

/// Number of requests after which keys that have not been used recently are evicted.
const EVICTION_INTERVAL: u32 = 10_000;

/// Headers of draft-ietf-httpapi-ratelimit-headers-11.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit");

type Limiter<K> =
    RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock, StateInformationMiddleware>;

/// Counts rejected requests. Each limit starts with 0, so that alerts see the first increase.
pub(super) fn count_rejected(limit: &'static str, requests: u64) {
    metrics::counter!(telemetry::REJECTED, "limit" => limit).increment(requests);
}

/// A limit of requests per minute for each `K`, with bursts up to the whole limit.
pub(super) struct Rate<K: Hash + Eq + Clone> {
    name: &'static str,
    quota: NonZeroU32,
    limiter: Limiter<K>,
    requests: AtomicU32,
}

/// The rest of a rate.
pub(super) struct Remaining {
    name: &'static str,
    quota: NonZeroU32,
    requests: u32,
}

impl<K: Hash + Eq + Clone> Rate<K> {
    /// Returns none if `quota` is 0: unlimited.
    pub(super) fn new(name: &'static str, quota: u32) -> Option<Self> {
        let quota = NonZeroU32::new(quota)?;
        count_rejected(name, 0);
        let limiter = RateLimiter::keyed(Quota::per_minute(quota)).with_middleware();
        Some(Self { name, quota, limiter, requests: AtomicU32::new(0) })
    }

    pub(super) fn charge(&self, key: &K) -> Result<Remaining, Problem> {
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

impl<K: Hash + Eq + Clone> Rate<K> {
    /// Waits until a key may be charged, and charges it. Fails if that takes longer than `until`.
    pub(super) async fn charge_until(&self, key: &K, until: Instant) -> Result<(), Problem> {
        while let Err(refused) = self.limiter.check_key(key) {
            let wait = refused.wait_time_from(self.limiter.clock().now());
            if Instant::now() + wait > until {
                return self.charge(key).map(drop);
            }
            sleep(wait).await;
        }
        Ok(())
    }
}

/// Adds headers with the rates of a request and their remaining requests.
pub(super) fn add_headers<'r>(rates: impl Iterator<Item = &'r Remaining>, headers: &mut HeaderMap) {
    let (mut policy, mut remaining) = (String::new(), String::new());
    for Remaining { name, quota, requests } in rates {
        let separator = if policy.is_empty() { "" } else { ", " };
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
