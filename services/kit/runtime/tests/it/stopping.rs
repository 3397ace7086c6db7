//! Shutdown of a program while requests arrive.

use std::{array, net};

use assay_runtime::{Networks, Runtime, http};
use assay_testkit::eventually;
use axum::{Router, routing::post};
use futures::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nbody";

async fn send(stream: net::TcpStream) -> String {
    stream.set_nonblocking(true).unwrap();
    let mut stream = TcpStream::from_std(stream).unwrap();
    stream.write_all(REQUEST).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("every open connection gets a response");
    response
}

/// On one thread, so that the server does nothing while its clients connect.
#[tokio::test(flavor = "current_thread")]
async fn connections_opened_before_shutdown_are_served() {
    let runtime = Runtime::new("test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let app = Router::new().route("/", post(|body: String| async { body }));
    let address =
        http::serve(&runtime, listener, app, http::Connections::new(100, Networks::default()))
            .unwrap();

    let clients: [_; 20] = array::from_fn(|_| net::TcpStream::connect(address).unwrap());
    runtime.stopping().cancel();
    let refused = async || TcpStream::connect(address).await.err();
    eventually("a refused connection", refused).await;
    for response in join_all(clients.map(send)).await {
        assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with("body"), "{response}");
    }
}
