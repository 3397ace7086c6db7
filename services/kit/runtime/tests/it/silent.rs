//! Clients that connect and send or read too little.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use assay_runtime::{Networks, Runtime, http, raise_file_limit};
use axum::{Router, routing::get};
use bytes::Bytes;
use futures::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::{Resource, getrlimit};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
    time::{interval, timeout},
};

/// Short timeouts, so that tests need not wait for those of programs.
const TIMEOUTS: http::Timeouts = http::Timeouts {
    first: Duration::from_millis(500),
    next: Duration::from_millis(500),
    read: Duration::from_millis(600),
};

/// Time in which a connection must be closed.
const SOON: Duration = Duration::from_secs(10);

async fn serve(connections: usize) -> (Runtime, SocketAddr) {
    serve_with(connections, TIMEOUTS).await
}

async fn serve_with(connections: usize, timeouts: http::Timeouts) -> (Runtime, SocketAddr) {
    let runtime = Runtime::new("test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let app = Router::new()
        .route("/", get(|| async { "here" }))
        .route("/large", get(|| async { "x".repeat(1 << 20) }));
    let limits = http::Connections::with_timeouts(connections, Networks::default(), timeouts);
    let address = http::serve(&runtime, listener, app, limits).unwrap();
    (runtime, address)
}

/// Connects from 127.0.0.`host`.
async fn connect(host: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, host), 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

async fn request(host: u8, to: SocketAddr) -> String {
    let mut stream = connect(host, to).await;
    let request = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Waits until the server has closed a connection without a response.
async fn closed(mut stream: TcpStream) {
    let mut answer = [0; 16];
    let read = timeout(SOON, stream.read(&mut answer)).await;
    assert!(matches!(read.expect("the server closes the connection"), Ok(0) | Err(_)));
}

/// Returns the memory of this process in MiB.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() >> 10
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_silent_connections_do_not_delay_others_and_are_closed() {
    raise_file_limit();
    // Long enough that no connection is closed before the last one is open.
    let timeouts = http::Timeouts { first: Duration::from_secs(3), ..TIMEOUTS };
    let (_runtime, address) = serve_with(10_000, timeouts).await;
    let before = memory();
    let files = getrlimit(Resource::Nofile).current;
    // Both ends are in this process.
    let count = (files.unwrap_or(u64::MAX) / 2).saturating_sub(500).min(5000);
    let mut silent = Vec::new();
    for number in 0..count {
        silent.push(connect(2 + u8::try_from(number % 4).unwrap(), address).await);
    }
    let started = Instant::now();
    for _ in 0..50 {
        assert!(request(1, address).await.ends_with("here"));
    }
    let (took, grown) = (started.elapsed(), memory() - before);
    assert!(took < Duration::from_secs(2), "others waited {took:?}");
    assert!(grown < 128, "{count} connections took {grown} MiB");
    join_all(silent.into_iter().map(closed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_client_sends_too_little_is_closed() {
    let timeouts = http::Timeouts { next: 10 * SOON, ..TIMEOUTS };
    let (_runtime, address) = serve_with(100, timeouts).await;
    let slow_head = "GET / HTTP/1.1\r\nHost: test\r\nX-Slow: ";
    let begun = ["P", "PRI * HTTP/2.0\r\n\r\nSM\r\n", slow_head].map(async |beginning| {
        let mut stream = connect(1, address).await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        closed(stream).await;
    });
    join_all(begun).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_was_used_stays_open_for_the_next_request() {
    let timeouts = http::Timeouts { next: SOON, ..TIMEOUTS };
    let (_runtime, address) = serve_with(100, timeouts).await;
    let mut used = connect(1, address).await;
    for _ in 0..2 {
        used.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"here") {
            assert_ne!(used.read_buf(&mut answer).await.unwrap(), 0, "it was closed");
        }
        // One that never sends anything is closed meanwhile.
        closed(connect(1, address).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_client_does_not_read_is_closed() {
    let (_runtime, address) = serve(100).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1 << 12).unwrap();
    let mut stalled = socket.connect(address).await.unwrap();
    // The responses are more than the buffers of both sockets hold.
    let requests = "GET /large HTTP/1.1\r\nHost: test\r\n\r\n".repeat(16);
    stalled.write_all(requests.as_bytes()).await.unwrap();
    let ended = async {
        let mut ticks = interval(Duration::from_millis(20));
        // Writes to a closed connection fail.
        while !stalled.try_write(b"G").is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
            ticks.tick().await;
        }
    };
    timeout(SOON, ended).await.expect("the server closes the connection");
}

/// The client reads from the connection and answers pings, but keeps the window of a response
/// closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_client_does_not_read_a_response_is_closed() {
    let (_runtime, address) = serve(100).await;
    let stream = TokioIo::new(connect(1, address).await);
    let (mut requests, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1024)
        .handshake(stream)
        .await
        .unwrap();
    let mut ended = JoinSet::new();
    ended.spawn(connection);
    let request = |path: &str| {
        Request::get(format!("http://test{path}")).body(Empty::<Bytes>::new()).unwrap()
    };
    let stuck = requests.send_request(request("/large")).await.unwrap();
    // Other responses arrive in the meantime.
    let other = requests.send_request(request("/")).await.unwrap().into_body();
    assert_eq!(other.collect().await.unwrap().to_bytes(), "here");
    timeout(SOON, ended.join_next()).await.expect("the server closes the connection");
    assert!(stuck.into_body().collect().await.is_err(), "the response is incomplete");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_gets_only_a_part_of_all_connections() {
    let (_runtime, address) = serve_with(40, http::Timeouts::default()).await;
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(connect(2, address).await);
    }
    // The next one is closed at once, not for its silence.
    let one_more = connect(2, address).await;
    timeout(Duration::from_secs(2), closed(one_more)).await.unwrap();
    assert!(request(1, address).await.ends_with("here"));
}
