//! Clients that connect and say nothing, or not enough.

use std::{
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
    time::timeout,
};

/// Longer than a client may be silent.
const PATIENCE: Duration = Duration::from_secs(20);

async fn serve(connections: usize) -> (Runtime, SocketAddr) {
    let runtime = Runtime::new("test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let app = Router::new()
        .route("/", get(|| async { "here" }))
        .route("/large", get(|| async { "x".repeat(1 << 20) }));
    let admitted = http::Connections::new(connections, Networks::default());
    let address = http::serve(&runtime, listener, app, admitted).unwrap();
    (runtime, address)
}

/// Connects from 127.0.0.`host`.
async fn connect(host: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, host), 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

async fn ask(host: u8, to: SocketAddr) -> String {
    let mut stream = connect(host, to).await;
    let request = b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Waits until the server has closed the connection, which has answered nothing.
async fn closed(mut stream: TcpStream) {
    let mut answer = [0; 16];
    let read = timeout(PATIENCE, stream.read(&mut answer)).await;
    assert!(matches!(read.expect("the server closes it"), Ok(0) | Err(_)));
}

/// The memory that this process has, in MiB.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() >> 10
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_silent_connections_leave_others_alone_and_are_closed() {
    raise_file_limit();
    let (_runtime, address) = serve(10_000).await;
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
        assert!(ask(1, address).await.ends_with("here"));
    }
    let (took, grown) = (started.elapsed(), memory() - before);
    assert!(took < Duration::from_secs(2), "others waited {took:?}");
    assert!(grown < 128, "{count} connections took {grown} MiB");
    join_all(silent.into_iter().map(closed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_too_little_is_closed() {
    let (_runtime, address) = serve(100).await;
    let begun = ["P", "PRI * HTTP/2.0\r\n\r\nSM\r\n"].map(async |beginning| {
        let mut stream = connect(1, address).await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        closed(stream).await;
    });
    join_all(begun).await;
}

/// It reads what arrives, and answers pings; but it admits no more of its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_client_takes_nothing_of_an_answer_is_closed() {
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
    // Other answers go through meanwhile.
    let other = requests.send_request(request("/")).await.unwrap().into_body();
    assert_eq!(other.collect().await.unwrap().to_bytes(), "here");
    timeout(Duration::from_mins(1), ended.join_next()).await.expect("the server closes it");
    assert!(stuck.into_body().collect().await.is_err(), "the answer is not whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_cannot_take_all_connections() {
    let (_runtime, address) = serve(40).await;
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(connect(2, address).await);
    }
    // The next one is closed at once, long before it would be for its silence.
    let one_more = connect(2, address).await;
    timeout(Duration::from_secs(2), closed(one_more)).await.unwrap();
    assert!(ask(1, address).await.ends_with("here"));
}
