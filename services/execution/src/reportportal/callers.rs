//! The callers of launches, whose tokens are needed to adopt test cases.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_auth::Caller;
use assay_proto::{CustomerId, LaunchId};
use tokio::time::Instant;

/// Time without requests after which the test cases of a launch are adopted, so that its execution
/// shows them. Tokens are valid for longer.
const PAUSE: Duration = Duration::from_secs(10);

/// Time after which they are adopted even if requests arrive all the time.
const PATIENCE: Duration = Duration::from_mins(1);

/// Time after which adopting them is repeated that has failed.
const RETRY: Duration = Duration::from_secs(2);

/// Time after which the token of a caller has expired.
const EXPIRY: Duration = Duration::from_mins(5);

/// Maximum number of launches of a customer whose callers are remembered. The test cases of further
/// ones are adopted when they are finished, or with the next launch of the customer.
const MOST_LAUNCHES: usize = 1000;

/// Maximum number of launches of a customer whose test cases are adopted in a round, one after the
/// other.
const MOST_ADOPTED: usize = 5;

/// The latest callers of launches whose test cases may not be adopted yet.
#[derive(Clone, Default)]
pub(super) struct Callers(Arc<Mutex<HashMap<CustomerId, OfCustomer>>>);

type OfCustomer = HashMap<LaunchId, Reporting>;

struct Reporting {
    caller: Caller,
    first_request: Instant,
    last_request: Instant,
    /// The last time at which adopting its test cases began.
    tried: Option<Instant>,
}

impl Callers {
    fn known(&self) -> MutexGuard<'_, HashMap<CustomerId, OfCustomer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the caller of a request.
    pub(super) fn remember(&self, caller: &Caller, launch: LaunchId) {
        let now = Instant::now();
        let mut known = self.known();
        let known = known.entry(caller.customer).or_default();
        if known.len() >= MOST_LAUNCHES && !known.contains_key(&launch) {
            return;
        }
        let reporting = known.entry(launch).or_insert_with(|| Reporting {
            caller: caller.clone(),
            first_request: now,
            last_request: now,
            tried: None,
        });
        (reporting.caller, reporting.last_request) = (caller.clone(), now);
    }

    /// Returns the caller of a launch, if it is remembered.
    pub(super) fn of(&self, customer: CustomerId, launch: LaunchId) -> Option<Caller> {
        let known = self.known();
        known.get(&customer)?.get(&launch).map(|reporting| reporting.caller.clone())
    }

    /// Returns the customers with remembered callers, and forgets those that have expired.
    pub(super) fn customers(&self) -> Vec<CustomerId> {
        let mut known = self.known();
        known.retain(|_, launches| {
            launches.retain(|_, reporting| reporting.last_request.elapsed() < EXPIRY);
            !launches.is_empty()
        });
        known.keys().copied().collect()
    }

    /// Returns the callers of launches whose test cases should be adopted now: those that pause, and
    /// those that are `waiting` for it.
    pub(super) fn wanted(
        &self,
        waiting: &HashSet<(CustomerId, LaunchId)>,
    ) -> HashMap<CustomerId, Vec<(LaunchId, Caller)>> {
        let wanted = |customer: CustomerId, id: LaunchId, reporting: &Reporting| {
            let tried = |patience| reporting.tried.is_none_or(|tried| tried.elapsed() >= patience);
            let is_waiting = waiting.contains(&(customer, id)) && tried(RETRY);
            let has_paused = reporting.last_request.elapsed() >= PAUSE && tried(PAUSE);
            is_waiting
                || has_paused
                || reporting.first_request.elapsed() >= PATIENCE && tried(PATIENCE)
        };
        let known = self.known();
        let of_customer = |(customer, launches): (&CustomerId, &OfCustomer)| {
            let launches = launches.iter().filter(|(id, one)| wanted(*customer, **id, one));
            let launches = launches.map(|(id, reporting)| (*id, reporting.caller.clone()));
            (*customer, launches.take(MOST_ADOPTED).collect())
        };
        known.iter().map(of_customer).collect()
    }

    /// Notes that adopting the test cases of a launch begins.
    pub(super) fn begin(&self, customer: CustomerId, launch: LaunchId) {
        if let Some(known) = self.known().get_mut(&customer)
            && let Some(reporting) = known.get_mut(&launch)
        {
            reporting.tried = Some(Instant::now());
        }
    }

    /// Forgets the caller of a launch whose test cases are adopted, unless a request has arrived
    /// since that began.
    pub(super) fn end(&self, customer: CustomerId, launch: LaunchId) {
        let mut known = self.known();
        let Some(known) = known.get_mut(&customer) else { return };
        let is_adopted = |reporting: &Reporting| {
            reporting.tried.is_some_and(|tried| reporting.last_request <= tried)
        };
        if known.get(&launch).is_some_and(is_adopted) {
            known.remove(&launch);
        }
    }

    /// Forgets a caller whose token is not accepted.
    pub(super) fn forget(&self, customer: CustomerId, launch: LaunchId) {
        if let Some(known) = self.known().get_mut(&customer) {
            known.remove(&launch);
        }
    }
}
