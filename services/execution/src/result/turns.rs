//! How many callers bring results at once; the others wait for their turn.

use std::{sync::Arc, time::Duration};

use assay_proto::Fault;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many bodies are read at once; each takes a thread and some mebibytes.
const READERS: usize = 32;

/// How many transactions write results at once: half of the connections, so that those who read
/// don't wait for those who report. More would not be faster.
const WRITERS: usize = 4;

/// How long a caller waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// The turns of all who bring results.
#[derive(Clone)]
pub(crate) struct Turns {
    readers: Arc<Semaphore>,
    writers: Arc<Semaphore>,
}

impl Turns {
    pub(crate) fn new() -> Self {
        let turns = |count| Arc::new(Semaphore::new(count));
        Self { readers: turns(READERS), writers: turns(WRITERS) }
    }

    /// Waits until a body may be read.
    pub(crate) async fn read(&self) -> Result<SemaphorePermit<'_>, Fault> {
        turn(&self.readers).await
    }

    /// Waits until results may be written.
    pub(crate) async fn write(&self) -> Result<SemaphorePermit<'_>, Fault> {
        turn(&self.writers).await
    }
}

/// Waits until it is the caller's turn; not for ever.
async fn turn(turns: &Semaphore) -> Result<SemaphorePermit<'_>, Fault> {
    match tokio::time::timeout(PATIENCE, turns.acquire()).await {
        Ok(turn) => turn.map_err(Fault::internal),
        Err(_) => Err(Fault::Busy(PATIENCE)),
    }
}
