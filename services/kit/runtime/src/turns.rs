//! Work that only so many do at once.

use std::{sync::Arc, time::Duration};

use assay_proto::Fault;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// How long a caller waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Turns, of which there are so many at once.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Semaphore>);

impl Turns {
    pub fn new(at_once: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_once)))
    }

    /// Waits for a turn, which lasts until it is dropped; not for ever.
    pub async fn take(&self) -> Result<OwnedSemaphorePermit, Fault> {
        match timeout(PATIENCE, self.0.clone().acquire_owned()).await {
            Ok(turn) => turn.map_err(Fault::internal),
            Err(_) => Err(Fault::Busy(PATIENCE)),
        }
    }
}
