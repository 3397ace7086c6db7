//! Work of many callers, gathered into few statements.
//!
//! A hundred agents that report to one launch would take the lock of its row a hundred times, and commit
//! a hundred times. Gathered, they take it once or twice: while one batch is in the database, the next one
//! forms. Nobody waits for a batch to fill, so a caller without competition is as fast as before. The caller
//! that finds no batch in progress runs it in a task, which also takes the batches that form meanwhile. A
//! caller that goes away leaves its job in the batch, and only its outcome is dropped.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    future::Future,
    hash::Hash,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use assay_proto::Fault;
use tokio::sync::oneshot;
use tonic::Status;
use tracing::{Instrument, Span};

use crate::{OfCustomer, Shares};

/// Maximum number of jobs in a batch, so that a statement and the lock of a record take short.
pub const LARGEST_BATCH: usize = 64;

/// Maximum number of jobs of one group that wait.
const WAITING: usize = 1000;

/// Delay after which a caller that was rejected may retry.
const RETRY_DELAY: Duration = Duration::from_secs(1);

type Outcome<T, E = Status> = Result<Vec<Result<T, E>>, Status>;
type Processing<T> = Pin<Box<dyn Future<Output = Outcome<T>> + Send>>;

/// Gathers jobs of the same kind into batches. A group, such as the records of a project, has one
/// batch in progress; jobs that arrive in the meantime form the next one. So a job without
/// competition begins at once, and the more there are, the less each of them costs.
///
/// A batch holds one share of its customer, and customers do not wait for each other. Methods that
/// use this are declared as waiting in the contracts (`assay.waits`), as they need no share of their
/// own.
pub struct Gather<G, J, T>(Arc<Inner<G, J, T>>);

impl<G, J, T> Clone for Gather<G, J, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Inner<G, J, T> {
    /// The waiting jobs of each group with a batch in progress.
    waiting: Mutex<HashMap<G, VecDeque<Job<J, T>>>>,
    shares: Shares,
    process: Box<dyn Fn(G, Vec<J>) -> Processing<T> + Send + Sync>,
}

struct Job<J, T> {
    work: J,
    done: oneshot::Sender<Result<T, Status>>,
    span: Span,
}

impl<G, J, T> Gather<G, J, T> {
    /// `process` carries out the jobs of a batch, and returns an outcome for each of them, in the
    /// same order, or a failure of all.
    pub fn new<F, E: Into<Status>>(
        shares: &Shares,
        process: impl Fn(G, Vec<J>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Outcome<T, E>> + Send + 'static,
    {
        let process = move |group, jobs| -> Processing<T> {
            let outcomes = process(group, jobs);
            Box::pin(async move {
                let outcomes = outcomes.await?;
                Ok(outcomes.into_iter().map(|outcome| outcome.map_err(E::into)).collect())
            })
        };
        Self(Arc::new(Inner {
            waiting: Mutex::default(),
            shares: shares.clone(),
            process: Box::new(process),
        }))
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<G, VecDeque<Job<J, T>>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<G, J, T> Gather<G, J, T>
where
    G: OfCustomer + Clone + Eq + Hash + Send + Sync + 'static,
    J: Send + 'static,
    T: Send + 'static,
{
    /// Carries out a job as part of a batch.
    pub async fn run(&self, group: G, job: J) -> Result<T, Status> {
        let mut outcomes = self.run_all(group, [Ok(job)]).await?;
        outcomes.pop().unwrap_or_else(|| Err(Fault::internal("a job has no outcome").into()))
    }

    /// Carries out jobs, which arrive at once, as parts of batches. Returns an outcome for each; that
    /// of a job which is not valid is its fault.
    #[expect(clippy::disallowed_methods, reason = "the task ends with its callers' calls")]
    pub async fn run_all(
        &self,
        group: G,
        jobs: impl IntoIterator<Item = Result<J, Fault>>,
    ) -> Result<Vec<Result<T, Status>>, Status> {
        let span = Span::current();
        let (mut valid, mut callers) = (Vec::new(), Vec::new());
        for job in jobs {
            callers.push(job.map(|work| {
                let (done, outcome) = oneshot::channel();
                valid.push(Job { work, done, span: span.clone() });
                outcome
            }));
        }
        if !valid.is_empty() && self.begins(group.clone(), valid)? {
            tokio::spawn(Batches { gather: self.clone(), group }.run());
        }
        let mut outcomes = Vec::with_capacity(callers.len());
        for caller in callers {
            let panicked = |_| Err(Fault::internal("a batch panicked").into());
            outcomes.push(match caller {
                Ok(outcome) => outcome.await.unwrap_or_else(panicked),
                Err(fault) => Err(fault.into()),
            });
        }
        Ok(outcomes)
    }

    /// Adds jobs to their group. Returns whether the group has no batch in progress.
    fn begins(&self, group: G, jobs: Vec<Job<J, T>>) -> Result<bool, Fault> {
        match self.waiting().entry(group) {
            Entry::Vacant(idle) => {
                idle.insert(jobs.into());
                Ok(true)
            }
            Entry::Occupied(mut busy) => {
                let waiting = busy.get_mut();
                if waiting.len() >= WAITING {
                    return Err(Fault::Busy(RETRY_DELAY));
                }
                waiting.extend(jobs);
                Ok(false)
            }
        }
    }
}

/// The batches of a group, one after the other.
struct Batches<G: Eq + Hash, J, T> {
    gather: Gather<G, J, T>,
    group: G,
}

impl<G: OfCustomer + Clone + Eq + Hash, J, T> Batches<G, J, T> {
    async fn run(self) {
        while let Some(batch) = self.next() {
            let span = batch[0].span.clone();
            self.process(batch).instrument(span).await;
        }
    }

    /// Takes the next batch. Without one, the group is idle from now on.
    fn next(&self) -> Option<Vec<Job<J, T>>> {
        let mut groups = self.gather.waiting();
        let waiting = groups.get_mut(&self.group)?;
        // Callers that have gone need no outcome.
        waiting.retain(|job| !job.done.is_closed());
        let batch: Vec<_> = waiting.drain(..waiting.len().min(LARGEST_BATCH)).collect();
        if batch.is_empty() {
            groups.remove(&self.group);
            return None;
        }
        Some(batch)
    }

    async fn process(&self, batch: Vec<Job<J, T>>) {
        let (jobs, callers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|Job { work, done, .. }| (work, done)).unzip();
        let gather = &self.gather.0;
        let outcome = match gather.shares.acquire(self.group.customer()).await {
            Ok(_share) => (gather.process)(self.group.clone(), jobs).await,
            Err(fault) => Err(fault.into()),
        };
        match outcome {
            Ok(outcomes) => {
                for (done, outcome) in callers.into_iter().zip(outcomes) {
                    let _ = done.send(outcome);
                }
            }
            Err(status) => {
                for done in callers {
                    let _ = done.send(Err(status.clone()));
                }
            }
        }
    }
}

/// After a panic, the callers that wait fail, and the next job begins a batch.
impl<G: Eq + Hash, J, T> Drop for Batches<G, J, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            let waiting = self.gather.waiting().remove(&self.group);
            drop(waiting);
        }
    }
}

#[cfg(test)]
mod tests;
