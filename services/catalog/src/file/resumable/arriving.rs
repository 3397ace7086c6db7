//! The body of a request that appends to an upload, cut into parts. A body that breaks off ends like a whole one, so that
//! what has arrived is stored.

use std::{pin::Pin, time::Duration};

use assay_proto::{Fault, Piece};
use bytes::Bytes;
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::checksum::Checksum;

/// Size of the parts in which a body is stored, in bytes. A program that is killed loses one.
const PART: usize = 16 << 20;

/// Maximum pause of a client. The gateway ends a request earlier.
const PAUSE: Duration = Duration::from_secs(25);

/// Interval in which a client that sends nothing is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Time from which a part ends early if its turn is wanted. It is shorter than the time in which the store receives a part of
/// its own from a slow client.
const TURN: Duration = Duration::from_secs(5);

/// The end of a body.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Whole,
    Broken,
    /// It has more bytes than the file lacks.
    TooLong,
}

/// A body that is arriving.
pub(super) struct Arriving {
    pieces: BoxStream<'static, Result<Piece, Status>>,
    /// Bytes that have arrived, and belong to the next part.
    rest: Bytes,
    /// Number of bytes that the file lacks after those that have arrived.
    lacking: usize,
    end: Option<End>,
    checksum: Option<Checksum>,
    /// Cancelled when the program stops. The body ends then, so that what has arrived is stored.
    stopping: CancellationToken,
    /// Time of the last piece.
    heard: Instant,
}

impl Arriving {
    /// Receives a body of at most `lacking` bytes.
    pub(super) fn new(
        pieces: impl Stream<Item = Result<Piece, Status>> + Send + 'static,
        lacking: usize,
        checksum: Option<Checksum>,
        stopping: CancellationToken,
    ) -> Self {
        let (pieces, rest, heard) = (pieces.boxed(), Bytes::new(), Instant::now());
        Self { pieces, rest, lacking, end: None, checksum, stopping, heard }
    }

    /// Waits for bytes of the next part. Returns whether there are some.
    pub(super) async fn has_more(&mut self) -> bool {
        while self.is_silent() {
            self.listen().await;
        }
        !self.rest.is_empty()
    }

    /// Whether bytes of the next part may arrive, and none has.
    fn is_silent(&self) -> bool {
        self.rest.is_empty() && self.end.is_none()
    }

    /// Waits for the next piece, for a second at most.
    async fn listen(&mut self) {
        if self.lacking == 0 {
            self.end = Some(End::Whole);
            return;
        }
        let next = timeout(LOOK, self.pieces.next());
        match self.stopping.run_until_cancelled(next).await {
            Some(Ok(Some(Ok(piece)))) => self.add(piece),
            Some(Err(_)) if self.heard.elapsed() < PAUSE => {}
            _ => self.end = Some(End::Broken),
        }
    }

    fn add(&mut self, Piece { chunk, last, .. }: Piece) {
        let Some(lacking) = self.lacking.checked_sub(chunk.len()) else {
            self.end = Some(End::TooLong);
            return;
        };
        self.heard = Instant::now();
        self.lacking = lacking;
        if let Some(checksum) = &mut self.checksum {
            checksum.add(&chunk);
        }
        self.rest = chunk;
        if last {
            self.end = Some(End::Whole);
        }
    }

    /// Returns the bytes of the next part as they arrive. A body with a checksum is one part. Another part ends early
    /// when it has taken some seconds and is `wanted`: what has arrived is stored, and others can go on.
    pub(super) fn part(
        &mut self,
        wanted: impl Fn() -> bool + Send + 'static,
    ) -> Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send + '_>> {
        let room = if self.checksum.is_some() { usize::MAX } else { PART };
        let part = Part { body: self, room, ends_at: None, wanted };
        Box::pin(stream::unfold(part, |mut part| async move {
            let piece = part.next().await?;
            Some((Ok(piece), part))
        }))
    }

    /// Fails if the part that was taken must not be kept.
    pub(super) fn check_part(&mut self) -> Result<(), Fault> {
        match (self.end, self.checksum.take()) {
            (Some(End::TooLong), _) => Err(too_long()),
            (Some(End::Whole), Some(checksum)) => checksum.check(),
            (_, Some(_)) => Err(broken()),
            (_, None) => Ok(()),
        }
    }

    /// Fails if the body has not arrived as a whole.
    pub(super) fn check_end(&self) -> Result<(), Fault> {
        match self.end {
            Some(End::Whole) => Ok(()),
            Some(End::TooLong) => Err(too_long()),
            Some(End::Broken) | None => Err(broken()),
        }
    }
}

/// A part of a body, while it is taken.
struct Part<'b, W> {
    body: &'b mut Arriving,
    /// Number of bytes that it may take. A body that must be one part has more room than that of a part.
    room: usize,
    /// Time from which it ends if its turn is wanted.
    ends_at: Option<Instant>,
    wanted: W,
}

impl<W: Fn() -> bool> Part<'_, W> {
    async fn next(&mut self) -> Option<Bytes> {
        if self.room == 0 {
            return None;
        }
        if self.room < PART {
            // The store asks for the second piece when the turn of the part has come.
            self.ends_at.get_or_insert_with(|| Instant::now() + TURN);
        }
        while self.body.is_silent() && !self.is_over() {
            self.body.listen().await;
        }
        if self.body.rest.is_empty() || self.is_over() {
            return None;
        }
        let piece = self.body.rest.split_to(self.body.rest.len().min(self.room));
        self.room -= piece.len();
        Some(piece)
    }

    fn is_over(&self) -> bool {
        self.ends_at.is_some_and(|end| Instant::now() >= end) && (self.wanted)()
    }
}

/// The fault of a body that has more bytes than the file lacks.
pub(super) fn too_long() -> Fault {
    let reason =
        "the body has more bytes than the upload lacks: see Upload-Length, and Tus-Max-Size"
            .to_owned();
    Fault::Refused { code: "too_large", reason }
}

fn broken() -> Fault {
    Fault::Malformed("the body broke off; what has arrived is stored: see Upload-Offset".to_owned())
}

#[cfg(test)]
mod tests {
    use assay_proto::catalog::AppendUploadTarget;
    use futures::TryStreamExt;

    use super::*;

    fn piece(size: usize, last: bool) -> Piece {
        Piece { chunk: vec![1; size].into(), last, ..Piece::default() }
    }

    /// Returns the sizes of the parts that are kept, and whether the body was whole.
    async fn parts(
        pieces: Vec<Result<Piece, Status>>,
        lacking: usize,
        checksum: Option<Checksum>,
    ) -> (Vec<usize>, bool) {
        let mut body =
            Arriving::new(stream::iter(pieces), lacking, checksum, CancellationToken::new());
        let mut sizes = Vec::new();
        while body.has_more().await {
            let part: Vec<Bytes> = body.part(|| false).try_collect().await.unwrap();
            if body.check_part().is_err() {
                return (sizes, false);
            }
            sizes.push(part.iter().map(Bytes::len).sum());
        }
        (sizes, body.check_end().is_ok())
    }

    fn checksum_of_another() -> Option<Checksum> {
        let target = AppendUploadTarget {
            checksum_algorithm: "sha1".to_owned(),
            checksum: "0".repeat(40),
            ..AppendUploadTarget::default()
        };
        Checksum::of(&target).unwrap()
    }

    #[tokio::test]
    async fn a_body_is_cut_into_parts_and_what_has_arrived_of_a_broken_one_is_kept() {
        let lost = || Err(Status::cancelled("gone"));
        let large = vec![Ok(piece(PART - 1, false)), Ok(piece(2, false)), Ok(piece(PART, true))];
        assert_eq!(parts(large, 3 * PART, None).await, (vec![PART, PART, 1], true));
        let broken = vec![Ok(piece(5, false)), Ok(piece(6, false)), lost()];
        assert_eq!(parts(broken, 100, None).await, (vec![11], false));
        assert_eq!(parts(vec![Ok(piece(5, false))], 100, None).await, (vec![5], false));
        assert_eq!(parts(vec![Ok(piece(5, false)), lost()], 5, None).await, (vec![5], true));
        assert_eq!(parts(vec![Ok(piece(0, true))], 5, None).await, (vec![], true));
        assert_eq!(parts(vec![lost()], 5, None).await, (vec![], false));
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_or_has_another_checksum_is_not_kept() {
        let long = vec![Ok(piece(5, false)), Ok(piece(6, true))];
        assert_eq!(parts(long, 10, None).await, (vec![], false));
        let other = vec![Ok(piece(5, false)), Ok(piece(6, true))];
        assert_eq!(parts(other, 100, checksum_of_another()).await, (vec![], false));
        let broken = vec![Ok(piece(5, false))];
        assert_eq!(parts(broken, 100, checksum_of_another()).await, (vec![], false));
    }

    /// A client that sends ten bytes a second.
    fn drip() -> impl Stream<Item = Result<Piece, Status>> + Send + 'static {
        stream::iter(0..100).then(|_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(piece(10, false))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_part_ends_early_if_its_turn_is_wanted() {
        let mut body = Arriving::new(drip(), 1000, None, CancellationToken::new());
        let mut sizes = Vec::new();
        while body.has_more().await {
            let part: Vec<Bytes> = body.part(|| true).try_collect().await.unwrap();
            sizes.push(part.len());
        }
        assert_eq!(sizes.iter().sum::<usize>(), 100, "nothing is lost");
        assert!(sizes.iter().all(|size| (1..10).contains(size)), "{sizes:?}");
        let mut body = Arriving::new(drip(), 1000, None, CancellationToken::new());
        assert!(body.has_more().await);
        let part: Vec<Bytes> = body.part(|| false).try_collect().await.unwrap();
        assert_eq!(part.len(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_ends_when_the_program_stops() {
        let stopping = CancellationToken::new();
        let pending = stream::iter([Ok(piece(5, false))]).chain(stream::pending());
        let mut body = Arriving::new(pending, 100, None, stopping.clone());
        assert!(body.has_more().await);
        stopping.cancel();
        let part: Vec<Bytes> = body.part(|| false).try_collect().await.unwrap();
        assert_eq!(part.concat().len(), 5);
        assert!(!body.has_more().await && body.check_end().is_err());
    }
}
