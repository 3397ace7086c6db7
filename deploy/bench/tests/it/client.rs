//! A client that allocates nothing while it sends: its buffers have their size before.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

/// Capacity of the buffers: more than any request or response has.
const CAPACITY: usize = 4 << 20;

/// Writes the body of the request with a number.
type WriteBody = fn(usize, &mut Vec<u8>);

/// A kind of request.
pub(crate) struct Request {
    pub(crate) name: &'static str,
    method: &'static str,
    path: String,
    media_type: &'static str,
    body: WriteBody,
}

impl Request {
    pub(crate) fn get(name: &'static str, path: String) -> Self {
        Self { name, method: "GET", path, media_type: "text/plain", body: |_, _| {} }
    }

    pub(crate) fn post(name: &'static str, path: String, body: WriteBody) -> Self {
        Self { name, method: "POST", path, media_type: "application/json", body }
    }

    pub(crate) fn put(name: &'static str, path: String, body: WriteBody) -> Self {
        Self { method: "PUT", ..Self::post(name, path, body) }
    }

    pub(crate) fn results(name: &'static str, path: String, body: WriteBody) -> Self {
        Self { media_type: "application/x-ndjson", ..Self::post(name, path, body) }
    }
}

/// A client on one connection.
pub(crate) struct Client {
    stream: TcpStream,
    token: String,
    request: Vec<u8>,
    body: Vec<u8>,
    response: Vec<u8>,
    /// Number of requests sent.
    sent: usize,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a connection without delay");
        let buffer = || Vec::with_capacity(CAPACITY);
        let (request, body, mut response) = (buffer(), buffer(), buffer());
        response.resize(CAPACITY, 0);
        Self { stream, token: token.to_owned(), request, body, response, sent: 0 }
    }

    /// Sends that many requests, one after the other.
    pub(crate) fn send(&mut self, request: &Request, count: usize) {
        for _ in 0..count {
            self.sent += 1;
            self.write(request);
            self.read(request.name);
        }
    }

    fn write(&mut self, request: &Request) {
        let Request { method, path, media_type, body, .. } = request;
        self.body.clear();
        body(self.sent, &mut self.body);
        self.request.clear();
        write!(
            self.request,
            "{method} {path} HTTP/1.1\r\nHost: assay.test\r\nAuthentication: Bearer {}\r\n\
             Content-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
            self.token,
            self.body.len()
        )
        .expect("memory");
        self.request.extend_from_slice(&self.body);
        self.stream.write_all(&self.request).expect("a connection");
    }

    /// Reads a response, which has to be a success.
    fn read(&mut self, name: &str) {
        let mut length = 0;
        loop {
            let more = self.stream.read(&mut self.response[length..]).expect("a response");
            length += more;
            assert_ne!(more, 0, "{name}: the connection was closed");
            if is_complete(&self.response[..length]) {
                break;
            }
        }
        let response = &self.response[..length];
        let text = || String::from_utf8_lossy(&response[..length.min(1000)]);
        assert!(response.starts_with(b"HTTP/1.1 20"), "{name}: {}", text());
    }
}

/// Returns whether a response is complete, whose length is in its head or which has chunks.
fn is_complete(response: &[u8]) -> bool {
    const HEAD_END: &[u8] = b"\r\n\r\n";
    const LENGTH: &[u8] = b"content-length: ";
    let find = |text: &[u8], part: &[u8]| text.windows(part.len()).position(|at| at == part);
    let Some(end) = find(response, HEAD_END) else { return false };
    let (head, body) = (&response[..end], &response[end + HEAD_END.len()..]);
    let Some(at) = find(head, LENGTH) else { return body.ends_with(b"0\r\n\r\n") };
    let digits = head[at + LENGTH.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    body.len() == digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
