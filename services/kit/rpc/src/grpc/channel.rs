//! Calls to other programs, balanced over the serving replicas of a name.
//!
//! Each call has a deadline, which is sent with it. A call that only reads is retried if it fails
//! before its response, or the first message of a stream, has arrived; any other call is sent once.
//! Without a serving replica, a call fails at once.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use assay_proto::Reading;
use futures::future::BoxFuture;
use http::{
    Request, Response, Uri,
    uri::{Authority, Scheme},
};
use http_body_util::{BodyExt, Full};
use metrics::Counter;
use tokio::{
    net::lookup_host,
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};
use tonic::{Code, Status, body::Body};
use tower::Service;
use tracing::{Instrument, Span, field::Empty};

use super::{
    EVENTS_WINDOW, LONGEST_CALL, STREAM_WINDOW,
    budget::Retries,
    deadline,
    measurement::{method_label, record},
    replica::{Failure, Replica, Target, host},
    replicas::{Registry, Replicas, follow},
};
use assay_runtime::{Process, Runtime, Tls, telemetry::inject_request_id, trace};

/// Maximum wait of a call for the first attempt to connect to each replica.
const FIRST_CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum wait of a call for a serving replica: one that has just become ready, or has lost its
/// connection, is available again soon.
const REPLICA_TIMEOUT: Duration = Duration::from_millis(200);

/// Duration from which a failed call is not retried: the callee has waited or retried itself.
const SLOW_FAILURE: Duration = Duration::from_millis(500);

/// The outcome of a call; for a stream, that of its start.
type Answer = Result<Response<Body>, Status>;

/// A client of the replicas behind a name. Connections are kept open as long as a clone of the
/// channel exists.
#[derive(Clone)]
pub struct Channel {
    name: Authority,
    replicas: watch::Receiver<Replicas>,
    turn: Arc<AtomicUsize>,
    retries: Retries,
    refused: Counter,
    _tasks: Arc<JoinSet<()>>,
}

/// Opens a channel to the programs at a URL, `http://name:port`. It connects in the background, and
/// reconnects whenever a connection is lost.
pub fn connect(url: &str) -> anyhow::Result<Channel> {
    open(url, None, Process::default(), STREAM_WINDOW)
}

/// Does the same as [`connect`] for calls of a program, with TLS if it is enabled. The scheme of the
/// URL must be `https` with TLS, and `http` without.
pub fn connect_from(runtime: &Runtime, url: &str) -> anyhow::Result<Channel> {
    open(url, runtime.tls(), runtime.process().clone(), STREAM_WINDOW)
}

/// Does the same as [`connect_from`] for streams of events that slow clients read. Its connections are its own, so
/// unread events neither fill the window of other calls nor take much memory.
pub fn connect_for_events(runtime: &Runtime, url: &str) -> anyhow::Result<Channel> {
    open(url, runtime.tls(), runtime.process().clone(), EVENTS_WINDOW)
}

fn open(
    url: &str,
    tls: Option<&Tls>,
    process: Process,
    stream_window: u32,
) -> anyhow::Result<Channel> {
    let uri: Uri = url.parse().with_context(|| format!("{url} is not a URL"))?;
    let (scheme, port) = if tls.is_some() { ("https", 443) } else { ("http", 80) };
    ensure!(
        uri.scheme_str() == Some(scheme),
        "{url} must begin with {scheme}://, because ASSAY_TLS_CERTIFICATE_FILE is {}",
        if tls.is_some() { "set" } else { "not set" }
    );
    let name = uri.authority().with_context(|| format!("{url} has no host"))?.clone();
    let (host, port) = (host(&name).to_owned(), name.port_u16().unwrap_or(port));
    let target = Target { name, tls: tls.cloned(), process, stream_window };
    Ok(Channel::open(target, move || {
        let host = host.clone();
        async move { Ok(lookup_host((host.as_str(), port)).await?.collect()) }
    }))
}

impl Channel {
    /// Opens a channel to the programs at the addresses of a name, resolved by `look_up` every
    /// second.
    pub fn resolved_by<F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static>(
        name: Authority,
        look_up: impl FnMut() -> F + Send + 'static,
    ) -> Self {
        let (process, stream_window) = (Process::default(), STREAM_WINDOW);
        Self::open(Target { name, tls: None, process, stream_window }, look_up)
    }

    fn open<F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static>(
        target: Target,
        look_up: impl FnMut() -> F + Send + 'static,
    ) -> Self {
        let name = target.name.clone();
        let registry = Registry::new(&name);
        let replicas = registry.subscribe();
        let mut tasks = JoinSet::new();
        let first = registry.pending();
        tasks.spawn(follow(target, look_up, registry, first));
        let turn = Arc::default();
        let refused = metrics::counter!("rpc_client_refused_total", "server" => name.to_string());
        // Exported from 0, so that alerts see the first increase.
        refused.increment(0);
        Self { name, replicas, turn, retries: Retries::new(), refused, _tasks: Arc::new(tasks) }
    }

    /// Performs a call within its deadline.
    async fn perform(mut self, mut request: Request<Body>) -> Answer {
        let granted = deadline::of(request.headers());
        let deadline = Instant::now() + granted.map_or(LONGEST_CALL, |time| time.min(LONGEST_CALL));
        let mut uri = std::mem::take(request.uri_mut()).into_parts();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(self.name.clone());
        *request.uri_mut() = Uri::from_parts(uri).map_err(|e| Status::internal(e.to_string()))?;
        trace::inject(request.headers_mut());
        inject_request_id(request.headers_mut());

        let answered = timeout_at(deadline, async {
            let _ = timeout(FIRST_CONNECTION_TIMEOUT, self.replicas.wait_for(Replicas::is_settled))
                .await;
            let _ = timeout(
                REPLICA_TIMEOUT,
                self.replicas.wait_for(|replicas| !replicas.serving.is_empty()),
            )
            .await;
            let answer = match Reading::of(request.uri().path()) {
                Some(reading) => self.read(request, reading, deadline).await?,
                None => self.attempt(request, None, deadline).await,
            };
            answer.unwrap_or_else(|| Err(self.no_replica()))
        });
        let late = || Err(Status::deadline_exceeded("no response in time"));
        match answered.await {
            // The callee has reached the deadline first, which tonic reports as `Cancelled`. This
            // side has not cancelled the call, or it would not be waiting.
            Ok(answer) if code(&answer) == Code::Cancelled => late(),
            Ok(answer) => answer,
            Err(_) => late(),
        }
    }

    /// Sends a call that may be retried.
    async fn read(
        &self,
        request: Request<Body>,
        reading: Reading,
        deadline: Instant,
    ) -> Result<Option<Answer>, Status> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let mut retries = self.retries.begin();
        loop {
            let body = Body::new(Full::new(body.clone()));
            let sent = Instant::now();
            let request = Request::from_parts(head.clone(), body);
            let answer = self.attempt(request, Some(reading), deadline).await;
            let failed = answer.as_ref().is_some_and(|answer| code(answer) == Code::Unavailable);
            let was_answered = matches!(answer, Some(Ok(_)));
            let is_final = !failed || was_answered && sent.elapsed() > SLOW_FAILURE;
            if is_final || !retries.again().await {
                return Ok(answer);
            }
        }
    }

    /// Sends a call to one replica, or to another one if it could not be sent. Returns `None`
    /// without a serving replica.
    async fn attempt(
        &self,
        mut request: Request<Body>,
        reading: Option<Reading>,
        deadline: Instant,
    ) -> Option<Answer> {
        deadline::put(request.headers_mut(), deadline.saturating_duration_since(Instant::now()));
        let mut refused = Vec::new();
        while let Some(replica) = self.pick(&refused) {
            let address = replica.address;
            match replica.send(request, reading).await {
                Ok(answer) => return Some(Ok(answer)),
                Err(Failure { error, unsent }) => {
                    tracing::debug!(%address, %error, "a call got no response");
                    let interrupted = || Err(self.unavailable("closed the connection"));
                    let Some(unsent) = unsent else { return Some(interrupted()) };
                    request = unsent;
                    refused.push(address);
                }
            }
        }
        None
    }

    fn no_replica(&self) -> Status {
        self.refused.increment(1);
        self.unavailable("does not answer")
    }

    fn unavailable(&self, what: &str) -> Status {
        Status::unavailable(format!("{} {what}", self.name))
    }

    /// Returns the less busy one of two replicas, which rotate with each call.
    fn pick(&self, not: &[SocketAddr]) -> Option<Replica> {
        let replicas = self.replicas.borrow();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let open = |replica: &&Replica| replica.is_open() && !not.contains(&replica.address);
        let start = turn % replicas.serving.len().max(1);
        let (before, from) = replicas.serving.split_at(start);
        let two = from.iter().chain(before).filter(open).take(2);
        two.min_by_key(|replica| replica.load()).cloned()
    }
}

fn code(answer: &Answer) -> Code {
    match answer {
        Ok(answer) => Status::from_header_map(answer.headers()).map_or(Code::Ok, |s| s.code()),
        Err(status) => status.code(),
    }
}

/// Records one span and one measurement for each call, including its retries.
impl Service<Request<Body>> for Channel {
    type Response = Response<Body>;
    type Error = Status;
    type Future = BoxFuture<'static, Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (channel, method) = (self.clone(), method_label(request.uri().path()));
        let span = || {
            tracing::info_span!(
                "call",
                otel.name = method,
                otel.kind = "client",
                rpc.system.name = "grpc",
                rpc.method = method,
                rpc.response.status_code = Empty,
                server.address = self.name.host(),
            )
        };
        // Periodic calls that no request caused do not start a trace.
        let span = trace::id().map_or_else(Span::none, |_| span());
        let measured = async move {
            let started = Instant::now();
            let answer = channel.perform(request).await;
            let code = code(&answer);
            Span::current().record("rpc.response.status_code", i32::from(code));
            record("rpc_client_call_duration_seconds", method, code, started.elapsed());
            answer
        };
        Box::pin(measured.instrument(span))
    }
}
