//! The beginning of a connection, until it is known which protocol it speaks.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

/// The preface of HTTP/2 (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Waits for a client to send what no HTTP/2 client begins with, or the whole preface. From then on
/// the timers of the protocols count; hyper-util has none for what comes before.
pub(super) struct Opening {
    until: Pin<Box<Sleep>>,
    /// Number of bytes of the preface that have arrived.
    matched: usize,
}

impl Opening {
    pub(super) fn within(patience: Duration) -> Self {
        Self { until: Box::pin(sleep(patience)), matched: 0 }
    }

    /// Returns whether the protocol is known with these further bytes; none mean the end.
    pub(super) fn is_over(&mut self, bytes: &[u8]) -> bool {
        let expected = &PREFACE[self.matched..];
        self.matched += bytes.len();
        bytes.is_empty() || self.matched >= PREFACE.len() || !expected.starts_with(bytes)
    }

    /// The error of a client that has sent too little in time.
    pub(super) fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.until.as_mut().poll(cx).map(|()| io::ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_protocol_is_known_by_its_first_bytes() {
        for (pieces, over) in [
            (&["GET"][..], true),
            (&["P"], false),
            (&["P", "R", "I"], false),
            (&["PR", "OPFIND"], true),
            (&["PRI * HTTP/2.0\r\n\r\n", "SM\r\n\r\n"], true),
            (&["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0"], true),
            (&[""], true),
        ] {
            let mut opening = Opening::within(Duration::from_secs(1));
            let mut known = false;
            for piece in pieces {
                known = opening.is_over(piece.as_bytes());
            }
            assert_eq!(known, over, "{pieces:?}");
        }
    }
}
