//! Who answers for a name: the programs at all of its addresses that say that they serve.
//!
//! The name is looked up again and again. To each address there is one connection, on which the
//! program tells all the time whether it serves (`grpc.health.v1.Health/Watch`). Calls are given to
//! connections that stand and whose program serves, and to no others: whatever has died, hangs,
//! starts or stops has no part in them, until it says otherwise.

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

/// How often a name is looked up.
const LOOK_UP: Duration = Duration::from_secs(1);

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(1);

/// After how much silence a program is asked whether it is there, and how long it has to answer.
/// One that hangs is found out, and what it was working on fails, within the sum of both.
const SILENCE: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_millis(1500);

/// How long to wait before another connection, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));

/// What is known of the programs behind a name.
#[derive(Default)]
pub(super) struct Known {
    pub(super) serving: Vec<Replica>,
    /// How many addresses, or names, have not been tried yet.
    untried: usize,
}

impl Known {
    /// Whether calls can be given to somebody, or will not be for now.
    pub(super) fn is_settled(&self) -> bool {
        self.untried == 0 || !self.serving.is_empty()
    }
}

/// Which programs are connected to.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) name: Authority,
    /// Certificates for mutual TLS; none without it.
    pub(super) tls: Option<Tls>,
}

/// The host of a name, without a port and the brackets of IPv6.
pub(super) fn host(name: &Authority) -> &str {
    name.host().trim_start_matches('[').trim_end_matches(']')
}

/// A connection to one program.
#[derive(Clone)]
pub(super) struct Replica {
    pub(super) address: SocketAddr,
    connection: SendRequest<Body>,
    /// Held by each call until its answer begins.
    calls: Arc<()>,
}

/// A call that did not get an answer. One that was not even sent is given back.
pub(super) struct Failure {
    pub(super) error: hyper::Error,
    pub(super) unsent: Option<Request<Body>>,
}

impl Replica {
    pub(super) fn is_open(&self) -> bool {
        !self.connection.is_closed()
    }

    /// How many calls wait for it.
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

/// For the client of the health service.
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

/// Keeps up with the programs behind a name. `first` is kept until it has been looked up.
pub(super) async fn follow<F: Future<Output = io::Result<Vec<SocketAddr>>> + Send>(
    target: Target,
    mut look_up: impl FnMut() -> F + Send,
    place: Place,
    first: Trying,
) {
    let mut first = Some(first);
    let mut tasks = JoinSet::new();
    let mut tended: HashMap<SocketAddr, AbortHandle> = HashMap::new();
    let mut ticks = interval(LOOK_UP);
    loop {
        ticks.tick().await;
        match look_up().await {
            Ok(addresses) => {
                let there: HashSet<SocketAddr> = addresses.into_iter().collect();
                for (_, gone) in tended.extract_if(|address, _| !there.contains(address)) {
                    gone.abort();
                }
                for address in there {
                    tended.entry(address).or_insert_with(|| {
                        tasks.spawn(tend(target.clone(), address, place.clone(), place.trying()))
                    });
                }
            }
            // Those who are known are as good as before.
            Err(error) => {
                tracing::debug!(name = %target.name, %error, "the name cannot be looked up");
            }
        }
        first.take();
        while tasks.try_join_next().is_some() {}
    }
}

/// Connects to a program again and again. `first` is kept until it was tried.
async fn tend(target: Target, address: SocketAddr, place: Place, first: Trying) {
    let mut first = Some(first);
    let mut pause = PAUSES.0;
    loop {
        let ended = attend(&target, address, &place, &mut first).await;
        pause = if ended.is_ok() { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
        if let Err(error) = ended {
            let error = format!("{error:#}");
            tracing::debug!(name = %target.name, %address, error, "cannot be reached");
        }
        first.take();
        sleep(pause).await;
    }
}

/// Connects to a program, and gives calls to it whenever it serves. Ends with the connection.
async fn attend(
    target: &Target,
    address: SocketAddr,
    place: &Place,
    first: &mut Option<Trying>,
) -> anyhow::Result<()> {
    let connection = timeout(CONNECT, connect(target, address)).await??;
    let replica = Replica { address, connection, calls: Arc::default() };
    let origin = Uri::builder().scheme("http").authority(target.name.clone()).path_and_query("/");
    let mut health = HealthClient::with_origin(replica.clone(), origin.build()?);
    let mut told = health.watch(HealthCheckRequest::default()).await?.into_inner();
    let mut member = None;
    loop {
        let Some(answer) = told.message().await? else { return Ok(()) };
        drop(member.take());
        if answer.status() == ServingStatus::Serving {
            member = Some(place.join(replica.clone()));
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
        .keep_alive_interval(SILENCE)
        .keep_alive_timeout(ANSWER)
        .keep_alive_while_idle(true);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // It ends when nobody can send anything any more, and all that was sent is answered.
    TokioExecutor::new().execute(connection.map(drop));
    Ok(sender)
}

/// Where everybody looks who has a call to give.
#[derive(Clone)]
pub(super) struct Place {
    known: Arc<watch::Sender<Known>>,
    number: Gauge,
}

impl Place {
    pub(super) fn new(name: &Authority) -> Self {
        let number = metrics::gauge!("rpc_client_replicas", "server" => name.to_string());
        number.set(0.0);
        Self { known: Arc::default(), number }
    }

    pub(super) fn look(&self) -> watch::Receiver<Known> {
        self.known.subscribe()
    }

    pub(super) fn trying(&self) -> Trying {
        self.known.send_modify(|known| known.untried += 1);
        Trying(self.clone())
    }

    fn join(&self, replica: Replica) -> Member {
        let address = replica.address;
        self.change(|serving| serving.push(replica));
        Member { place: self.clone(), address }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Replica>)) {
        self.known.send_modify(|known| {
            change(&mut known.serving);
            self.number.set(u32::try_from(known.serving.len()).unwrap_or(u32::MAX));
        });
    }
}

/// Something is being tried for the first time, as long as this is kept.
pub(super) struct Trying(Place);

impl Drop for Trying {
    fn drop(&mut self) {
        self.0.known.send_modify(|known| known.untried -= 1);
    }
}

/// Calls are given to a program, as long as this is kept.
struct Member {
    place: Place,
    address: SocketAddr,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.place.change(|serving| serving.retain(|replica| replica.address != self.address));
    }
}
