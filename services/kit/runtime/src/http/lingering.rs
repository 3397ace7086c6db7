//! Connections to clients that read late, or not at all.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use super::{UNTIL_READ, opening::Opening};

/// How long a client may take to read the end of an answer when its connection is closed.
const UNTIL_CLOSED: Duration = Duration::from_secs(5);

/// A connection that ends when its client says nothing at first, or reads nothing for long, and is closed when the client has
/// closed it as well. What the client still sends then, such as a body that nobody wants, is read and
/// forgotten: the system would answer it with a reset, and drop what of the answer is still on its
/// way (RFC 9112, 9.6).
pub(super) struct Lingering {
    stream: TcpStream,
    /// The beginning of what the client sends, until its protocol is known.
    opening: Option<Opening>,
    /// When the client has to have read something, if it is waited for.
    until_read: Option<Pin<Box<Sleep>>>,
    /// When the client has to have closed the connection, if it is being closed.
    until_closed: Option<Pin<Box<Sleep>>>,
}

impl Lingering {
    /// The client has `patience` to show which protocol it speaks.
    pub(super) fn new(stream: TcpStream, patience: Duration) -> Self {
        let opening = Some(Opening::within(patience));
        Self { stream, opening, until_read: None, until_closed: None }
    }

    /// Gives up when nothing could be written for too long.
    fn in_time(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.until_read = None;
            return written;
        }
        let until_read = self.until_read.get_or_insert_with(|| Box::pin(sleep(UNTIL_READ)));
        until_read.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, opening, .. } = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(stream).poll_read(cx, buffer);
        let Some(waiting) = opening else { return read };
        if read.is_pending() {
            return waiting.poll_late(cx).map(Err);
        }
        if waiting.is_over(&buffer.filled()[before..]) {
            *opening = None;
        }
        read
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.in_time(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.in_time(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, until_closed, .. } = self.get_mut();
        if until_closed.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let until_closed = until_closed.get_or_insert_with(|| Box::pin(sleep(UNTIL_CLOSED)));
        let mut forgotten = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut forgotten);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return until_closed.as_mut().poll(cx).map(Ok),
            }
        }
    }
}
