//! Discovery of the serving replicas behind a name.
//!
//! The name is resolved every second. There is one connection to each address, on which the program
//! reports whether it serves (`grpc.health.v1.Health/Watch`). Calls go only to programs that are
//! connected and serving, not to those that have died, hang, start or stop.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, Uri, uri::Authority};
use hyper::{
    body::Incoming,
    client::conn::http2::{Builder, SendRequest},
    rt::Executor,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use metrics::Gauge;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{interval, sleep, timeout},
};
use tonic::body::Body;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tower::Service;

use super::{CONNECTION_WINDOW, STREAM_WINDOW};
use crate::Tls;

/// Interval in which a name is resolved.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// HTTP/2 keepalive: time without traffic before a ping, and time until its response. A program
/// that hangs is detected, and its open calls fail, within the sum of both.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_millis(1500);

/// First and longest backoff before reconnecting.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));

/// The known replicas behind a name.
#[derive(Default)]
pub(super) struct Replicas {
    pub(super) serving: Vec<Replica>,
    /// Number of addresses and names whose first attempt is not finished.
    pending: usize,
}

impl Replicas {
    /// Whether there is a serving replica, or all first attempts have finished.
    pub(super) fn is_settled(&self) -> bool {
        self.pending == 0 || !self.serving.is_empty()
    }
}

/// The programs that a channel connects to.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) name: Authority,
    /// Certificates for mutual TLS, if it is enabled.
    pub(super) tls: Option<Tls>,
}

/// Returns the host of a name, without the port and the brackets of IPv6.
pub(super) fn host(name: &Authority) -> &str {
    name.host().trim_start_matches('[').trim_end_matches(']')
}

/// A connection to one program.
#[derive(Clone)]
pub(super) struct Replica {
    pub(super) address: SocketAddr,
    connection: SendRequest<Body>,
    /// Cloned by each call until its response begins.
    calls: Arc<()>,
}

/// A call without a response. `unsent` is the request if it was not sent.
pub(super) struct Failure {
    pub(super) error: hyper::Error,
    pub(super) unsent: Option<Request<Body>>,
}

impl Replica {
    pub(super) fn is_open(&self) -> bool {
        !self.connection.is_closed()
    }

    /// Returns the number of calls that wait for a response.
    pub(super) fn load(&self) -> usize {
        Arc::strong_count(&self.calls)
    }

    pub(super) async fn send(
        mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Failure> {
        let sent = self.connection.try_send_request(request).await;
        sent.map_err(|mut failed| {
            let unsent = failed.take_message();
            Failure { error: failed.into_error(), unsent }
        })
    }
}

/// Used by the client of the health service.
impl Service<Request<Body>> for Replica {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, hyper::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.clone().send(request).map(|sent| sent.map_err(|failure| failure.error)).boxed()
    }
}

/// Follows the addresses of a name, and connects to each. Drops `first` after the first resolution.
pub(super) async fn follow<F: Future<Output = io::Result<Vec<SocketAddr>>> + Send>(
    target: Target,
    mut look_up: impl FnMut() -> F + Send,
    registry: Registry,
    first: Pending,
) {
    let mut first = Some(first);
    let mut tasks = JoinSet::new();
    let mut connected: HashMap<SocketAddr, AbortHandle> = HashMap::new();
    let mut ticks = interval(RESOLVE_INTERVAL);
    loop {
        ticks.tick().await;
        match look_up().await {
            Ok(addresses) => {
                let current: HashSet<SocketAddr> = addresses.into_iter().collect();
                for (_, gone) in connected.extract_if(|address, _| !current.contains(address)) {
                    gone.abort();
                }
                for address in current {
                    connected.entry(address).or_insert_with(|| {
                        let first = registry.pending();
                        tasks.spawn(keep_connected(
                            target.clone(),
                            address,
                            registry.clone(),
                            first,
                        ))
                    });
                }
            }
            // The known addresses stay in use.
            Err(error) => {
                tracing::debug!(name = %target.name, %error, "cannot resolve the name");
            }
        }
        first.take();
        while tasks.try_join_next().is_some() {}
    }
}

/// Connects to a program, and reconnects with a backoff. Drops `first` after the first attempt.
async fn keep_connected(target: Target, address: SocketAddr, registry: Registry, first: Pending) {
    let mut first = Some(first);
    let mut backoff = BACKOFF.0;
    loop {
        let ended = follow_health(&target, address, &registry, &mut first).await;
        backoff = if ended.is_ok() { BACKOFF.0 } else { (backoff * 2).min(BACKOFF.1) };
        if let Err(error) = ended {
            let error = format!("{error:#}");
            tracing::debug!(name = %target.name, %address, error, "cannot connect");
        }
        first.take();
        sleep(backoff).await;
    }
}

/// Connects to a program, and registers it for as long as it serves. Ends with the connection.
async fn follow_health(
    target: &Target,
    address: SocketAddr,
    registry: &Registry,
    first: &mut Option<Pending>,
) -> anyhow::Result<()> {
    let connection = timeout(CONNECT_TIMEOUT, connect(target, address)).await??;
    let replica = Replica { address, connection, calls: Arc::default() };
    let origin = Uri::builder().scheme("http").authority(target.name.clone()).path_and_query("/");
    let mut health = HealthClient::with_origin(replica.clone(), origin.build()?);
    let mut statuses = health.watch(HealthCheckRequest::default()).await?.into_inner();
    let mut registration = None;
    loop {
        let Some(answer) = statuses.message().await? else { return Ok(()) };
        drop(registration.take());
        if answer.status() == ServingStatus::Serving {
            registration = Some(registry.register(replica.clone()));
        }
        first.take();
    }
}

async fn connect(target: &Target, address: SocketAddr) -> anyhow::Result<SendRequest<Body>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    match &target.tls {
        Some(tls) => open(tls.connect(host(&target.name), stream).await?).await,
        None => open(stream).await,
    }
}

async fn open(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> anyhow::Result<SendRequest<Body>> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // The task ends when all senders are dropped and all calls have responses.
    TokioExecutor::new().execute(connection.map(drop));
    Ok(sender)
}

/// Registry of the serving replicas, which channels watch.
#[derive(Clone)]
pub(super) struct Registry {
    replicas: Arc<watch::Sender<Replicas>>,
    number: Gauge,
}

impl Registry {
    pub(super) fn new(name: &Authority) -> Self {
        let number = metrics::gauge!("rpc_client_replicas", "server" => name.to_string());
        number.set(0.0);
        Self { replicas: Arc::default(), number }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Replicas> {
        self.replicas.subscribe()
    }

    pub(super) fn pending(&self) -> Pending {
        self.replicas.send_modify(|replicas| replicas.pending += 1);
        Pending(self.clone())
    }

    fn register(&self, replica: Replica) -> Registration {
        let address = replica.address;
        self.change(|serving| serving.push(replica));
        Registration { registry: self.clone(), address }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Replica>)) {
        self.replicas.send_modify(|replicas| {
            change(&mut replicas.serving);
            self.number.set(u32::try_from(replicas.serving.len()).unwrap_or(u32::MAX));
        });
    }
}

/// A first attempt to resolve a name or to connect, until it is dropped.
pub(super) struct Pending(Registry);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.replicas.send_modify(|replicas| replicas.pending -= 1);
    }
}

/// The registration of a replica, until it is dropped.
struct Registration {
    registry: Registry,
    address: SocketAddr,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.change(|serving| serving.retain(|replica| replica.address != self.address));
    }
}
