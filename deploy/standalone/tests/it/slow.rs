//! Clients that are slow on purpose.

use std::time::Duration;

use assay_testkit::Api;
use futures::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::world::World;

/// Opens a connection and sends the beginning of a request.
async fn begin(address: &str, beginning: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(beginning.as_bytes()).await.unwrap();
    connection
}

/// Waits until the server has closed a connection; says what it has answered.
async fn closed(mut connection: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(30), connection.read_to_end(&mut answer)).await;
    read.expect("the server closes it").ok();
    String::from_utf8_lossy(&answer).into_owned()
}

async fn answers_soon(api: &Api) {
    for _ in 0..20 {
        let answer = timeout(Duration::from_secs(2), api.get("/api/projects")).await;
        answer.expect("others are answered meanwhile").ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_slow_connections_leave_others_alone_and_are_closed() {
    let world = World::start().await;
    let address = world.url().trim_start_matches("http://").to_owned();
    let head = "GET /api/projects HTTP/1.1\r\nHost: assay.test\r\nX-Slow: ";
    let slow = join_all((0..1000).map(|_| begin(&address, head))).await;
    answers_soon(&world.api).await;
    for answer in join_all(slow.into_iter().map(closed)).await {
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }

    let body = "POST /api/token/login HTTP/1.1\r\nHost: assay.test\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let slow = join_all((0..100).map(|_| begin(&address, body))).await;
    answers_soon(&world.api).await;
    for answer in join_all(slow.into_iter().map(closed)).await {
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("request_timeout"), "{answer}");
    }
    world.stop().await;
}
