//! HTTP connections that cost little: prepared requests, and bodies that are counted, not read.

use std::{net::SocketAddr, time::Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{
    Method, Request, StatusCode,
    header::{CONTENT_TYPE, HOST},
};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, task::JoinSet};

pub(crate) type Prepared = Request<Full<Bytes>>;

/// Prepares a request with a JSON body, or without a body.
pub(crate) fn prepare(method: &Method, path: &str, token: &str, body: Option<Bytes>) -> Prepared {
    prepare_with(method, path, token, "application/json", body)
}

/// Prepares a request with a body of any media type.
pub(crate) fn prepare_with(
    method: &Method,
    path: &str,
    token: &str,
    media_type: &str,
    body: Option<Bytes>,
) -> Prepared {
    let mut request = Request::builder().method(method).uri(path).header(HOST, "assay.test");
    if !token.is_empty() {
        request = request.header("authentication", format!("Bearer {token}"));
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, media_type);
    }
    request.body(Full::from(body.unwrap_or_default())).expect("a valid request")
}

/// A response whose body was counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) status: StatusCode,
    pub(crate) length: usize,
    /// Arrival of the first part of the body.
    pub(crate) first_byte: Instant,
}

/// A connection.
pub(crate) struct Connection {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
    /// Ends with the connection.
    _task: JoinSet<()>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // An error of the connection is one of its request.
        let mut task = JoinSet::new();
        task.spawn(async move { drop(connection.await) });
        Ok(Self { address, sender, _task: task })
    }

    /// Sends a request and counts its response.
    pub(crate) async fn count(&mut self, request: Prepared) -> Result<Counted> {
        let response = self.send(request).await?;
        let status = response.status();
        let mut body = response.into_body();
        let (mut length, mut first_byte) = (0, None);
        while let Some(frame) = body.frame().await {
            first_byte.get_or_insert_with(Instant::now);
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(Counted { status, length, first_byte: first_byte.unwrap_or_else(Instant::now) })
    }

    /// Sends a request and returns the body of its response, which has to be a success.
    pub(crate) async fn read(&mut self, request: Prepared) -> Result<Bytes> {
        let name = format!("{} {}", request.method(), request.uri());
        let response = self.send(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        let text = || String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned();
        ensure!(status.is_success(), "{name}: {status} {}", text());
        Ok(body)
    }

    /// Sends a request and returns its response, whose body may last. Connects again if the server
    /// has closed the unused connection.
    pub(crate) async fn send(&mut self, request: Prepared) -> Result<http::Response<Incoming>> {
        if self.sender.ready().await.is_err() {
            *self = Self::open(self.address).await?;
        }
        Ok(self.sender.send_request(request).await?)
    }
}

/// A client for preparations, with the token of one user. Each request has a connection of its own.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Client {
    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<Value> {
        self.call(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Result<Value> {
        self.call(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value> {
        self.call(Method::DELETE, path, None).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let body = body.map(|body| Bytes::from(body.to_string()));
        self.send(prepare(&method, path, &self.token, body)).await
    }

    /// Sends a request on a new connection, and counts its response, which has to be a success.
    pub(crate) async fn count(&self, request: Prepared) -> Result<()> {
        let name = format!("{} {}", request.method(), request.uri());
        let response = Connection::open(self.address).await?.count(request).await?;
        ensure!(response.status.is_success(), "{name}: {}", response.status);
        Ok(())
    }

    /// Sends a request on a new connection and returns the JSON of its response.
    pub(crate) async fn send(&self, request: Prepared) -> Result<Value> {
        let body = Connection::open(self.address).await?.read(request).await?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).context("the response is not JSON")
    }
}

/// Returns the `Id` of a record.
pub(crate) fn id(record: &Value) -> Result<String> {
    Ok(record["Id"].as_str().with_context(|| format!("no Id in {record}"))?.to_owned())
}
