//! Responses, whose bodies are read with limits.

use std::{
    io::{self, Read},
    time::Duration,
};

use bytes::{Buf, Bytes};
use reqwest::{Response, StatusCode, header::HeaderName};
use serde::de::DeserializeOwned;
use tokio::{runtime::Handle, time::timeout};

use crate::ClientError;

/// Maximum time between two parts of a body. The whole body has the timeout of its request.
const STALL: Duration = Duration::from_mins(1);

/// A response to a request. Every way to read its body has a limit in bytes.
pub struct Answer {
    response: Response,
    received: u64,
}

impl Answer {
    pub fn new(response: Response) -> Self {
        Self { response, received: 0 }
    }

    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns a header, if it is text.
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Returns the next part of the body. `None` at its end.
    pub async fn chunk(&mut self, limit: u64) -> Result<Option<Bytes>, ClientError> {
        let announced = self.response.content_length().unwrap_or_default();
        if self.received.saturating_add(announced) > limit {
            return Err(ClientError::TooLarge { limit });
        }
        let chunk = timeout(STALL, self.response.chunk()).await;
        let chunk = chunk.map_err(|_| ClientError::Stalled(STALL))??;
        self.received += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if self.received > limit {
            return Err(ClientError::TooLarge { limit });
        }
        Ok(chunk)
    }

    /// Returns the whole body.
    pub async fn bytes(mut self, limit: u64) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(limit).await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Parses the body.
    pub async fn json<T: DeserializeOwned>(self, limit: u64) -> Result<T, ClientError> {
        serde_json::from_slice(&self.bytes(limit).await?).map_err(ClientError::Malformed)
    }

    /// Returns a reader of the body for a thread that may block.
    pub fn reader(self, limit: u64) -> BodyReader {
        BodyReader { answer: self, limit, rest: Bytes::new(), handle: Handle::current() }
    }
}

/// Reads a body in a thread that may block.
pub struct BodyReader {
    answer: Answer,
    limit: u64,
    rest: Bytes,
    handle: Handle,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            let chunk = self.handle.block_on(self.answer.chunk(self.limit));
            match chunk.map_err(io::Error::other)? {
                Some(chunk) => self.rest = chunk,
                None => return Ok(0),
            }
        }
        let count = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}
