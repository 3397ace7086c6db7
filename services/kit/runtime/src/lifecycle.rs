//! The life cycle of a program: tasks, readiness, shutdown.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Error, anyhow};
use futures::FutureExt;
use tokio::{sync::Notify, task::JoinHandle, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use crate::{Process, Tls};

/// Name of the span of a task. Tasks run as long as the program, so their spans are not traces.
pub(crate) const TASK: &str = "task";

/// Time between the signal to stop and the end of open connections. Callers see in the meantime
/// that the program stops serving, and clients that have just connected send their requests.
pub const SHUTDOWN_DELAY: Duration = Duration::from_millis(250);

/// Time that a call has to end when the program stops, before it is broken off.
const LAST_SECONDS: Duration = Duration::from_secs(10);

/// A running program, whose tasks start and end together.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    name: &'static str,
    tls: Option<Tls>,
    process: Process,
    stopping: CancellationToken,
    tasks: TaskTracker,
    gates: Mutex<Vec<Gate>>,
    gate_changed: Notify,
    failure: Mutex<Option<Error>>,
    /// Whether gRPC reflection is enabled.
    reflects: AtomicBool,
}

/// A condition for a program to be ready.
#[derive(Clone)]
pub struct Gate {
    what: &'static str,
    open: Arc<AtomicBool>,
    runtime: std::sync::Weak<Inner>,
}

impl Gate {
    pub fn open(&self) {
        self.set(true);
    }

    /// Opens the gate, or closes it again.
    pub fn set(&self, is_open: bool) {
        self.open.store(is_open, Ordering::Release);
        if let Some(runtime) = self.runtime.upgrade() {
            runtime.gate_changed.notify_waiters();
        }
    }
}

impl Runtime {
    /// Creates a program that uses no TLS towards other programs.
    pub fn new(name: &'static str) -> Self {
        Self::create(name, None, Process::default())
    }

    pub fn with_tls(name: &'static str, tls: Option<Tls>) -> Self {
        Self::create(name, tls, Process::default())
    }

    /// Creates a program that runs in the same process as others.
    pub fn within(process: &Process, name: &'static str) -> Self {
        Self::create(name, None, process.clone())
    }

    fn create(name: &'static str, tls: Option<Tls>, process: Process) -> Self {
        Self(Arc::new(Inner {
            name,
            tls,
            process,
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            gates: Mutex::default(),
            gate_changed: Notify::new(),
            failure: Mutex::default(),
            reflects: AtomicBool::new(false),
        }))
    }

    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Returns the certificates for mutual TLS, if it is enabled.
    pub fn tls(&self) -> Option<&Tls> {
        self.0.tls.as_ref()
    }

    /// Returns the servers of this process.
    pub fn process(&self) -> &Process {
        &self.0.process
    }

    /// Enables gRPC reflection in servers that are started from now on.
    pub(crate) fn reflect(&self) {
        self.0.reflects.store(true, Ordering::Relaxed);
    }

    /// Whether servers that are started now offer gRPC reflection.
    pub fn reflects(&self) -> bool {
        self.0.reflects.load(Ordering::Relaxed)
    }

    /// Returns a token that is cancelled when the program must stop.
    pub fn stopping(&self) -> CancellationToken {
        self.0.stopping.clone()
    }

    /// Runs a task, which must end soon after [`Runtime::stopping`]. A task that fails or panics
    /// stops the program, because a restart is better than running without the task.
    pub fn spawn(
        &self,
        task: &'static str,
        future: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        let runtime = self.clone();
        let span = tracing::info_span!(TASK, program = self.0.name, task);
        let watched = async move {
            let failure = match AssertUnwindSafe(future).catch_unwind().await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.context(task),
                Err(_) => anyhow!("{task} panicked"),
            };
            runtime.fail(failure);
        };
        self.0.tasks.spawn(watched.instrument(span));
    }

    /// Runs work of a call that goes on if its caller has gone, and must end soon after [`Runtime::stopping`]. If it
    /// fails, its caller does, and the program goes on.
    pub fn spawn_call<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.0.tasks.spawn(work.in_current_span())
    }

    /// Waits until the program stops, and calls have had their time to end.
    pub fn end_of_calls(&self) -> impl Future<Output = ()> + Send + use<> {
        let stopping = self.stopping();
        async move {
            stopping.cancelled().await;
            sleep(LAST_SECONDS).await;
        }
    }

    fn fail(&self, failure: Error) {
        tracing::error!(error = format!("{failure:#}"), "task failed");
        let mut first = self.0.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(failure);
        drop(first);
        self.0.stopping.cancel();
    }

    /// Adds a condition: the program is not ready until the gate is opened.
    pub fn gate(&self, what: &'static str) -> Gate {
        let gate = Gate { what, open: Arc::default(), runtime: Arc::downgrade(&self.0) };
        self.gates().push(gate.clone());
        gate
    }

    fn gates(&self) -> std::sync::MutexGuard<'_, Vec<Gate>> {
        self.0.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of the gates that are still closed.
    pub fn waits_for(&self) -> Vec<&'static str> {
        let closed = |gate: &&Gate| !gate.open.load(Ordering::Acquire);
        self.gates().iter().filter(closed).map(|gate| gate.what).collect()
    }

    pub fn is_ready(&self) -> bool {
        !self.0.stopping.is_cancelled() && self.waits_for().is_empty()
    }

    /// Resolves when every gate is open, or the program stops.
    pub async fn ready(&self) {
        self.wait_for_gates(true).await;
    }

    /// Resolves when a gate is closed, or the program stops.
    pub async fn not_ready(&self) {
        self.wait_for_gates(false).await;
    }

    async fn wait_for_gates(&self, are_open: bool) {
        loop {
            let changed = self.0.gate_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.waits_for().is_empty() == are_open {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = self.0.stopping.cancelled() => return,
            }
        }
    }

    /// Stops the program and waits at most `grace` until its tasks have ended. Fails with the error
    /// of the task that stopped the program, if one did.
    pub async fn stop(&self, grace: Duration) -> anyhow::Result<()> {
        self.0.stopping.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(grace, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(program = self.0.name, "tasks did not end in time");
        }
        let failure = self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}
