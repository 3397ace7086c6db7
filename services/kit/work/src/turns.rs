//! Work that a replica claims in turns and does concurrently, such as sending mails.
//!
//! Each piece of work talks to a server outside Assay that may hang, answer byte by byte, or answer
//! late. So it has a deadline, and its claim lasts longer than that. Several pieces are done at once,
//! and the claim gives each turn, such as a customer, its share, so that work that hangs delays
//! only its own turn. A program that is frozen keeps its claims until they expire; the next program to
//! claim the work gets a new token, without which the late one records nothing.

use std::{
    collections::{HashMap, hash_map},
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use assay_database::Database;
use assay_proto::Fault;
use assay_runtime::Runtime;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// Work that is claimed in turns.
pub trait InTurns: Send + Sync + Sized + 'static {
    /// The name of the task.
    const TASK: &'static str;
    /// Interval of claims without a signal: for retries, and work whose signal was lost.
    const POLL: Duration;
    /// Minimum time between two claims, however many signals there are.
    const PAUSE: Duration;
    /// Maximum time for the work that has begun when the program stops. Work that takes longer is
    /// done again after its claim has expired.
    const STOP_GRACE: Duration;

    /// A claimed piece of work.
    type Claimed: Send + 'static;
    /// Whose turn it is.
    type Turn: Clone + Eq + Hash + Send + Sync + 'static;

    fn turn(claimed: &Self::Claimed) -> Self::Turn;

    /// Claims as much as may begin beside what is running.
    fn claim(
        &self,
        running: &Turns<Self::Turn>,
    ) -> impl Future<Output = Result<Vec<Self::Claimed>, Fault>> + Send;

    /// Resolves when there may be new work.
    fn signal(&self) -> impl Future<Output = ()> + Send;

    /// Does the work within its deadline, and records the result.
    fn run(
        self: Arc<Self>,
        claimed: Self::Claimed,
        stopping: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static;

    /// Claims and does the work once the database is ready, until the program stops.
    fn spawn(self, runtime: &Runtime, database: &Database) {
        let (this, database, stopping) = (Arc::new(self), database.clone(), runtime.stopping());
        runtime.spawn(Self::TASK, async move {
            if stopping.run_until_cancelled(database.ready()).await.is_none() {
                return Ok(());
            }
            let (mut tasks, mut running) = (JoinSet::new(), Turns::default());
            while !stopping.is_cancelled() {
                let begun = Instant::now();
                for claimed in claim(&*this, &running).await {
                    let turn = Self::turn(&claimed);
                    running.begin(turn.clone());
                    let work = this.clone().run(claimed, stopping.clone());
                    tasks.spawn(async move {
                        work.await;
                        turn
                    });
                }
                tokio::select! {
                    Some(ended) = tasks.join_next() => running.end(&ended?),
                    () = this.signal() => {}
                    () = sleep(Self::POLL) => {}
                    () = stopping.cancelled() => {}
                }
                sleep_until(begun + Self::PAUSE).await;
                // Work that ends together is followed by one claim.
                while let Some(ended) = tasks.try_join_next() {
                    running.end(&ended?);
                }
            }
            let ends = async { while tasks.join_next().await.is_some() {} };
            let _ = timeout(Self::STOP_GRACE, ends).await;
            Ok(())
        });
    }
}

async fn claim<W: InTurns>(work: &W, running: &Turns<W::Turn>) -> Vec<W::Claimed> {
    match work.claim(running).await {
        Ok(claimed) => claimed,
        Err(fault @ Fault::Unavailable(_)) => {
            tracing::debug!(task = W::TASK, %fault, "cannot read work that is due");
            Vec::new()
        }
        Err(fault) => {
            tracing::error!(task = W::TASK, error = %fault, "cannot read work that is due");
            Vec::new()
        }
    }
}

/// The number of pieces of work that a replica is doing, of each turn.
#[derive(Debug)]
pub struct Turns<T>(HashMap<T, i64>);

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Eq + Hash> Turns<T> {
    fn begin(&mut self, turn: T) {
        *self.0.entry(turn).or_default() += 1;
    }

    fn end(&mut self, turn: &T) {
        if let Some(count) = self.0.get_mut(turn) {
            *count -= 1;
        }
        self.0.retain(|_, count| *count > 0);
    }

    /// Returns the number of pieces of work whose turn fulfils a condition.
    pub fn count(&self, mut condition: impl FnMut(&T) -> bool) -> i64 {
        self.0.iter().filter(|(turn, _)| condition(turn)).map(|(_, count)| count).sum()
    }

    /// Returns the turns and their numbers.
    pub fn iter(&self) -> hash_map::Iter<'_, T, i64> {
        self.0.iter()
    }
}

impl<'a, T: Eq + Hash> IntoIterator for &'a Turns<T> {
    type Item = (&'a T, &'a i64);
    type IntoIter = hash_map::Iter<'a, T, i64>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
