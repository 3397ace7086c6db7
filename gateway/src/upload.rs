//! Uploads: bodies that are streamed to a service in chunks, without being held in memory.

mod announced;
mod file_name;
mod form_file;
mod held;
mod joined;
mod stored_file;

use std::{
    future::{Future, Ready, pending, ready},
    pin::pin,
    time::Duration,
};

use assay_proto::execution::FormFile;
use axum::{
    body::Body,
    extract::{DefaultBodyLimit, FromRequest, Multipart, Request, multipart::Field},
};
use bytes::Bytes;
use futures::{
    SinkExt, StreamExt,
    channel::mpsc,
    stream::{self, Chain, Map, Once},
};
use tokio::time::timeout;
use tonic::Status;

pub(crate) use self::{
    announced::{Announced, is_form, refuse_digests},
    file_name::file_name,
    stored_file::FileUpload,
};
use self::{form_file::form_file, held::Held};
use crate::{
    body::{Bounds, body_error, bounded, media_type},
    problem::Problem,
};

/// Maximum time from the start of an upload until its response begins.
pub(crate) const UPLOAD_TIMEOUT: Duration = Duration::from_mins(2);

/// Maximum time in which a service receives what has arrived of a body that breaks off.
pub(crate) const DELIVERY: Duration = Duration::from_secs(30);

/// Maximum number of chunks that are queued for a service that is slower than the client, beside the last one. Each has
/// up to 400 KiB, also while an upload waits for its turn.
const QUEUED: usize = 1;

/// Name of the fields of a form whose files are attachments of reports.
const ATTACHMENT: &str = "attachment";

/// Maximum length of the name of a file, in bytes.
const MAX_FILE_NAME: usize = 1000;

/// A body that is streamed to a service.
pub(crate) enum Upload {
    /// The body is one file.
    File(Body),
    /// The body is a form with any number of files, which fields are.
    Form(Multipart, Part, Held),
}

/// Returns a field of a form as a file, if it is one.
pub(crate) type Part = fn(&Field<'_>) -> Option<FormFile>;

/// A chunk of an upload.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) bytes: Bytes,
    /// The file of a form that starts with this chunk.
    pub(crate) file: Option<FormFile>,
    /// Whether this chunk is the last one of the upload.
    pub(crate) last: bool,
}

/// Accepts JSON. A body without a media type is treated as JSON.
impl<S: Sync> FromRequest<S> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        match media_type(request.headers()).as_deref() {
            None | Some("application/json") => Self::file(request),
            _ => Err(Problem::unsupported("Content-Type: must be application/json")),
        }
    }
}

/// The messages of a call: the first one, then one for each chunk.
pub(crate) type Messages<M> = Chain<Once<Ready<M>>, Map<mpsc::Receiver<Chunk>, fn(Chunk) -> M>>;

type Sender = mpsc::Sender<Chunk>;

impl Upload {
    /// Takes the body of a request as one file.
    pub(crate) fn file(request: Request) -> Result<Self, Problem> {
        Self::file_within(request, Bounds::UPLOAD)
    }

    /// Takes the body of a request as one file within these bounds.
    pub(crate) fn file_within(request: Request, bounds: Bounds) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        Ok(Self::File(bounded(&parts.headers, body, bounds)?))
    }

    /// Takes the only file of a form, and returns its media type.
    pub(crate) async fn only_file(request: Request) -> Result<(String, Self), Problem> {
        let (media_type, file) = form_file(request).await?;
        Ok((media_type, Self::File(file)))
    }

    /// Takes the body of a request as a form with files.
    pub(crate) async fn form(request: Request) -> Result<Self, Problem> {
        let part: Part = |field| {
            let is_attachment = field.name() == Some(ATTACHMENT);
            Some(FormFile {
                name: file_name(field.headers())?,
                is_attachment,
                ..FormFile::default()
            })
        };
        Self::form_of(request, Bounds::UPLOAD, part).await
    }

    /// Takes the body of a request as a form whose fields are these files.
    pub(crate) async fn form_of(
        request: Request,
        bounds: Bounds,
        part: Part,
    ) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let held = Held::default();
        let body = held.limit(bounded(&parts.headers, body, bounds)?);
        let mut request = Request::from_parts(parts, body);
        DefaultBodyLimit::disable().apply(&mut request);
        let form = Multipart::from_request(request, &()).await;
        let invalid = |_| Problem::malformed("Content-Type: the form needs a boundary");
        Ok(Self::Form(form.map_err(invalid)?, part, held))
    }

    /// Calls a service with a stream of messages: `first`, then one for each chunk.
    pub(crate) async fn send<M, R, F>(
        self,
        first: M,
        message: fn(Chunk) -> M,
        call: impl FnOnce(Messages<M>) -> F,
    ) -> Result<R, Problem>
    where
        F: Future<Output = Result<R, Status>>,
    {
        self.deliver(first, message, Duration::ZERO, call).await
    }

    /// Calls a service as [`Upload::send`] does. The service has this time to receive what has arrived of a body that
    /// breaks off.
    pub(crate) async fn deliver<M, R, F>(
        self,
        first: M,
        message: fn(Chunk) -> M,
        patience: Duration,
        call: impl FnOnce(Messages<M>) -> F,
    ) -> Result<R, Problem>
    where
        F: Future<Output = Result<R, Status>>,
    {
        let (sender, receiver) = mpsc::channel(QUEUED);
        let messages = stream::once(ready(first)).chain(receiver.map(message));
        let mut response = pin!(call(messages));
        tokio::select! {
            response = &mut response => {
                response.map_err(|status| Problem::from(status).of_parameters())
            }
            problem = self.feed(sender) => {
                // The response to the client is why its body cannot be read.
                let _ = timeout(patience, response).await;
                Err(problem)
            }
        }
    }

    /// Queues all chunks. Returns only if the body cannot be read.
    async fn feed(self, mut sender: Sender) -> Problem {
        let fed = match self {
            Self::File(body) => joined::feed(body.into_data_stream(), &mut sender).await,
            Self::Form(form, part, held) => feed_form(form, part, &held, &mut sender).await,
        };
        if let Err(problem) = fed {
            return problem;
        }
        queue(&mut sender, Chunk { last: true, ..Chunk::default() }).await;
        drop(sender);
        pending().await
    }
}

async fn feed_form(
    mut form: Multipart,
    part: Part,
    held: &Held,
    sender: &mut Sender,
) -> Result<(), Problem> {
    while let Some(mut field) = form.next_field().await.map_err(|error| body_error(&error))? {
        held.release();
        let Some(file) = part(&field) else {
            while field.chunk().await.map_err(|error| body_error(&error))?.is_some() {
                held.release();
            }
            continue;
        };
        if file.name.len() > MAX_FILE_NAME {
            let reason = format!("a file name is longer than {MAX_FILE_NAME} bytes");
            return Err(Problem::malformed(reason));
        }
        // A separate chunk marks the start, because the file may be empty.
        queue(sender, Chunk { file: Some(file), ..Chunk::default() }).await;
        joined::feed(field.inspect(|_| held.release()), sender).await?;
    }
    Ok(())
}

async fn queue(sender: &mut Sender, chunk: Chunk) {
    if sender.send(chunk).await.is_err() {
        // The service has responded before the end of the upload; its response counts.
        pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn few_chunks_wait_for_a_slow_service() {
        let taken = Arc::new(AtomicUsize::new(0));
        let count = taken.clone();
        let chunks = stream::repeat_with(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from(vec![b'x'; 32 << 10]))
        });
        let upload = Upload::File(Body::from_stream(chunks));
        let sent = upload.send(
            0,
            |_| 1,
            async |messages| {
                let _unread: Messages<i32> = messages;
                pending::<Result<(), Status>>().await
            },
        );
        assert!(sent.now_or_never().is_none());
        let taken = taken.load(Ordering::Relaxed);
        assert!((1..=3).contains(&taken), "{taken}");
    }
}
