//! Clients that send or read slowly.

use std::time::Duration;

use assay_testkit::Api;
use futures::future::join_all;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::installation::Installation;

/// Opens a connection and sends the beginning of a request.
async fn open_connection(address: &str, beginning: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(beginning.as_bytes()).await.unwrap();
    connection
}

/// Waits until the server has closed a connection; returns its answer.
async fn read_until_closed(mut connection: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(30), connection.read_to_end(&mut answer)).await;
    read.expect("the server closes the connection").ok();
    String::from_utf8_lossy(&answer).into_owned()
}

async fn assert_answers_quickly(api: &Api) {
    for _ in 0..20 {
        let answer = timeout(Duration::from_secs(2), api.get("/api/projects")).await;
        answer.expect("other clients are answered").ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_connections_do_not_block_others_and_are_closed() {
    let assay = Installation::shared().await;
    let url = assay.url();
    let address = url.trim_start_matches("http://");
    let head = "GET /api/projects HTTP/1.1\r\nHost: assay.test\r\nX-Slow: ";
    let body = "POST /api/token/login HTTP/1.1\r\nHost: assay.test\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let heads = join_all((0..1000).map(|_| open_connection(address, head))).await;
    let bodies = join_all((0..100).map(|_| open_connection(address, body))).await;
    assert_answers_quickly(&assay.api).await;
    for answer in join_all(heads.into_iter().map(read_until_closed)).await {
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    for answer in join_all(bodies.into_iter().map(read_until_closed)).await {
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("request_timeout"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_complete_despite_a_late_unread_body() {
    let assay = Installation::shared().await;
    let address = assay.url().trim_start_matches("http://").parse().unwrap();
    for _ in 0..5 {
        let socket = TcpSocket::new_v4().unwrap();
        // With a small buffer, most of the answer stays at the server.
        socket.set_recv_buffer_size(1 << 14).unwrap();
        let mut connection = socket.connect(address).await.unwrap();
        let head = "GET /api/openapi.json HTTP/1.1\r\nHost: assay.test\r\n\
                    Connection: close\r\nContent-Length: 100000\r\n\r\n";
        connection.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(connection.read_u8().await.unwrap(), b'H');
        connection.write_all(&vec![b'x'; 100_000]).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let document: Value = serde_json::from_str(body).unwrap();
        assert_eq!(document["info"]["title"], "Assay");
    }
}
