//! Test cases of launches that the catalog has to adopt, which needs the token of a caller.

use assay_auth::Caller;
use assay_ledger::{
    execution::store as executions,
    progress::{
        instance::{Attempt, Outcome},
        merge::ANNOUNCED,
    },
};
use assay_proto::{Fault, LaunchId, TestResult};
use futures::{StreamExt, stream};
use tonic::Status;

use super::{Launches, closing, store};
use crate::result::{Added, file::Report, rules::Reported};

/// Maximum number of customers whose test cases are adopted at the same time.
const CUSTOMERS: usize = 4;

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
        let state = executions::find(db, customer, Some(project), execution);
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
