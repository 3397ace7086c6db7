//! Requests whose bodies the program does not read.

use std::{net::SocketAddr, time::Duration};

use assay_runtime::{Networks, Runtime, http};
use axum::{
    Router,
    routing::{get, post},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

const CLOSES: &str = "connection: close\r\n";

async fn serve() -> (Runtime, SocketAddr) {
    let runtime = Runtime::new("test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let app = Router::new()
        .route("/", get(async || "here"))
        .route("/read", post(async |body: String| body))
        .route("/refuse", post(async || "here"));
    let limits =
        http::Connections::with_timeouts(100, Networks::default(), http::Timeouts::default());
    let address = http::serve(&runtime, listener, app, limits).unwrap();
    (runtime, address)
}

/// Returns the head of a request, which ends with these headers.
fn head(path: &str, headers: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: test\r\n{headers}\r\n\r\n")
}

/// Reads a response whose body is `here`, and returns its head.
async fn response(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"here") {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "it was closed");
    }
    String::from_utf8(read).unwrap()
}

/// Asserts that a connection can be used again.
async fn is_open(stream: &mut TcpStream) {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    let response = response(stream).await;
    assert!(response.starts_with("HTTP/1.1 200") && !response.contains(CLOSES), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_says_that_the_connection_closes_behind_a_long_body() {
    let (_runtime, address) = serve().await;
    for headers in ["Content-Length: 4000000", "Transfer-Encoding: chunked"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let chunk = if headers.ends_with("chunked") { "100000\r\n" } else { "" };
        let begun = head("/refuse", headers) + chunk + &"x".repeat(1 << 20);
        stream.write_all(begun.as_bytes()).await.unwrap();
        let response = response(&mut stream).await;
        assert!(response.contains(CLOSES), "{response}");
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "it is still open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_stays_open_behind_a_short_body_that_nobody_reads() {
    let (_runtime, address) = serve().await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let chunked = "3\r\nabc\r\n0\r\n\r\n";
    for (headers, body) in [("Content-Length: 3", "abc"), ("Transfer-Encoding: chunked", chunked)] {
        // The body arrives when the response is ready, as that of clients that send it separately.
        stream.write_all(head("/refuse", headers).as_bytes()).await.unwrap();
        let answered = timeout(Duration::from_millis(50), stream.peek(&mut [0])).await;
        assert!(answered.is_err(), "the response does not wait for the body");
        stream.write_all(body.as_bytes()).await.unwrap();
        let response = response(&mut stream).await;
        assert!(!response.contains(CLOSES), "{response}");
        is_open(&mut stream).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_nobody_wants_is_not_asked_for() {
    let (_runtime, address) = serve().await;
    let headers = "Content-Length: 4\r\nExpect: 100-continue";
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head("/refuse", headers).as_bytes()).await.unwrap();
    let refused = response(&mut stream).await;
    assert!(refused.starts_with("HTTP/1.1 200") && refused.contains(CLOSES), "{refused}");

    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head("/read", headers).as_bytes()).await.unwrap();
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).await.unwrap();
    assert_eq!(asked, *b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"here").await.unwrap();
    assert!(!response(&mut stream).await.contains(CLOSES));
    is_open(&mut stream).await;
}
