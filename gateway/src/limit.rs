//! Limits of requests per minute by address and by customer, of concurrent requests, and of the
//! memory for their bodies. No customer gets all concurrent requests or all memory.
//!
//! Each gateway counts for itself, and starts at zero.

mod callers;
mod rate;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_fair::{Share, Shares};
use assay_proto::CustomerId;
use assay_runtime::http::network;
use http::HeaderMap;
use tokio::time::{Instant, sleep_until};

use self::{
    callers::{Caller, Callers, TokenHash},
    rate::{Rate, Remaining, count_rejected},
};
use crate::{address::ClientAddress, config::EdgeConfig, problem::Problem, token::token};

/// Maximum time for which a request waits for its turn, and minimum time after which a refusal is
/// sent: a client that retries at once would otherwise occupy the processors with refusals.
const PATIENCE: Duration = Duration::from_millis(500);

/// Maximum time for which a launch waits until it may start. Agents in Python wait for ten seconds.
const LAUNCH: Duration = Duration::from_secs(8);

/// Minimum time for each refusal of a customer that is held back, so that no more than 1,000 are
/// sent in a second.
const PER_REFUSAL: Duration = Duration::from_millis(1);

/// Maximum number of refusals that are held back, three quarters of them of one customer. Further
/// ones are sent at once.
const HELD_BACK: usize = 10_000;

/// Labels of the limits of concurrent requests and of the memory for bodies.
const CONCURRENCY: &str = "at once";
const BODIES: &str = "bodies";

/// Size of the blocks by which the memory of bodies is counted, in bytes. The first block of a body
/// does not count.
const BLOCK: usize = 64 << 10;

/// Maximum number of blocks of all bodies in memory, and of what is parsed from them: 128 MiB.
const BLOCKS: usize = 2048;

/// How long the responses of a route may take to begin.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// 20 seconds. Requests wait for their turn.
    Quick,
    /// As long as the client takes, or the event for which it waits.
    Slow,
    /// Like `Slow`, for agents that drop results if a request is refused. Launches are charged to
    /// the limits per minute, and requests with a known token are not.
    Reporting,
}

/// The limits of this gateway.
#[derive(Clone)]
pub(crate) struct Limits(Arc<Inner>);

struct Inner {
    of_address: Option<Rate<IpAddr>>,
    of_customer: Option<Rate<CustomerId>>,
    callers: Callers,
    /// Turns of quick requests: as many at once as the processors can do.
    turns: Shares,
    /// Requests that wait for their body, and have given their turn back.
    receiving: Shares,
    /// Memory of bodies, in blocks.
    bodies: Shares,
    held_back: Shares,
}

impl Limits {
    pub(crate) fn new(config: &EdgeConfig) -> Self {
        for limit in [CONCURRENCY, BODIES] {
            count_rejected(limit, 0);
        }
        let most = config.requests_at_once.max(1);
        // Requests that are gathered share statements, so fewer at once would make each of them more expensive.
        let fewest = (8 * config.calls_at_once()).min(most);
        Self(Arc::new(Inner {
            of_address: Rate::new("address", config.requests_per_address),
            of_customer: Rate::new("customer", config.requests_per_customer),
            callers: Callers::default(),
            turns: Shares::between(fewest..=most),
            receiving: Shares::new(most),
            bodies: Shares::new(BLOCKS),
            held_back: Shares::new(HELD_BACK),
        }))
    }

    /// Charges a request to its address, and to its customer if its token is known, and lets it
    /// wait for its turn.
    pub(crate) async fn admit(
        &self,
        client: ClientAddress,
        headers: &HeaderMap,
        pace: Pace,
    ) -> Result<RequestLimits, Problem> {
        let (arrived, address) = (Instant::now(), client.0.map(network));
        let session = token(headers).is_none().then(|| assay_console::token(headers)).flatten();
        let caller = self.0.callers.identify(address, token(headers).or(session.as_deref()));
        match self.enter(address, caller, pace).await {
            Ok(used) => Ok(RequestLimits(Arc::new((self.clone(), Mutex::new(used))))),
            Err(problem) => {
                self.hold_back(caller.customer, arrived).await;
                Err(problem)
            }
        }
    }

    async fn enter(
        &self,
        address: Option<IpAddr>,
        caller: Caller,
        pace: Pace,
    ) -> Result<Used, Problem> {
        let Caller { token, customer, is_known } = caller;
        // Agents are charged for their launches.
        let is_free = pace == Pace::Reporting && is_known;
        let of_address = address.filter(|_| !is_free).zip(self.0.of_address.as_ref());
        let of_address = of_address.map(|(address, rate)| rate.charge(&address)).transpose()?;
        let of_customer = is_known && !is_free;
        let of_customer = of_customer.then(|| self.charge_customer(customer)).transpose()?;
        let turn = match pace {
            Pace::Quick => Some(self.wait_for_turn(customer).await?),
            Pace::Slow | Pace::Reporting => None,
        };
        let (remaining, receiving, body) = ([of_address, of_customer.flatten()], None, Vec::new());
        Ok(Used { address, pace, remaining, token, customer, turn, receiving, body })
    }

    fn charge_customer(&self, customer: CustomerId) -> Result<Option<Remaining>, Problem> {
        self.0.of_customer.as_ref().map(|rate| rate.charge(&customer)).transpose()
    }

    async fn wait_for_turn(&self, customer: CustomerId) -> Result<Share, Problem> {
        let turn = self.0.turns.acquire_within(customer, PATIENCE).await;
        turn.map_err(|_| overloaded(CONCURRENCY))
    }

    /// Waits until a refusal may be sent: the longer, the more of the customer wait.
    async fn hold_back(&self, customer: CustomerId, arrived: Instant) {
        let held_back = &self.0.held_back;
        if let Ok(_place) = held_back.try_acquire(customer) {
            let count = u32::try_from(held_back.held_by(customer)).unwrap_or(u32::MAX);
            sleep_until(arrived + PATIENCE.max(PER_REFUSAL * count)).await;
        }
    }
}

/// The rates that a request has been charged to, and the shares that it holds until its response
/// begins.
#[derive(Clone)]
pub(crate) struct RequestLimits(Arc<(Limits, Mutex<Used>)>);

struct Used {
    address: Option<IpAddr>,
    pace: Pace,
    /// The rest of the rate of the address, and of that of the customer.
    remaining: [Option<Remaining>; 2],
    token: Option<TokenHash>,
    /// The customer that shares are charged to. Until the token is verified, it may be the one that
    /// stands for requests without a known token.
    customer: CustomerId,
    turn: Option<Share>,
    receiving: Option<Share>,
    body: Vec<Share>,
}

impl RequestLimits {
    fn limits(&self) -> &Limits {
        &self.0.0
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges the request to the customer of its verified token, unless that was known before.
    /// Fails if the customer has reached one of its limits.
    pub(crate) fn charge_customer(&self, customer: CustomerId) -> Result<(), Problem> {
        let (mut used, limits) = (self.used(), self.limits());
        if used.customer == customer {
            return Ok(());
        }
        used.customer = customer;
        if let Some(token) = used.token {
            limits.0.callers.learn(token, customer);
        }
        if used.pace != Pace::Reporting {
            used.remaining[1] = limits.charge_customer(customer)?;
        }
        match &mut used.turn {
            Some(turn) => turn.reassign(customer).map_err(|_| overloaded(CONCURRENCY)),
            None => Ok(()),
        }
    }

    /// Charges a launch to the address and the customer. It waits until both may start another one.
    pub(crate) async fn charge_launch(&self, customer: CustomerId) -> Result<(), Problem> {
        let (address, limits) = (self.used().address, &self.limits().0);
        let until = Instant::now() + LAUNCH;
        if let Some((address, rate)) = address.zip(limits.of_address.as_ref()) {
            rate.charge_until(&address, until).await?;
        }
        match &limits.of_customer {
            Some(rate) => rate.charge_until(&customer, until).await,
            None => Ok(()),
        }
    }

    /// Charges further requests with the same token to their address: it is not valid.
    pub(crate) fn forget_token(&self) {
        if let Some(token) = self.used().token {
            self.limits().0.callers.forget(token);
        }
    }

    /// Gives the turn of the request back, because its body has not arrived yet. A slow client
    /// would keep others from their turn.
    pub(crate) fn wait_for_body(&self) -> Result<(), Problem> {
        let mut used = self.used();
        if used.turn.take().is_some() {
            let receiving = &self.limits().0.receiving;
            used.receiving = Some(acquire(receiving, used.customer, CONCURRENCY)?);
        }
        Ok(())
    }

    /// Counts the memory of the request's body, with what is parsed from it, which has grown to `size`
    /// bytes.
    pub(crate) fn charge_body(&self, size: usize) -> Result<(), Problem> {
        let mut used = self.used();
        while used.body.len() < size.saturating_sub(1) / BLOCK {
            let block = acquire(&self.limits().0.bodies, used.customer, BODIES)?;
            used.body.push(block);
        }
        Ok(())
    }

    /// Releases all shares.
    pub(crate) fn release(&self) {
        let mut used = self.used();
        (used.turn, used.receiving, used.body) = (None, None, Vec::new());
    }

    /// Adds headers with the limits and their remaining requests.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        rate::add_headers(self.used().remaining.iter().flatten(), headers);
    }
}

/// Acquires a share. Fails if the customer has too many or none is left.
fn acquire(shares: &Shares, customer: CustomerId, limit: &'static str) -> Result<Share, Problem> {
    shares.try_acquire(customer).map_err(|_| overloaded(limit))
}

fn overloaded(limit: &'static str) -> Problem {
    count_rejected(limit, 1);
    Problem::overloaded()
}

#[cfg(test)]
mod tests;
