//! The bodies of requests. A body is received whole before it is parsed, in memory that is shared
//! fairly between customers: a slow client holds the memory of what it has sent, and no thread.

use std::{
    collections::VecDeque,
    io::{self, BufRead, Read},
    iter, thread,
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio::{task, time::timeout};
use tonic::Status;

use crate::{Share, Shares};

/// Maximum size of a body; the gateway takes no more either.
const LARGEST: usize = 32 << 20;

/// Size of the pieces that memory is divided into.
const UNIT: usize = 64 << 10;

/// Maximum time that a body takes to arrive. The gateway ends a call after that time, too.
const PATIENCE: Duration = Duration::from_mins(2);

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

/// Memory that a body takes. It is free for other bodies when this is dropped.
#[derive(Debug, Default)]
pub struct Memory(Vec<Share>);

impl Intake {
    /// Bodies and what is made of them take so many mebibytes at most.
    pub fn new(mebibytes: usize) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from).max(4);
        Self { memory: Shares::new((mebibytes << 20) / UNIT), threads: Shares::new(threads) }
    }

    /// Receives a body and parses it on a thread of its own. What was parsed takes the memory of
    /// the body until that is dropped. Fails with [`Fault::Busy`] where memory or a thread is not
    /// to be had within ten seconds.
    pub async fn read<T: Send + 'static>(
        &self,
        customer: CustomerId,
        pieces: impl Stream<Item = Result<Piece, Status>>,
        parse: impl FnOnce(Body) -> Result<T, Fault> + Send + 'static,
    ) -> Result<(T, Memory), Status> {
        let (body, memory) = received(pieces, &self.memory, customer).await?;
        let _thread = self.threads.acquire(customer).await?;
        Ok((parsed(body, parse).await?, memory))
    }

    /// Acquires memory for something else of this size.
    pub async fn hold(&self, customer: CustomerId, bytes: usize) -> Result<Memory, Fault> {
        let units = bytes.div_ceil(UNIT);
        Ok(Memory(vec![self.memory.acquire_many(customer, units).await?]))
    }
}

impl Memory {
    /// Takes the memory of another one over.
    pub fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

async fn parsed<T: Send + 'static>(
    body: Body,
    parse: impl FnOnce(Body) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    task::spawn_blocking(move || parse(body)).await.map_err(Fault::internal)?
}

/// Receives a body. The memory of each unit is acquired before it is filled. A client that goes away in
/// the middle looks like the end of the stream; so the last piece has to say that it is.
async fn received(
    pieces: impl Stream<Item = Result<Piece, Status>>,
    shares: &Shares,
    customer: CustomerId,
) -> Result<(Body, Memory), Status> {
    let whole = async {
        let mut pieces = std::pin::pin!(pieces);
        let (mut body, mut memory, mut size) = (Body::default(), Memory::default(), 0);
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
                    memory.0.push(shares.acquire(customer).await?);
                }
                chunk = body.fill(chunk);
            }
            if last {
                return Ok((body, memory));
            }
        }
        Err(Fault::Malformed("the body broke off".to_owned()).into())
    };
    let late = |_| Fault::Malformed("the body did not arrive in time".to_owned());
    timeout(PATIENCE, whole).await.map_err(late)?
}

/// One or several files. Each reads to its end before [`Body::next_file`] goes on to the next.
#[derive(Debug, Default)]
pub struct Body {
    /// The file that is read, in units, and how much of its first unit was read.
    file: VecDeque<Vec<u8>>,
    read: usize,
    /// The files after it.
    rest: VecDeque<VecDeque<Vec<u8>>>,
}

impl Body {
    /// Goes on to the next file, if there is one.
    pub fn next_file(&mut self) -> bool {
        let Some(next) = self.rest.pop_front() else { return false };
        (self.file, self.read) = (next, 0);
        true
    }

    /// The contents of the files that were not read yet, in parts.
    pub fn files(&self) -> impl Iterator<Item = impl Iterator<Item = &[u8]> + Clone> {
        iter::once(&self.file).chain(&self.rest).map(|file| file.iter().map(Vec::as_slice))
    }

    /// The file that is received.
    fn last_file(&mut self) -> &mut VecDeque<Vec<u8>> {
        self.rest.back_mut().unwrap_or(&mut self.file)
    }

    fn is_full(&mut self) -> bool {
        self.last_file().back().is_none_or(|unit| unit.len() == UNIT)
    }

    /// Adds what fits into a unit; returns the rest.
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

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn piece(text: &'static str, next_file: bool) -> Piece {
        Piece { chunk: Bytes::from_static(text.as_bytes()), next_file, last: false }
    }

    fn last() -> Piece {
        Piece { last: true, ..Piece::default() }
    }

    async fn read<T: Send + 'static>(
        pieces: impl Stream<Item = Result<Piece, Status>>,
        parse: fn(Body) -> Result<T, Fault>,
    ) -> Result<T, Status> {
        Ok(Intake::new(64).read(CustomerId::new(), pieces, parse).await?.0)
    }

    fn files(mut body: Body) -> Result<Vec<String>, Fault> {
        let mut files = Vec::new();
        loop {
            files.push(io::read_to_string(&mut body).map_err(Fault::internal)?);
            if !body.next_file() {
                return Ok(files);
            }
        }
    }

    #[tokio::test]
    async fn files_are_read_one_after_the_other() {
        let pieces =
            [piece("a", false), piece("b", false), piece("c", true), piece("", true), last()];
        assert_eq!(read(stream::iter(pieces.map(Ok)), files).await.unwrap(), ["ab", "c", ""]);
    }

    #[tokio::test]
    async fn pieces_of_any_size_make_up_the_body() {
        for sizes in [&[1, UNIT - 1, 1][..], &[UNIT * 3 + 7], &[UNIT, UNIT], &[7, 3 * UNIT, 5]] {
            let chunks: Vec<Bytes> = sizes
                .iter()
                .zip(b'a'..)
                .map(|(size, byte)| Bytes::from(vec![byte; *size]))
                .collect();
            let pieces =
                chunks.clone().into_iter().map(|chunk| Piece { chunk, ..Piece::default() });
            let pieces = stream::iter(pieces.chain([last()]).map(Ok).collect::<Vec<_>>());
            let whole = read(pieces, files).await.unwrap();
            assert!(whole[0].as_bytes() == chunks.concat(), "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_not_read_as_a_whole_one() {
        let pieces = [Ok(piece("a", false)), Err(Status::cancelled("gone"))];
        let broken = read(stream::iter(pieces), files).await.unwrap_err();
        assert_eq!(broken.message(), "gone");
        // As a call looks that its client has given up.
        let silent = read(stream::iter([Ok(piece("a", false))]), files).await.unwrap_err();
        assert_eq!(silent.message(), "the body broke off");
    }

    #[tokio::test]
    async fn what_is_too_large_is_not_kept() {
        let chunk = Bytes::from(vec![b' '; 1 << 20]);
        let pieces = stream::repeat_with(|| Ok(Piece { chunk: chunk.clone(), ..Piece::default() }));
        let refused = read(pieces, files).await;
        assert!(refused.unwrap_err().message().contains("32 MiB"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let pieces = stream::iter([Ok(piece("a", false))]).chain(stream::pending());
        let late = read(pieces, files).await.unwrap_err();
        assert_eq!(late.message(), "the body did not arrive in time");
    }

    #[tokio::test(start_paused = true)]
    async fn the_bodies_of_one_customer_leave_memory_to_others() {
        let intake = Intake::new(4);
        let (one, other) = (CustomerId::new(), CustomerId::new());
        let mebibyte = |count| {
            let chunk = Bytes::from(vec![b' '; 1 << 20]);
            stream::iter(
                (0..count).map(move |_| Ok(Piece { chunk: chunk.clone(), ..Piece::default() })),
            )
        };
        let mut kept = Vec::new();
        for _ in 0..3 {
            let pieces = mebibyte(1).chain(stream::iter([Ok(last())]));
            kept.push(intake.read(one, pieces, files).await.unwrap());
        }
        // Bodies that are still being sent hold what they have sent.
        let busy = intake.read(one, mebibyte(1).chain(stream::pending()), files).await;
        assert_eq!(busy.unwrap_err().code(), tonic::Code::ResourceExhausted);

        let pieces = mebibyte(1).chain(stream::iter([Ok(last())]));
        intake.read(other, pieces, files).await.unwrap();
        drop(kept);
        let pieces = mebibyte(3).chain(stream::iter([Ok(last())]));
        intake.read(one, pieces, files).await.unwrap();
    }
}
