//! The beginning of a new connection.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

/// The connection preface of HTTP/2 (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first bytes of a client: the preface of HTTP/2, or the head of the first request of HTTP/1.
/// From then on the timeouts of the protocol apply. Those of HTTP/1 are as long as a connection may be
/// unused between two requests.
pub(super) struct Beginning {
    deadline: Pin<Box<Sleep>>,
    /// Number of bytes of the preface that have arrived. `None` once the bytes differ from it.
    matched: Option<usize>,
    /// Whether the last byte ended a line of a head.
    is_line_start: bool,
}

impl Beginning {
    pub(super) fn within(timeout: Duration) -> Self {
        Self { deadline: Box::pin(sleep(timeout)), matched: Some(0), is_line_start: false }
    }

    /// Returns whether the beginning is complete after these further bytes. No bytes mean the end of
    /// the connection.
    pub(super) fn is_complete(&mut self, bytes: &[u8]) -> bool {
        if let Some(matched) = self.matched {
            let expected = &PREFACE[matched..];
            let end = matched + bytes.len();
            if bytes.is_empty() || bytes.starts_with(expected) {
                return true;
            }
            self.matched = expected.starts_with(bytes).then_some(end);
            if self.matched.is_some() {
                return false;
            }
        }
        bytes.is_empty() || bytes.iter().any(|byte| self.ends_head(*byte))
    }

    /// Whether a byte ends the head: an empty line does, with or without a carriage return.
    fn ends_head(&mut self, byte: u8) -> bool {
        match byte {
            b'\n' if self.is_line_start => true,
            b'\r' => false,
            _ => {
                self.is_line_start = byte == b'\n';
                false
            }
        }
    }

    /// Resolves to an error when the client has not sent enough in time.
    pub(super) fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.deadline.as_mut().poll(cx).map(|()| io::ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_beginning_is_the_preface_or_a_head() {
        for (pieces, complete) in [
            (&["GET / HTTP/1.1\r\nHost: a\r\n\r\n"][..], true),
            (&["GET / HTTP/1.1\r\nHost: a\r\n", "\r", "\n"], true),
            (&["GET / HTTP/1.1\nHost: a\n\n{}"], true),
            (&["GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "], false),
            (&["P"], false),
            (&["P", "R", "I"], false),
            (&["PR", "OPFIND / HTTP/1.1\r\n"], false),
            (&["PR", "OPFIND / HTTP/1.1\r\n\r\n"], true),
            (&["PRI * HTTP/2.0\r\n\r\n", "SM\r\n\r\n"], true),
            (&["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0"], true),
            (&[""], true),
        ] {
            let mut beginning = Beginning::within(Duration::from_secs(1));
            let mut is_complete = false;
            for piece in pieces {
                is_complete = beginning.is_complete(piece.as_bytes());
            }
            assert_eq!(is_complete, complete, "{pieces:?}");
        }
    }
}
