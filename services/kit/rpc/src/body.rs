//! The bodies of requests. A body is received whole before it is parsed, in memory that is shared
//! fairly between customers: a slow client holds the memory of what it has sent, and no thread.

mod file;
#[cfg(test)]
mod tests;
mod upload;

use std::{thread, time::Duration};

use assay_proto::{CustomerId, Fault};
use futures::{Stream, StreamExt};
use tokio::{runtime::Handle, task, time::timeout};
use tonic::Status;

pub use assay_proto::Piece;

pub use self::{file::File, upload::open};
use assay_fair::{Share, Shares};

/// Maximum size of most bodies in bytes. The gateway has the same limit.
const LARGEST: usize = 32 << 20;

/// Size in bytes of the units that memory is acquired in.
const UNIT: usize = 64 << 10;

/// Memory that a file of a form takes beside its contents and its name, in bytes.
const FILE: usize = 100;

/// Maximum time until a body has arrived. The gateway ends a call after the same time.
const BODY_TIMEOUT: Duration = Duration::from_mins(2);

/// Receives and parses bodies. Clones share their memory and threads.
#[derive(Clone, Debug)]
pub struct Intake {
    memory: Shares,
    threads: Shares,
    /// Maximum size of a body in bytes.
    largest: usize,
}

/// Memory of a body, which other bodies can acquire when this is dropped.
#[derive(Debug)]
pub struct Memory {
    shares: Shares,
    customer: CustomerId,
    held: Vec<Share>,
    /// Bytes of what is held that nothing takes yet.
    spare: usize,
    /// Bytes of what is held that are [lent](Memory::lend).
    lent: usize,
}

impl Intake {
    /// Limits the memory of bodies, and of what is parsed from them, to this many mebibytes.
    pub fn new(mebibytes: usize) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from).max(4);
        let memory = Shares::new((mebibytes << 20) / UNIT);
        Self { memory, threads: Shares::new(threads), largest: LARGEST }
    }

    /// Returns an intake of bodies with another maximum size in bytes, which shares the memory.
    #[must_use]
    pub fn up_to(&self, largest: usize) -> Self {
        Self { largest, ..self.clone() }
    }

    /// Receives a body and parses it on a thread of its own. Drop the memory after the result: the
    /// result takes about as much as the body did. If it takes more, because the body is compressed,
    /// `parse` [grows](Memory::grow) the memory first. Fails with [`Fault::Busy`] if memory or a
    /// thread is not available within ten seconds.
    pub async fn read<T: Send + 'static>(
        &self,
        customer: CustomerId,
        pieces: impl Stream<Item = Result<Piece, Status>>,
        parse: impl FnOnce(Body, &mut Memory) -> Result<T, Fault> + Send + 'static,
    ) -> Result<(T, Memory), Status> {
        let mut memory = Memory::new(&self.memory, customer);
        let body = received(pieces, self.largest, &mut memory).await?;
        let _thread = self.threads.acquire(customer).await?;
        let parsed = task::spawn_blocking(move || Ok((parse(body, &mut memory)?, memory)));
        let parsed: Result<_, Fault> = parsed.await.map_err(Fault::internal)?;
        Ok(parsed?)
    }

    /// Acquires memory for other data of this size.
    pub async fn reserve(&self, customer: CustomerId, bytes: usize) -> Result<Memory, Fault> {
        let mut memory = Memory::new(&self.memory, customer);
        memory.acquire(bytes.div_ceil(UNIT)).await?;
        Ok(memory)
    }
}

impl Memory {
    fn new(shares: &Shares, customer: CustomerId) -> Self {
        Self { shares: shares.clone(), customer, held: Vec::new(), spare: 0, lent: 0 }
    }

    /// Adds the memory of another body.
    pub fn add(&mut self, other: Self) {
        self.held.extend(other.held);
    }

    /// Acquires memory for more bytes. It blocks: only the thread that parses a body may call it.
    /// Fails with [`Fault::Busy`] after ten seconds.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        Handle::current().block_on(self.hold(bytes))
    }

    /// Acquires memory for bytes that are dropped before the next ones are needed: only what exceeds the
    /// most so far. It blocks as [`Memory::grow`] does.
    pub fn lend(&mut self, bytes: usize) -> Result<(), Fault> {
        let missing = bytes.saturating_sub(self.lent);
        self.lent += missing;
        self.grow(missing)
    }

    /// Acquires memory for more bytes, as [`Memory::grow`] does without blocking.
    pub async fn hold(&mut self, bytes: usize) -> Result<(), Fault> {
        if let Some(missing) = bytes.checked_sub(self.spare) {
            let units = missing.div_ceil(UNIT);
            self.acquire(units).await?;
            self.spare += units * UNIT;
        }
        self.spare -= bytes;
        Ok(())
    }

    async fn acquire(&mut self, units: usize) -> Result<(), Fault> {
        self.held.push(self.shares.acquire_many(self.customer, units).await?);
        Ok(())
    }
}

/// Receives a body, and acquires memory before keeping a chunk. A call that its client cancels looks
/// like the end of the stream, so the last piece is marked.
async fn received(
    pieces: impl Stream<Item = Result<Piece, Status>>,
    largest: usize,
    memory: &mut Memory,
) -> Result<Body, Status> {
    let whole = async {
        let mut pieces = std::pin::pin!(pieces);
        let (mut body, mut size) = (Body::default(), 0);
        while let Some(piece) = pieces.next().await {
            let Piece { chunk, file, last } = piece?;
            let start = file.as_ref().map_or(0, |file| FILE + file.name.len());
            size += start + chunk.len();
            if size > largest {
                let reason = format!("the body is larger than {} MiB", largest >> 20);
                return Err(Fault::Refused { code: "too_large", reason }.into());
            }
            memory.hold(start + chunk.len()).await?;
            body.files.extend(file.map(File::from));
            if !chunk.is_empty() {
                body.receiving().fill(&chunk);
            }
            if last {
                return Ok(body);
            }
        }
        Err(Fault::Malformed("the body broke off".to_owned()).into())
    };
    let late = |_| Fault::Malformed("the body did not arrive in time".to_owned());
    timeout(BODY_TIMEOUT, whole).await.map_err(late)?
}

/// One file, or those of a form in their order.
#[derive(Debug, Default)]
pub struct Body {
    pub files: Vec<File>,
}

impl Body {
    /// Returns the first file. The body of a call that takes one file has no other.
    pub fn into_file(self) -> File {
        self.files.into_iter().next().unwrap_or_default()
    }

    /// Returns the file that is being received. The first one starts without a mark if it is the
    /// only one.
    fn receiving(&mut self) -> &mut File {
        if self.files.is_empty() {
            self.files.push(File::default());
        }
        let last = self.files.len() - 1;
        &mut self.files[last]
    }
}
