//! Test cases of launches that the catalog has to adopt, which needs the token of a caller.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_auth::Caller;
use assay_proto::{CustomerId, LaunchId, TestResult};
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

/// Time without requests after which the test cases of a launch are adopted. Tokens are valid for
/// longer.
const PAUSE: Duration = Duration::from_secs(10);

/// Time after which they are adopted even if requests arrive all the time.
const PATIENCE: Duration = Duration::from_mins(1);

/// Time after which the token of a caller has expired.
const EXPIRY: Duration = Duration::from_mins(5);

/// Maximum number of launches of a customer whose callers are remembered. The test cases of further
/// ones are adopted with the next launch of the customer.
const MOST_LAUNCHES: usize = 1000;

/// The latest callers of launches whose test cases may not be adopted yet.
#[derive(Clone, Default)]
pub(super) struct Callers(Arc<Mutex<HashMap<CustomerId, OfCustomer>>>);

type OfCustomer = HashMap<LaunchId, Reporting>;

struct Reporting {
    caller: Caller,
    last_request: Instant,
    adopted: Instant,
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
            last_request: now,
            adopted: now,
        });
        (reporting.caller, reporting.last_request) = (caller.clone(), now);
    }

    /// Forgets the caller of a launch whose test cases are adopted.
    pub(super) fn forget(&self, customer: CustomerId, launch: LaunchId) {
        if let Some(known) = self.known().get_mut(&customer) {
            known.remove(&launch);
        }
    }

    /// Returns the callers of launches whose test cases should be adopted now.
    fn paused(&self) -> Vec<(LaunchId, Caller)> {
        let mut known = self.known();
        known.retain(|_, launches| {
            launches.retain(|_, reporting| reporting.last_request.elapsed() < EXPIRY);
            !launches.is_empty()
        });
        let paused = known.values_mut().flat_map(HashMap::iter_mut).filter(|(_, reporting)| {
            reporting.last_request.elapsed() >= PAUSE || reporting.adopted.elapsed() >= PATIENCE
        });
        let taken = paused.map(|(launch, reporting)| {
            reporting.adopted = Instant::now();
            (*launch, reporting.caller.clone())
        });
        taken.collect()
    }

    /// Forgets the caller of a launch, unless a request has arrived since its test cases were adopted.
    fn forget_paused(&self, customer: CustomerId, launch: LaunchId) {
        let mut known = self.known();
        let Some(known) = known.get_mut(&customer) else { return };
        if known.get(&launch).is_some_and(|reporting| reporting.last_request < reporting.adopted) {
            known.remove(&launch);
        }
    }
}

impl Launches {
    /// Adopts the test cases of launches that pause. A failure is repeated in the next round.
    pub(super) async fn adopt_paused(&self) {
        for (launch, caller) in self.0.callers.paused() {
            match self.adopt(&caller, launch).await {
                Ok(()) => self.0.callers.forget_paused(caller.customer, launch),
                Err(status) => tracing::warn!(%status, launch.id = %launch,
                    "cannot adopt test cases of a launch; trying again"),
            }
        }
    }

    /// Adopts the test cases of launches of the customer that no caller has adopted.
    pub(super) async fn adopt_of_others(&self, caller: &Caller) {
        let waiting = store::waiting(&self.0.db, caller.customer).await;
        for launch in waiting.unwrap_or_default() {
            if let Err(status) = self.adopt(caller, launch).await {
                tracing::warn!(%status, launch.id = %launch,
                    "cannot adopt test cases of a launch; trying again");
            }
        }
    }

    /// Has the catalog adopt the test cases of a launch that its execution does not have.
    pub(super) async fn adopt(&self, caller: &Caller, id: LaunchId) -> Result<(), Status> {
        self.announce(caller, id).await?;
        Ok(store::resume(&self.0.db, caller.customer, id).await?)
    }

    /// Announces the tests of a launch, so that its execution shows them and the catalog creates their
    /// test cases.
    async fn announce(&self, caller: &Caller, id: LaunchId) -> Result<(), Status> {
        let (db, customer) = (&self.0.db, caller.customer);
        let Some(launch) = store::find(db, customer, id).await? else { return Ok(()) };
        let Some((project, execution)) = launch.execution.filter(|_| !launch.ended) else {
            return Ok(());
        };
        let (launched, _, memory) = self.read(&launch, false).await?;
        let Report { results, .. } = closing::results(launched, launch.finished).await?;
        if results.is_empty()
            || executions::get(db, customer, project, execution).await?.has_ended()
        {
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
