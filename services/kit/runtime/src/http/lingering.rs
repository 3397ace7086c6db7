//! Connections that are closed without losing what was sent last.

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

/// How long a client may take to read the end of an answer when its connection is closed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection that is closed when the client has closed it as well. What the client still sends,
/// such as a body that nobody wants, is read and forgotten: the system would answer it with a reset,
/// and drop what of the answer is still on its way (RFC 9112, 9.6).
pub(super) struct Lingering {
    stream: TcpStream,
    patience: Option<Pin<Box<Sleep>>>,
}

impl Lingering {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, patience: None }
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, patience } = self.get_mut();
        if patience.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let patience = patience.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        let mut forgotten = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut forgotten);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => return patience.as_mut().poll(cx).map(Ok),
            }
        }
    }
}
