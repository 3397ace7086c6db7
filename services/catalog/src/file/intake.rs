//! The body of an upload, piece by piece: it is counted, hashed and passed on, and never held as a whole.

use std::time::{Duration, Instant};

use assay_proto::{
    Fault,
    catalog::{UploadFileHead, UploadFileRequest, UploadFileTarget},
};
use assay_storage::{Pieces, Place};
use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use futures::stream;
use sqlx::PgPool;
use tokio::{sync::oneshot, time::timeout};
use tonic::{Status, Streaming};

use super::stray;

/// Interval in which an upload shows that it is in progress.
const TOUCH_INTERVAL: Duration = Duration::from_mins(1);

/// Maximum time until the name of the file has arrived.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// An upload whose name is known, and whose contents follow.
pub(super) struct Opened {
    pub(super) target: UploadFileTarget,
    pub(super) head: UploadFileHead,
    messages: Streaming<UploadFileRequest>,
    first: UploadFileRequest,
}

/// Receives the messages of an upload up to the one with the name of the file.
pub(super) async fn open(mut messages: Streaming<UploadFileRequest>) -> Result<Opened, Status> {
    let opening = async {
        let missing = || Status::invalid_argument("the call has no messages");
        let mut first = messages.message().await?.ok_or_else(missing)?;
        let target = first.target.take().unwrap_or_default();
        while first.head.is_none() {
            if first.last {
                let problem = "is missing: send a form with one file, in a field of any name";
                return Err(Fault::invalid("file", problem).into());
            }
            first = messages.message().await?.ok_or_else(broken)?;
        }
        Ok::<_, Status>((target, first))
    };
    let late = |_| Fault::Malformed("the name of the file did not arrive in time".to_owned());
    let (target, mut first) = timeout(HEAD_TIMEOUT, opening).await.map_err(late)??;
    let head = first.head.take().unwrap_or_default();
    Ok(Opened { target, head, messages, first })
}

fn broken() -> Fault {
    Fault::Malformed("the body broke off".to_owned())
}

impl Opened {
    /// Returns the pieces of the file, and its SHA-256 as soon as all of them have been read. Fails as soon as
    /// there are more than `most` bytes, with `exceeded`.
    pub(super) fn contents(
        self,
        db: &PgPool,
        place: Place,
        most: Option<(u64, Fault)>,
    ) -> (Pieces, oneshot::Receiver<Vec<u8>>) {
        let (hashed, hash) = oneshot::channel();
        let contents = Contents {
            messages: self.messages,
            first: Some(self.first),
            is_complete: false,
            size: 0,
            most,
            hash: Some((Context::new(&SHA256), hashed)),
            db: db.clone(),
            place,
            touched: Instant::now(),
        };
        let pieces = stream::try_unfold(contents, |mut contents| async move {
            Ok(contents.next().await?.map(|piece| (piece, contents)))
        });
        (Box::pin(pieces), hash)
    }
}

struct Contents {
    messages: Streaming<UploadFileRequest>,
    first: Option<UploadFileRequest>,
    is_complete: bool,
    /// Number of bytes that have arrived.
    size: u64,
    /// Maximum number of bytes, and the fault of more.
    most: Option<(u64, Fault)>,
    hash: Option<(Context, oneshot::Sender<Vec<u8>>)>,
    db: PgPool,
    place: Place,
    touched: Instant,
}

impl Contents {
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        if self.is_complete {
            if let Some((hash, hashed)) = self.hash.take() {
                // Without a receiver, the upload has failed otherwise.
                let _ = hashed.send(hash.finish().as_ref().to_vec());
            }
            return Ok(None);
        }
        let message = match self.first.take() {
            Some(first) => first,
            None => self.messages.message().await?.ok_or_else(broken)?,
        };
        if message.head.is_some() {
            let problem = "must be one file: send each file in a request of its own";
            return Err(Fault::invalid("file", problem).into());
        }
        self.is_complete = message.last;
        self.size += message.chunk.len() as u64;
        if let Some((_, exceeded)) = self.most.take_if(|(most, _)| self.size > *most) {
            return Err(exceeded.into());
        }
        if let Some((hash, _)) = &mut self.hash {
            hash.update(&message.chunk);
        }
        if self.touched.elapsed() > TOUCH_INTERVAL {
            stray::touch(&self.db, self.place).await?;
            self.touched = Instant::now();
        }
        Ok(Some(message.chunk))
    }
}
