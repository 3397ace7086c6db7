//! Detection of the protocol of a new connection.

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

/// The first bytes of a client, until they are the whole preface of HTTP/2 or differ from it. From
/// then on the timeouts of the protocol apply; hyper-util has none before that.
pub(super) struct Preface {
    deadline: Pin<Box<Sleep>>,
    /// Number of bytes of the preface that have arrived.
    matched: usize,
}

impl Preface {
    pub(super) fn within(timeout: Duration) -> Self {
        Self { deadline: Box::pin(sleep(timeout)), matched: 0 }
    }

    /// Returns whether the protocol is known after these further bytes. No bytes mean the end of
    /// the connection.
    pub(super) fn is_decided(&mut self, bytes: &[u8]) -> bool {
        let expected = &PREFACE[self.matched..];
        self.matched += bytes.len();
        bytes.is_empty() || self.matched >= PREFACE.len() || !expected.starts_with(bytes)
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
    async fn the_first_bytes_decide_the_protocol() {
        for (pieces, over) in [
            (&["GET"][..], true),
            (&["P"], false),
            (&["P", "R", "I"], false),
            (&["PR", "OPFIND"], true),
            (&["PRI * HTTP/2.0\r\n\r\n", "SM\r\n\r\n"], true),
            (&["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0"], true),
            (&[""], true),
        ] {
            let mut preface = Preface::within(Duration::from_secs(1));
            let mut known = false;
            for piece in pieces {
                known = preface.is_decided(piece.as_bytes());
            }
            assert_eq!(known, over, "{pieces:?}");
        }
    }
}
