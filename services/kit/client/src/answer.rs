//! Responses, whose bodies are read with limits.

use std::{
    io::{self, Read},
    time::Duration,
};

use assay_weight::Weight;
use bytes::{Buf, Bytes};
use reqwest::{Response, StatusCode, header::HeaderName};
use serde::de::DeserializeOwned;
use tokio::{runtime::Handle, time::timeout};

use crate::ClientError;

/// Maximum time between two parts of a body. The whole body has the timeout of its request.
const STALL: Duration = Duration::from_mins(1);

/// Maximum weight of the values of a body that is parsed as a whole, in bytes. It can be many times that of the text:
/// `{}` stands for a record.
const HEAVIEST: usize = 256 << 20;

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

    /// Parses the body, as [`parse_json`] does.
    pub async fn json<T: DeserializeOwned>(self, limit: u64) -> Result<T, ClientError> {
        parse_json(&self.bytes(limit).await?)
    }

    /// Returns a reader of the body for a thread that may block.
    pub fn reader(self, limit: u64) -> BodyReader {
        BodyReader { answer: self, limit, rest: Bytes::new(), handle: Handle::current() }
    }
}

/// Parses a body. Fails if its values would take too much memory.
pub fn parse_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, ClientError> {
    if Weight::of(json).bytes() > HEAVIEST {
        return Err(ClientError::TooManyValues);
    }
    serde_json::from_slice(json).map_err(ClientError::Malformed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_short_for_what_it_stands_for_is_not_parsed() {
        let parse = |records: usize| {
            let body = format!("[{}{{}}]", "{},".repeat(records));
            parse_json::<Vec<serde_json::Value>>(body.as_bytes())
        };
        assert_eq!(parse(9).unwrap().len(), 10);
        let error = parse(1 << 20).unwrap_err();
        assert!(matches!(error, ClientError::TooManyValues) && error.is_permanent(), "{error}");
    }
}
