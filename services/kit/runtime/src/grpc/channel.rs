//! What a program reaches another one by: calls to whoever answers for its name.
//!
//! Each call has a deadline, which travels with it. One that only reads is tried again when it
//! failed before its answer began; any other is sent once. With nobody to send it to, a call fails
//! at once.

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
use assay_proto::{Needs, only_reads};
use futures::future::BoxFuture;
use http::{
    Request, Response, Uri,
    uri::{Authority, Scheme},
};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
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
    LONGEST_CALL,
    budget::Retries,
    deadline,
    replicas::{Failure, Known, Place, Replica, Target, follow, host},
};
use crate::{Tls, telemetry::pass_on, trace};

/// How long a call waits for the first connection of all to be made.
const SETTLE: Duration = Duration::from_secs(2);

/// How long a call waits for somebody to serve when nobody does: who has just become ready, or has
/// lost a connection, is back in a moment.
const MOMENT: Duration = Duration::from_millis(200);

/// Who says later than this that something is not available, has tried for itself.
const LATE: Duration = Duration::from_millis(500);

/// What comes of a call; for a stream, what comes of its beginning.
type Answer = Result<Response<Incoming>, Status>;

/// The programs behind a name, as one that can be called. Connections are made and kept as long as
/// a clone of this is.
#[derive(Clone)]
pub struct Channel {
    name: Authority,
    known: watch::Receiver<Known>,
    turn: Arc<AtomicUsize>,
    retries: Retries,
    refused: Counter,
    _tasks: Arc<JoinSet<()>>,
}

/// A channel to the programs at a URL, `http://name:port`. Its connections are made when they can
/// be, and again when they are lost.
pub fn connect(url: &str) -> anyhow::Result<Channel> {
    connect_with(None, url)
}

/// As [`connect`]; with TLS, the URL has to begin with `https://`, and only with TLS it may.
pub fn connect_with(tls: Option<&Tls>, url: &str) -> anyhow::Result<Channel> {
    let uri: Uri = url.parse().with_context(|| format!("{url} is not a URL"))?;
    let (scheme, port) = if tls.is_some() { ("https", 443) } else { ("http", 80) };
    ensure!(
        uri.scheme_str() == Some(scheme),
        "{url} has to begin with {scheme}://, as ASSAY_TLS_CERTIFICATE_FILE is {}",
        if tls.is_some() { "set" } else { "not set" }
    );
    let name = uri.authority().with_context(|| format!("{url} names no host"))?.clone();
    let (host, port) = (host(&name).to_owned(), name.port_u16().unwrap_or(port));
    Ok(Channel::open(Target { name, tls: tls.cloned() }, move || {
        let host = host.clone();
        async move { Ok(lookup_host((host.as_str(), port)).await?.collect()) }
    }))
}

impl Channel {
    /// To the programs at the addresses that a name has, which are looked up every second.
    pub fn resolved_by<F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static>(
        name: Authority,
        look_up: impl FnMut() -> F + Send + 'static,
    ) -> Self {
        Self::open(Target { name, tls: None }, look_up)
    }

    fn open<F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static>(
        target: Target,
        look_up: impl FnMut() -> F + Send + 'static,
    ) -> Self {
        let name = target.name.clone();
        let place = Place::new(&name);
        let known = place.look();
        let mut tasks = JoinSet::new();
        let first = place.trying();
        tasks.spawn(follow(target, look_up, place, first));
        let turn = Arc::default();
        let refused = metrics::counter!("rpc_client_refused_total", "server" => name.to_string());
        // What has not happened yet can be seen, too.
        refused.increment(0);
        Self { name, known, turn, retries: Retries::new(), refused, _tasks: Arc::new(tasks) }
    }

    /// Carries out a call within its deadline.
    async fn carry_out(mut self, mut request: Request<Body>) -> Answer {
        let granted = deadline::of(request.headers());
        let deadline = Instant::now() + granted.map_or(LONGEST_CALL, |time| time.min(LONGEST_CALL));
        let mut uri = std::mem::take(request.uri_mut()).into_parts();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(self.name.clone());
        *request.uri_mut() = Uri::from_parts(uri).map_err(|e| Status::internal(e.to_string()))?;
        trace::inject(request.headers_mut());
        pass_on(request.headers_mut());

        let answered = timeout_at(deadline, async {
            // When it is not known in time who is there, nobody is.
            let _ = timeout(SETTLE, self.known.wait_for(Known::is_settled)).await;
            let _ = timeout(MOMENT, self.known.wait_for(|known| !known.serving.is_empty())).await;
            let answer = if only_reads(request.uri().path()) {
                self.read(request, deadline).await?
            } else {
                self.attempt(request, deadline).await
            };
            answer.unwrap_or_else(|| Err(self.nobody()))
        });
        let late = || Err(Status::deadline_exceeded("no answer in time"));
        match answered.await {
            // Who was called has given up a moment before, and says so in tonic's way. We ourselves
            // have cancelled nothing, or would not be waiting.
            Ok(answer) if code(&answer) == Code::Cancelled => late(),
            Ok(answer) => answer,
            Err(_) => late(),
        }
    }

    /// Sends a call that may be sent more than once.
    async fn read(
        &self,
        request: Request<Body>,
        deadline: Instant,
    ) -> Result<Option<Answer>, Status> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let mut retries = self.retries.begin();
        loop {
            let body = Body::new(Full::new(body.clone()));
            let sent = Instant::now();
            let answer = self.attempt(Request::from_parts(head.clone(), body), deadline).await;
            let failed = answer.as_ref().is_some_and(|answer| code(answer) == Code::Unavailable);
            let was_answered = matches!(answer, Some(Ok(_)));
            let is_final = !failed || was_answered && sent.elapsed() > LATE;
            if is_final || !retries.again().await {
                return Ok(answer);
            }
        }
    }

    /// Sends a call once. What could not be sent, another one may get. None if there is nobody.
    async fn attempt(&self, mut request: Request<Body>, deadline: Instant) -> Option<Answer> {
        deadline::put(request.headers_mut(), deadline.saturating_duration_since(Instant::now()));
        let mut refused = Vec::new();
        while let Some(replica) = self.pick(&refused) {
            let address = replica.address;
            match replica.send(request).await {
                Ok(answer) => return Some(Ok(answer)),
                Err(Failure { error, unsent }) => {
                    tracing::debug!(%address, %error, "a call got no answer");
                    let broke_off = || Err(self.unavailable("broke off"));
                    let Some(unsent) = unsent else { return Some(broke_off()) };
                    request = unsent;
                    refused.push(address);
                }
            }
        }
        None
    }

    fn nobody(&self) -> Status {
        self.refused.increment(1);
        self.unavailable("does not answer")
    }

    fn unavailable(&self, what: &str) -> Status {
        Status::unavailable(format!("{} {what}", self.name))
    }

    /// The less busy one of two, which are others each time.
    fn pick(&self, not: &[SocketAddr]) -> Option<Replica> {
        let known = self.known.borrow();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let open = |replica: &&Replica| replica.is_open() && !not.contains(&replica.address);
        let start = turn % known.serving.len().max(1);
        let (before, from) = known.serving.split_at(start);
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

/// One span and one measurement for each call, however often it is sent.
impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = Status;
    type Future = BoxFuture<'static, Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (channel, path) = (self.clone(), request.uri().path());
        let method = path.trim_start_matches('/').to_owned();
        let label = if Needs::of(path).is_some() { method.clone() } else { "other".to_owned() };
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
        // What programs ask each other by themselves, time and again, is no trace of its own.
        let span = trace::id().map_or_else(Span::none, |_| span());
        let measured = async move {
            let started = Instant::now();
            let answer = channel.carry_out(request).await;
            let code = code(&answer);
            Span::current().record("rpc.response.status_code", i32::from(code));
            let labels = [("method", label), ("code", format!("{code:?}"))];
            let seconds = started.elapsed().as_secs_f64();
            metrics::histogram!("rpc_client_call_duration_seconds", &labels).record(seconds);
            answer
        };
        Box::pin(measured.instrument(span))
    }
}
