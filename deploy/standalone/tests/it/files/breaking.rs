//! A proxy whose connections break.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinSet,
};

/// A proxy some of whose connections break.
#[derive(Clone)]
pub(crate) struct Breaking {
    /// Number of connections that are still to break.
    left: Arc<AtomicUsize>,
    /// Number of bytes after which they break.
    after: usize,
}

/// Returns a proxy that breaks this number of connections, each after so many bytes of the client.
pub(crate) fn break_connections(count: usize, after: usize) -> Breaking {
    Breaking { left: Arc::new(AtomicUsize::new(count)), after }
}

impl Breaking {
    /// Returns the number of connections that have not broken yet.
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }

    /// Forwards connections to this address until it is dropped.
    pub(crate) async fn serve(self, listener: TcpListener, address: String) {
        let mut connections = JoinSet::new();
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(&address).await.unwrap();
            let (from_client, mut to_client) = client.into_split();
            let (mut from_server, to_server) = server.into_split();
            let this = self.clone();
            connections.spawn(async move {
                tokio::select! {
                    _ = copy(&mut from_server, &mut to_client) => {}
                    () = this.forward(from_client, to_server) => {}
                }
            });
        }
    }

    /// Forwards the bytes of a client, until the connection breaks or the client has ended it.
    async fn forward(self, mut from_client: OwnedReadHalf, mut to_server: OwnedWriteHalf) {
        let (mut chunk, mut forwarded) = (vec![0; 64 << 10], 0);
        loop {
            let Ok(count @ 1..) = from_client.read(&mut chunk).await else { return };
            if to_server.write_all(&chunk[..count]).await.is_err() {
                return;
            }
            forwarded += count;
            if forwarded >= self.after && self.breaks() {
                return;
            }
        }
    }

    /// Whether one more connection is to break.
    fn breaks(&self) -> bool {
        let one_less = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }
}
