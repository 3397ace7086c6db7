//! The arrival of a file: it is counted and hashed piece by piece, and never held as a whole.

use std::time::{Duration, Instant};

use assay_fair::Turn;
use assay_proto::Fault;
use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use tonic::Status;

/// Interval in which a file that is being stored is renewed.
pub(crate) const RENEWAL: Duration = Duration::from_secs(20);

/// Records that the storing of a file goes on. The file is given up if this fails.
pub type Renew = Box<dyn Fn() -> BoxFuture<'static, Result<(), Fault>> + Send + Sync>;

/// Number of bytes for which room is claimed at once, unless more arrive.
const ROOM: u64 = 16 << 20;

/// Claims room for up to this number of bytes in the quota of a customer. Returns how many it has claimed, at least one.
/// Fails without room.
pub type Claim = Box<dyn Fn(u64) -> BoxFuture<'static, Result<u64, Fault>> + Send + Sync>;

/// Room for a file in the quota of its customer.
pub struct Room {
    /// Number of bytes that are claimed.
    pub claimed: u64,
    /// Called before more bytes are stored.
    pub more: Claim,
}

/// Conditions under which a file is stored, beside its maximum size.
pub struct Terms {
    /// Room for the file; none if its customer has no limit, or if the room is claimed elsewhere.
    pub room: Option<Room>,
    /// SHA-256 that the file must have.
    pub sha256: Option<[u8; 32]>,
    /// Called about every 20 seconds while the file arrives.
    pub renew: Renew,
    /// Held while parts of the file are in memory; none if that is limited elsewhere.
    pub turn: Option<Turn>,
}

impl Default for Terms {
    fn default() -> Self {
        Self { room: None, sha256: None, renew: Box::new(|| async { Ok(()) }.boxed()), turn: None }
    }
}

/// A file that was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Size in bytes.
    pub size: i64,
    pub sha256: [u8; 32],
}

/// Why a file is not stored.
#[derive(Debug)]
pub struct Unstored {
    pub status: Status,
    /// Whether the store may have the file nevertheless, or get it later: the call that ends it has failed or was late.
    pub may_appear: bool,
}

impl From<Unstored> for Status {
    fn from(unstored: Unstored) -> Self {
        unstored.status
    }
}

/// A file that is arriving.
pub(crate) struct Arrival {
    terms: Terms,
    /// Maximum size of the file, in bytes.
    largest: u64,
    /// Number of bytes that have arrived.
    size: u64,
    hash: Context,
    renewed: Instant,
}

impl Arrival {
    pub(crate) fn new(terms: Terms, largest: u64) -> Self {
        let (hash, renewed) = (Context::new(&SHA256), Instant::now());
        Self { terms, largest, size: 0, hash, renewed }
    }

    /// Counts the next piece. Fails if the file has become too large.
    pub(crate) async fn add(&mut self, piece: &Bytes) -> Result<(), Status> {
        self.size += piece.len() as u64;
        if self.size > self.largest {
            return Err(too_large(self.largest).into());
        }
        if let Some(room) = &mut self.terms.room {
            while self.size > room.claimed {
                room.claimed += (room.more)((self.size - room.claimed).max(ROOM)).await?;
            }
        }
        self.hash.update(piece);
        if self.renewed.elapsed() > RENEWAL {
            (self.terms.renew)().await?;
            self.renewed = Instant::now();
        }
        Ok(())
    }

    /// Returns what has arrived, and what renews it until it is stored. Fails if it does not have the SHA-256 that it
    /// must have.
    pub(crate) fn end(self) -> Result<(Stored, Renew), Fault> {
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(self.hash.finish().as_ref());
        if self.terms.sha256.is_some_and(|expected| expected != sha256) {
            let problem = "is not the SHA-256 of the file that has arrived: send it again";
            return Err(Fault::invalid("digest", problem));
        }
        let size = i64::try_from(self.size).map_err(Fault::internal)?;
        Ok((Stored { size, sha256 }, self.terms.renew))
    }
}

/// The fault of a file of more than `largest` bytes.
pub(crate) fn too_large(largest: u64) -> Fault {
    let reason = format!("the file is larger than {} MiB", largest >> 20);
    Fault::Refused { code: "too_large", reason }
}

/// Parses a SHA-256 in hexadecimal digits.
pub fn parse_sha256(field: &str, text: &str) -> Result<[u8; 32], Fault> {
    let invalid = || Fault::invalid(field, "must be a SHA-256");
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash {
        return Err(invalid());
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        let digits = &text[2 * index..2 * index + 2];
        *byte = u8::from_str_radix(digits, 16).map_err(|_| invalid())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_have_64_hexadecimal_digits() {
        assert_eq!(parse_sha256("Digest", &"0A".repeat(32)).unwrap(), [10; 32]);
        for wrong in ["", "0a", &"0g".repeat(32), &"+a".repeat(32), &"ä".repeat(32)] {
            assert!(parse_sha256("Digest", wrong).is_err(), "{wrong}");
        }
    }
}
