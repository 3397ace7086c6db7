//! The pace at which a file arrives. A part of it is in memory while it is not whole, and needs a permit for that time.
//!
//! A fast client gives its permit back between two parts, if another customer waits for one. A slow one could keep it for
//! hours, so it is rejected if another customer waits while a part of it does not become whole. Its client can use an upload
//! in several requests, which keeps what has arrived.

use std::time::Duration;

use assay_fair::Turn;
use assay_proto::Fault;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::time::{Instant, timeout};
use tonic::Status;

use crate::call::TIMEOUT;

/// Interval in which a client that sends nothing is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Time after which a permit is given back between two parts.
const TURN: Duration = Duration::from_secs(5);

/// Maximum time to wait for the bytes of one part while another customer waits for a permit.
const LONGEST_PART: Duration = Duration::from_secs(15);

/// Time after which a client that was too slow may try again.
const RETRY: Duration = Duration::from_mins(1);

/// The pace of a file.
pub(crate) struct Pace {
    turn: Option<Turn>,
    /// Size of the parts, in bytes.
    size: usize,
    /// Number of bytes in memory that are not a whole part yet.
    filled: usize,
    /// Time for which bytes of that part were awaited.
    awaited: Duration,
}

impl Pace {
    pub(crate) fn new(turn: Option<Turn>, size: usize) -> Self {
        Self { turn, size, filled: 0, awaited: Duration::ZERO }
    }

    /// Returns the next piece of a file; none at its end. Fails if the client pauses, or if it is slow and another
    /// customer waits.
    pub(crate) async fn next(
        &mut self,
        file: &mut (impl Stream<Item = Result<Bytes, Status>> + Send + Unpin),
    ) -> Result<Option<Bytes>, Status> {
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            self.look()?;
            let looked = Instant::now();
            let next = timeout(LOOK, file.next()).await;
            self.awaited += looked.elapsed();
            if let Ok(piece) = next {
                return piece.transpose();
            }
        }
        Err(Fault::Malformed("the body did not arrive in time".to_owned()).into())
    }

    /// Waits for the permit.
    pub(crate) async fn begin(&mut self) -> Result<(), Fault> {
        match &mut self.turn {
            Some(turn) => turn.begin().await,
            None => Ok(()),
        }
    }

    /// Returns how many of the next bytes belong to the part that is not whole.
    pub(crate) fn take(&mut self, bytes: usize) -> usize {
        if self.filled == 0 {
            self.awaited = Duration::ZERO;
        }
        let taken = bytes.min(self.size - self.filled);
        self.filled = (self.filled + taken) % self.size;
        if self.filled == 0 {
            self.end_after(TURN);
        }
        taken
    }

    /// Gives the permit back if another customer waits. Fails if bytes need it.
    fn look(&mut self) -> Result<(), Fault> {
        if self.filled == 0 {
            self.end_after(TURN);
            return Ok(());
        }
        if self.awaited < LONGEST_PART || !self.end_after(Duration::ZERO) {
            return Ok(());
        }
        let reason = "the file arrives slowly while other customers wait: send it in several requests, by tus";
        Err(Fault::Throttled { reason, after: RETRY })
    }

    fn end_after(&mut self, time: Duration) -> bool {
        self.turn.as_mut().is_some_and(|turn| turn.end_after(time))
    }
}
