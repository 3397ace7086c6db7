//! TCP connections of clients that may be slow or silent.

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

use super::{beginning::Beginning, timeouts::Timeouts};

/// Maximum time until a client has closed its end of a connection that the server closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that fails if its client does not send a first request, or reads nothing for too long.
///
/// The connection lingers when the server closes it: until the client has closed it too, further
/// data such as the rest of a body is read and discarded. Otherwise the system would reset the
/// connection, and the client might lose the end of the response (RFC 9112, 9.6).
pub(super) struct ClientStream {
    stream: TcpStream,
    /// The first bytes of the client, until they are complete.
    beginning: Option<Beginning>,
    read_timeout: Duration,
    /// Deadline of the client to read something, while a write is pending.
    read_deadline: Option<Pin<Box<Sleep>>>,
    /// Deadline of the client to close the connection, while the server closes it.
    close_deadline: Option<Pin<Box<Sleep>>>,
}

impl ClientStream {
    pub(super) fn new(stream: TcpStream, timeouts: Timeouts) -> Self {
        Self {
            stream,
            beginning: Some(Beginning::within(timeouts.first)),
            read_timeout: timeouts.read,
            read_deadline: None,
            close_deadline: None,
        }
    }

    /// Fails if nothing could be written for too long.
    fn within_deadline(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.read_deadline = None;
            return written;
        }
        let deadline = self.read_deadline.get_or_insert_with(|| Box::pin(sleep(self.read_timeout)));
        deadline.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, beginning, .. } = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(stream).poll_read(cx, buffer);
        let Some(expected) = beginning else { return read };
        if read.is_pending() {
            return expected.poll_timeout(cx).map(Err);
        }
        if expected.is_complete(&buffer.filled()[before..]) {
            *beginning = None;
        }
        read
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.within_deadline(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.within_deadline(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, close_deadline, .. } = self.get_mut();
        if close_deadline.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let close_deadline = close_deadline.get_or_insert_with(|| Box::pin(sleep(CLOSE_TIMEOUT)));
        let mut discarded = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut discarded);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return close_deadline.as_mut().poll(cx).map(Ok),
            }
        }
    }
}
