//! An HTTP server that slow or silent clients cannot hold.

mod answers;
mod connections;
mod lingering;
mod opening;

use std::{net::SocketAddr, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{Request, body::Incoming};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use rustix::net::sockopt;
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tower::ServiceExt;

pub use self::connections::{Connections, network};
use self::{answers::Answers, connections::Permit, lingering::Lingering};
use crate::{Runtime, lifecycle::NOTICE};

/// How long a client may take to send the head of a request, and a connection may idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a client may read nothing of what waits for it.
const UNTIL_READ: Duration = Duration::from_secs(30);

/// Maximum number of concurrent requests on one HTTP/2 connection.
const STREAMS: u32 = 100;

/// Maximum size of what is kept for a client that is slow to take one answer over HTTP/2, in bytes.
const SENT_AHEAD: usize = 64 << 10;

/// How long open requests may take to end when the program stops.
const DRAIN: Duration = Duration::from_secs(20);

/// TCP keepalive: idle time, interval and number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);

/// Serves `app`. Handlers find the address of the peer in `ConnectInfo<SocketAddr>`. Connections
/// that are not admitted are closed at once.
pub fn serve(
    runtime: &Runtime,
    listener: TcpListener,
    app: Router,
    admitted: Connections,
) -> anyhow::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let (runtime, stopping) = (runtime.clone(), runtime.stopping());
    let this = runtime.clone();
    let accept = move |connections: &GracefulShutdown, stream, peer: SocketAddr| {
        if let Some(permit) = admitted.admit(peer.ip()) {
            begin(&this, connections, stream, peer, app.clone(), permit);
        }
    };
    runtime.spawn("http server", async move {
        let connections = GracefulShutdown::new();
        while let Some(accepted) = stopping.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => accept(&connections, stream, peer),
                Err(error) => {
                    // Out of file descriptors, most likely; others have to be closed first.
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
        // A connection that nobody has accepted would be reset, though it looks open to its client.
        let listener = listener.into_std()?;
        while let Ok((stream, peer)) = listener.accept() {
            stream.set_nonblocking(true)?;
            accept(&connections, TcpStream::from_std(stream)?, peer);
        }
        drop(listener);
        sleep(NOTICE).await;
        if timeout(DRAIN, connections.shutdown()).await.is_err() {
            tracing::warn!("requests were cut off: they did not end in time");
        }
        Ok(())
    });
    Ok(address)
}

fn begin(
    runtime: &Runtime,
    connections: &GracefulShutdown,
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
    permit: Permit,
) {
    let _ = stream.set_nodelay(true);
    let _ = keep_alive(&stream);
    let answers = Answers::default();
    let watched = answers.clone();
    let service = app.map_request(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    });
    let service = service.map_response(move |answer| watched.watch(answer));
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    server
        .http2()
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(SENT_AHEAD)
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(HEAD_TIMEOUT);
    let stream = TokioIo::new(Lingering::new(stream, HEAD_TIMEOUT));
    let connection = server.serve_connection(stream, TowerToHyperService::new(service));
    let connection = connections.watch(connection.into_owned());
    runtime.spawn("http connection", async move {
        tokio::select! {
            ended = connection => if let Err(error) = ended {
                tracing::debug!(error = &*error, "connection ended early");
            },
            () = answers.stuck() => tracing::debug!("the client took nothing of an answer"),
        }
        drop(permit);
        Ok(())
    });
}

/// Has the system end the connection when the client is not there any more.
fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    let (after, every, times) = KEEPALIVE;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, after)?;
    sockopt::set_tcp_keepintvl(stream, every)?;
    sockopt::set_tcp_keepcnt(stream, times)
}
