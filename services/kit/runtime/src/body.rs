//! The bodies of requests. A body is received whole before it is parsed, in memory that is shared
//! fairly between customers: a slow client holds the memory of what it has sent, and no thread.

#[cfg(test)]
mod tests;
mod upload;

use std::{
    collections::VecDeque,
    io::{self, BufRead, Read},
    iter, thread,
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::{runtime::Handle, task, time::timeout};
use tonic::Status;

pub use self::upload::{UploadMessage, open};
use crate::{Share, Shares};

/// Maximum size of a body in bytes. The gateway has the same limit.
const LARGEST: usize = 32 << 20;

/// Size in bytes of the units that memory is acquired in.
const UNIT: usize = 64 << 10;

/// Maximum time until a body has arrived. The gateway ends a call after the same time.
const BODY_TIMEOUT: Duration = Duration::from_mins(2);

/// A piece of a body as it was sent.
#[derive(Debug, Default)]
pub struct Piece {
    pub chunk: Bytes,
    /// Whether a further file starts with it.
    pub next_file: bool,
    /// Whether the body is complete with it.
    pub last: bool,
}

/// Receives and parses bodies. Clones share their memory and threads.
#[derive(Clone, Debug)]
pub struct Intake {
    memory: Shares,
    threads: Shares,
}

/// Memory of a body, which other bodies can acquire when this is dropped.
#[derive(Debug)]
pub struct Memory {
    shares: Shares,
    customer: CustomerId,
    held: Vec<Share>,
    /// Bytes of what is held that [`Memory::grow`] has not handed out yet.
    spare: usize,
}

impl Intake {
    /// Limits the memory of bodies, and of what is parsed from them, to this many mebibytes.
    pub fn new(mebibytes: usize) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from).max(4);
        Self { memory: Shares::new((mebibytes << 20) / UNIT), threads: Shares::new(threads) }
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
        let body = received(pieces, &mut memory).await?;
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
        Self { shares: shares.clone(), customer, held: Vec::new(), spare: 0 }
    }

    /// Adds the memory of another body.
    pub fn add(&mut self, other: Self) {
        self.held.extend(other.held);
    }

    /// Acquires memory for more bytes. It blocks: only the thread that parses a body may call it.
    /// Fails with [`Fault::Busy`] after ten seconds.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        if let Some(missing) = bytes.checked_sub(self.spare) {
            let units = missing.div_ceil(UNIT);
            Handle::current().block_on(self.acquire(units))?;
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

/// Receives a body, and acquires the memory of each unit before filling it. A call that its client
/// cancels looks like the end of the stream, so the last piece is marked.
async fn received(
    pieces: impl Stream<Item = Result<Piece, Status>>,
    memory: &mut Memory,
) -> Result<Body, Status> {
    let whole = async {
        let mut pieces = std::pin::pin!(pieces);
        let (mut body, mut size) = (Body::default(), 0);
        while let Some(piece) = pieces.next().await {
            let Piece { chunk, next_file, last } = piece?;
            size += chunk.len();
            if size > LARGEST {
                let reason = format!("the body is larger than {} MiB", LARGEST >> 20);
                return Err(Fault::Refused { code: "too_large", reason }.into());
            }
            if next_file {
                body.rest.push_back(VecDeque::new());
            }
            let mut chunk = &chunk[..];
            while !chunk.is_empty() {
                if body.is_full() {
                    memory.acquire(1).await?;
                }
                chunk = body.fill(chunk);
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

/// One or several files. Reading ends with the current file; [`Body::next_file`] moves on to the
/// next.
#[derive(Debug, Default)]
pub struct Body {
    /// Units of the current file that are left, and the number of bytes read from the first one.
    file: VecDeque<Vec<u8>>,
    read: usize,
    /// The files after the current one.
    rest: VecDeque<VecDeque<Vec<u8>>>,
}

impl Body {
    /// Moves on to the next file. Returns whether there is one.
    pub fn next_file(&mut self) -> bool {
        let Some(next) = self.rest.pop_front() else { return false };
        (self.file, self.read) = (next, 0);
        true
    }

    /// Returns the unread contents of all files, in parts.
    pub fn files(&self) -> impl Iterator<Item = impl Iterator<Item = &[u8]> + Clone> {
        iter::once(&self.file).chain(&self.rest).map(|file| file.iter().map(Vec::as_slice))
    }

    /// The file that is being received.
    fn last_file(&mut self) -> &mut VecDeque<Vec<u8>> {
        self.rest.back_mut().unwrap_or(&mut self.file)
    }

    fn is_full(&mut self) -> bool {
        self.last_file().back().is_none_or(|unit| unit.len() == UNIT)
    }

    /// Adds as much of a chunk as fits into the last unit. Returns the rest.
    fn fill<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        if self.is_full() {
            self.last_file().push_back(Vec::new());
        }
        let Some(unit) = self.last_file().back_mut() else { return chunk };
        let (fits, rest) = chunk.split_at(chunk.len().min(UNIT - unit.len()));
        if unit.is_empty() && !rest.is_empty() {
            unit.reserve_exact(UNIT);
        }
        unit.extend_from_slice(fits);
        rest
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.file.front().map_or(&[], |unit| &unit[self.read..]))
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
        if self.file.front().is_some_and(|unit| unit.len() <= self.read) {
            self.file.pop_front();
            self.read = 0;
        }
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}
