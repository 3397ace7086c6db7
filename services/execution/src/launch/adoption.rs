//! Test cases of launches that the catalog has to adopt, which needs the token of a caller.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_auth::Caller;
use assay_proto::{CustomerId, Fault, LaunchId, TestResult};
use futures::{StreamExt, stream};
use tokio::time::Instant;
use tonic::Status;

use super::{Launches, closing, store};
use crate::{
    execution::store as executions,
    progress::{
        instance::{Attempt, Outcome},
        merge::ANNOUNCED,
    },
    result::{Added, file::Report, rules::Reported},
};

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
/// other, and of customers at the same time.
const MOST_ADOPTED: usize = 5;
const CUSTOMERS: usize = 4;

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
    fn customers(&self) -> Vec<CustomerId> {
        let mut known = self.known();
        known.retain(|_, launches| {
            launches.retain(|_, reporting| reporting.last_request.elapsed() < EXPIRY);
            !launches.is_empty()
        });
        known.keys().copied().collect()
    }

    /// Returns the callers of launches whose test cases should be adopted now: those that pause, and
    /// those that are `waiting` for it.
    fn wanted(
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
    fn begin(&self, customer: CustomerId, launch: LaunchId) {
        if let Some(known) = self.known().get_mut(&customer)
            && let Some(reporting) = known.get_mut(&launch)
        {
            reporting.tried = Some(Instant::now());
        }
    }

    /// Forgets the caller of a launch whose test cases are adopted, unless a request has arrived
    /// since that began.
    fn end(&self, customer: CustomerId, launch: LaunchId) {
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

impl Launches {
    /// Adopts the test cases of launches that pause or wait for it: of a few of each customer, so that
    /// no customer waits for long.
    pub(super) async fn adopt_paused(&self) -> Result<(), Fault> {
        let customers = self.0.callers.customers();
        if customers.is_empty() {
            return Ok(());
        }
        let waiting = store::waiting(&self.0.db, &customers).await?.into_iter().collect();
        let wanted = self.0.callers.wanted(&waiting);
        let adopt = |launches: Vec<(LaunchId, Caller)>| async {
            for (launch, caller) in launches {
                if let Err(status) = self.adopt(&caller, launch).await {
                    tracing::warn!(%status, launch.id = %launch,
                        "cannot adopt test cases of a launch; trying again");
                }
            }
        };
        stream::iter(wanted.into_values()).for_each_concurrent(CUSTOMERS, adopt).await;
        Ok(())
    }

    /// Lets a caller adopt the test cases of launches of the customer that need one.
    pub(super) async fn lend(&self, caller: &Caller) -> Result<(), Fault> {
        for (_, launch) in store::waiting(&self.0.db, &[caller.customer]).await? {
            if self.0.callers.of(caller.customer, launch).is_none() {
                self.0.callers.remember(caller, launch);
            }
        }
        Ok(())
    }

    /// Has the catalog adopt the test cases of a launch that its execution does not have.
    pub(super) async fn adopt(&self, caller: &Caller, id: LaunchId) -> Result<(), Status> {
        let customer = caller.customer;
        self.0.callers.begin(customer, id);
        self.announce(caller, id).await?;
        self.read_with(customer, store::resume(&self.0.db, customer, id)).await?;
        self.0.callers.end(customer, id);
        Ok(())
    }

    /// Announces the tests of a launch, so that its execution shows them and the catalog creates their
    /// test cases.
    async fn announce(&self, caller: &Caller, id: LaunchId) -> Result<(), Status> {
        let (db, customer) = (&self.0.db, caller.customer);
        let found = self.read_with(customer, store::find(db, customer, id)).await?;
        let Some(launch) = found.filter(|launch| !launch.ended) else { return Ok(()) };
        let Some((project, execution)) = launch.execution else { return Ok(()) };
        let (launched, _, memory) = self.read(&launch, false).await?;
        let Report { results, .. } = closing::results(launched, launch.finished).await?;
        let state = executions::get(db, customer, project, execution);
        if results.is_empty() || self.read_with(customer, state).await?.has_ended() {
            return Ok(());
        }
        let added = Added { results: announcements(results), ..Added::default() };
        self.0.results.add(caller, project, execution, added, memory).await.map(drop)
    }
}

/// Returns announcements of the instances of results.
fn announcements(results: Vec<Reported>) -> Vec<Reported> {
    let outcome = Outcome { result: TestResult::NotExecuted, ..Outcome::default() };
    let announced = |result: Reported| Reported {
        attempt: Attempt { number: ANNOUNCED, outcome, ..Attempt::default() },
        ..result
    };
    results.into_iter().map(announced).collect()
}
