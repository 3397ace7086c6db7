//! Bodies that are never held: they travel to a service in pieces, as they come.

use std::{
    future::{Future, pending},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::Body,
    extract::{DefaultBodyLimit, FromRequest, Multipart, Request},
};
use bytes::Bytes;
use futures::Stream;
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tonic::Status;

use crate::{
    body::{Bounds, bounded, broken, media_type},
    problem::Problem,
};

/// How long an upload may take until its answer begins.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// How many pieces may wait for a service that is slower than the client.
const WAITING: usize = 4;

/// A body on its way to a service.
pub(crate) enum Upload {
    /// The body is one file.
    Whole(Body),
    /// The body is a form with several files.
    Files(Multipart),
}

/// A piece of a body.
#[derive(Default)]
pub(crate) struct Piece {
    pub(crate) chunk: Bytes,
    /// Whether a further file starts with this piece.
    pub(crate) next_file: bool,
    /// Whether the body is complete with this piece.
    pub(crate) last: bool,
}

/// JSON as it comes. One without a media type is taken for JSON.
impl<S: Sync> FromRequest<S> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        match media_type(request.headers()).as_deref() {
            None | Some("application/json") => Self::whole(request),
            _ => Err(Problem::unsupported("Content-Type: must be application/json")),
        }
    }
}

impl Upload {
    /// The body of a request as one file.
    pub(crate) fn whole(request: Request) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        Ok(Self::Whole(bounded(&parts.headers, body, Bounds::UPLOAD)?))
    }

    /// The files in the form that a request has as its body.
    pub(crate) async fn files(request: Request) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = bounded(&parts.headers, body, Bounds::UPLOAD)?;
        let mut request = Request::from_parts(parts, body);
        DefaultBodyLimit::disable().apply(&mut request);
        let form = Multipart::from_request(request, &()).await;
        Ok(Self::Files(form.map_err(|_| Problem::malformed("the form has no boundary"))?))
    }

    /// Makes a call with a stream of `first` and then what `next` makes of each piece.
    pub(crate) async fn send<M, R, F>(
        self,
        first: M,
        next: fn(Piece) -> M,
        call: impl FnOnce(Messages<M>) -> F,
    ) -> Result<R, Problem>
    where
        F: Future<Output = Result<R, Status>>,
    {
        let (sink, source) = mpsc::channel(WAITING);
        let messages = Messages { first: Some(first), source, next };
        tokio::select! {
            answer = call(messages) => answer.map_err(|status| Problem::from(status).of_parameters()),
            problem = self.feed_until_it_fails(sink) => Err(problem),
        }
    }

    async fn feed_until_it_fails(self, sink: Sink) -> Problem {
        let fed = match self {
            Self::Whole(body) => feed_whole(body, &sink).await,
            Self::Files(form) => feed_files(form, &sink).await,
        };
        if let Err(problem) = fed {
            return problem;
        }
        put(&sink, Piece { last: true, ..Piece::default() }).await;
        drop(sink);
        pending().await
    }
}

async fn feed_whole(mut body: Body, sink: &Sink) -> Result<(), Problem> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        if let Ok(chunk) = frame.into_data() {
            put(sink, Piece { chunk, ..Piece::default() }).await;
        }
    }
    Ok(())
}

async fn feed_files(mut form: Multipart, sink: &Sink) -> Result<(), Problem> {
    let mut next_file = false;
    while let Some(mut field) = form.next_field().await.map_err(|error| broken(&error))? {
        if field.file_name().is_none() {
            continue;
        }
        // Tells apart even empty files.
        put(sink, Piece { next_file, ..Piece::default() }).await;
        next_file = true;
        while let Some(chunk) = field.chunk().await.map_err(|error| broken(&error))? {
            put(sink, Piece { chunk, ..Piece::default() }).await;
        }
    }
    Ok(())
}

/// Where pieces go.
type Sink = mpsc::Sender<Piece>;

async fn put(sink: &Sink, piece: Piece) {
    if sink.send(piece).await.is_err() {
        // The service has answered before it had everything; its answer is what counts.
        pending::<()>().await;
    }
}

/// The messages of a call: the first, then one for each piece.
pub(crate) struct Messages<M> {
    first: Option<M>,
    source: mpsc::Receiver<Piece>,
    next: fn(Piece) -> M,
}

impl<M: Unpin> Stream for Messages<M> {
    type Item = M;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<M>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        let piece = ready!(self.source.poll_recv(context));
        Poll::Ready(piece.map(self.next))
    }
}
