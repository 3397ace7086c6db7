//! The body of an upload, piece by piece.

use std::time::Duration;

use assay_proto::{
    Fault,
    catalog::{UploadFileHead, UploadFileRequest, UploadFileTarget},
};
use assay_storage::Pieces;
use bytes::Bytes;
use futures::stream;
use tokio::time::timeout;
use tonic::{Status, Streaming};

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
    /// Returns the pieces of the file.
    pub(super) fn contents(self) -> Pieces {
        let contents =
            Contents { messages: self.messages, first: Some(self.first), is_complete: false };
        Box::pin(stream::try_unfold(contents, |mut contents| async move {
            Ok(contents.next().await?.map(|piece| (piece, contents)))
        }))
    }
}

struct Contents {
    messages: Streaming<UploadFileRequest>,
    first: Option<UploadFileRequest>,
    is_complete: bool,
}

impl Contents {
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        if self.is_complete {
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
        Ok(Some(message.chunk))
    }
}
