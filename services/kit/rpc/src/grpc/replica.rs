//! A connection to one replica.

use std::{
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use assay_proto::{LARGEST_HEADERS, Reading};
use axum::Router;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{Request, Response, uri::Authority};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::{
    body::Incoming,
    client::conn::http2::{Builder, SendRequest},
    rt::Executor,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tonic::body::Body;
use tower::Service;

use super::{CONNECTION_WINDOW, FRAME_SIZE};
use assay_runtime::{Process, Tls};

/// HTTP/2 keepalive: time without traffic before a ping, and time until its response. A program
/// that hangs is detected, and its open calls fail, within the sum of both.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_millis(1500);

/// The programs that a channel connects to.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) name: Authority,
    /// Certificates for mutual TLS, if it is enabled.
    pub(super) tls: Option<Tls>,
    /// The process of the caller, whose servers are called directly.
    pub(super) process: Process,
    /// HTTP/2 window of a stream in bytes: how much of a response that nobody reads waits in memory.
    pub(super) stream_window: u32,
}

/// Returns the host of a name, without the port and the brackets of IPv6.
pub(super) fn host(name: &Authority) -> &str {
    name.host().trim_start_matches('[').trim_end_matches(']')
}

/// A connection to one program.
#[derive(Clone)]
pub(super) struct Replica {
    pub(super) address: SocketAddr,
    connection: Connection,
    /// Cloned by each call until it has a response.
    calls: Arc<()>,
}

#[derive(Clone)]
enum Connection {
    Http2(SendRequest<Body>),
    /// The server runs in this process.
    Local(Router),
}

/// A call without a response. `unsent` is the request if it was not sent.
pub(super) struct Failure {
    pub(super) error: hyper::Error,
    pub(super) unsent: Option<Request<Body>>,
}

impl Replica {
    /// Connects to the program at an address.
    pub(super) async fn connect(target: &Target, address: SocketAddr) -> anyhow::Result<Self> {
        let connection = connect(target, address).await?;
        Ok(Self { address, connection, calls: Arc::default() })
    }

    pub(super) fn is_open(&self) -> bool {
        match &self.connection {
            Connection::Http2(connection) => !connection.is_closed(),
            Connection::Local(_) => true,
        }
    }

    /// Returns the number of calls that wait for a response.
    pub(super) fn load(&self) -> usize {
        Arc::strong_count(&self.calls)
    }

    /// Sends a call. That of a method that only reads fails if the connection breaks within the
    /// part of its response that can be waited for.
    pub(super) async fn send(
        self,
        request: Request<Body>,
        reading: Option<Reading>,
    ) -> Result<Response<Body>, Failure> {
        match self.connection {
            Connection::Http2(mut connection) => {
                let sent = connection.try_send_request(request).await;
                let (head, body) = sent
                    .map_err(|mut failed| {
                        let unsent = failed.take_message();
                        Failure { error: failed.into_error(), unsent }
                    })?
                    .into_parts();
                let body = receive(body, reading).await;
                let body = body.map_err(|error| Failure { error, unsent: None })?;
                Ok(Response::from_parts(head, body))
            }
            Connection::Local(mut server) => {
                let Ok(response) = server.call(request).await;
                Ok(response.map(Body::new))
            }
        }
    }
}

/// Used by the client of the health service.
impl Service<Request<Body>> for Replica {
    type Response = Response<Body>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, hyper::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.clone().send(request, None).map(|sent| sent.map_err(|failure| failure.error)).boxed()
    }
}

/// Returns the body of a response once a message, or the first frame of a stream, has arrived.
async fn receive(mut body: Incoming, reading: Option<Reading>) -> hyper::Result<Body> {
    Ok(match reading {
        Some(Reading::Message) => Body::new(body.collect().await?),
        Some(Reading::Stream) => {
            let first = body.frame().await.transpose()?;
            let frames = stream::iter(first.map(Ok)).chain(BodyStream::new(body));
            Body::new(StreamBody::new(frames))
        }
        Some(Reading::Events) | None => Body::new(body),
    })
}

async fn connect(target: &Target, address: SocketAddr) -> anyhow::Result<Connection> {
    if let Some(server) = target.process.server(address) {
        return Ok(Connection::Local(server));
    }
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let connection = match &target.tls {
        Some(tls) => {
            let stream = tls.connect(host(&target.name), stream).await?;
            open(stream, target.stream_window).await?
        }
        None => open(stream, target.stream_window).await?,
    };
    Ok(Connection::Http2(connection))
}

async fn open(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    stream_window: u32,
) -> anyhow::Result<SendRequest<Body>> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(stream_window)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_SIZE)
        .max_header_list_size(LARGEST_HEADERS)
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // The task ends when all senders are dropped and all calls have responses.
    TokioExecutor::new().execute(connection.map(drop));
    Ok(sender)
}
