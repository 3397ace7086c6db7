//! The body of a request that appends to an upload, cut into parts. A body that breaks off ends like a whole one, so that
//! what has arrived is stored.

use std::{pin::Pin, time::Duration};

use assay_proto::{Fault, Piece};
use bytes::Bytes;
use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use tokio::time::timeout;
use tonic::Status;

use super::checksum::Checksum;

/// Size of the parts in which a body is stored, in bytes. A program that is killed loses one.
const PART: usize = 16 << 20;

/// Maximum pause of a client. The gateway ends a request earlier.
const PAUSE: Duration = Duration::from_secs(25);

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
}

impl Arriving {
    /// Receives a body of at most `lacking` bytes.
    pub(super) fn new(
        pieces: impl Stream<Item = Result<Piece, Status>> + Send + 'static,
        lacking: usize,
        checksum: Option<Checksum>,
    ) -> Self {
        Self { pieces: pieces.boxed(), rest: Bytes::new(), lacking, end: None, checksum }
    }

    /// Waits for bytes of the next part. Returns whether there are some.
    pub(super) async fn has_more(&mut self) -> bool {
        while self.rest.is_empty() && self.end.is_none() {
            if self.lacking == 0 {
                self.end = Some(End::Whole);
                break;
            }
            match timeout(PAUSE, self.pieces.next()).await {
                Ok(Some(Ok(piece))) => self.add(piece),
                Ok(None | Some(Err(_))) | Err(_) => self.end = Some(End::Broken),
            }
        }
        !self.rest.is_empty()
    }

    fn add(&mut self, Piece { chunk, last, .. }: Piece) {
        let Some(lacking) = self.lacking.checked_sub(chunk.len()) else {
            self.end = Some(End::TooLong);
            return;
        };
        self.lacking = lacking;
        if let Some(checksum) = &mut self.checksum {
            checksum.add(&chunk);
        }
        self.rest = chunk;
        if last {
            self.end = Some(End::Whole);
        }
    }

    /// Returns the bytes of the next part as they arrive. A body with a checksum is one part.
    pub(super) fn part(
        &mut self,
    ) -> Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send + '_>> {
        let room = if self.checksum.is_some() { usize::MAX } else { PART };
        Box::pin(stream::unfold((self, room), |(body, room)| async move {
            if room == 0 || !body.has_more().await {
                return None;
            }
            let piece = body.rest.split_to(body.rest.len().min(room));
            let room = room - piece.len();
            Some((Ok(piece), (body, room)))
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

/// The fault of a body that has more bytes than the file lacks.
pub(super) fn too_long() -> Fault {
    let reason = "the body has more bytes than the upload lacks: see Upload-Length".to_owned();
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
        let mut body = Arriving::new(stream::iter(pieces), lacking, checksum);
        let mut sizes = Vec::new();
        while body.has_more().await {
            let part: Vec<Bytes> = body.part().try_collect().await.unwrap();
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
}
