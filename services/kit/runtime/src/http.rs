//! An HTTP server that bounds how long slow and silent clients occupy a connection.

mod beginning;
mod connections;
mod responses;
mod stream;
mod timeouts;
mod unread;

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use axum::{Router, extract::ConnectInfo};
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
use tower::{Service, service_fn};

use self::{connections::Permit, responses::Responses, stream::ClientStream, unread::Unread};
pub use self::{
    connections::{Connections, network},
    timeouts::Timeouts,
};
use crate::{Runtime, lifecycle::SHUTDOWN_DELAY};

/// Maximum number of concurrent requests on one HTTP/2 connection.
const STREAMS: u32 = 100;

/// Maximum number of bytes of a response that are buffered for a slow client over HTTP/2.
const SEND_BUFFER: usize = 64 << 10;

/// Maximum time until open requests have ended when the program stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// TCP keepalive: idle time, interval and number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);

/// Serves `app`, and returns the address. Handlers find the address of the peer in
/// `ConnectInfo<SocketAddr>`. Connections beyond the limits are closed at once.
pub fn serve(
    runtime: &Runtime,
    listener: TcpListener,
    app: Router,
    limits: Connections,
) -> anyhow::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let (runtime, stopping) = (runtime.clone(), runtime.stopping());
    let this = runtime.clone();
    let accept = move |connections: &GracefulShutdown, stream, peer: SocketAddr| {
        if let Some(permit) = limits.admit(peer.ip()) {
            begin(&this, connections, stream, peer, app.clone(), permit);
        }
    };
    runtime.spawn("http server", async move {
        let connections = GracefulShutdown::new();
        while let Some(accepted) = stopping.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => accept(&connections, stream, peer),
                Err(error) => {
                    // Most likely out of file descriptors, until other connections are closed.
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
        // Connections in the backlog look open to their clients and would be reset.
        let listener = listener.into_std()?;
        while let Ok((stream, peer)) = listener.accept() {
            stream.set_nonblocking(true)?;
            accept(&connections, TcpStream::from_std(stream)?, peer);
        }
        drop(listener);
        sleep(SHUTDOWN_DELAY).await;
        if timeout(DRAIN_TIMEOUT, connections.shutdown()).await.is_err() {
            tracing::warn!("open requests did not end in time and were cut off");
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
    mut app: Router,
    permit: Permit,
) {
    let _ = stream.set_nodelay(true);
    let _ = keep_alive(&stream);
    let timeouts = permit.timeouts();
    let responses = Responses::new(timeouts.read);
    let watched = responses.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (mut request, unread) = Unread::watch(request);
        request.extensions_mut().insert(ConnectInfo(peer));
        let (response, watched) = (app.call(request), watched.clone());
        async move {
            let mut response = response.await?;
            unread.end(&mut response).await;
            Ok::<_, Infallible>(watched.watch(response))
        }
    });
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(timeouts.next);
    server
        .http2()
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(SEND_BUFFER)
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(timeouts.first);
    let stream = TokioIo::new(ClientStream::new(stream, timeouts));
    let connection = server.serve_connection(stream, TowerToHyperService::new(service));
    let connection = connections.watch(connection.into_owned());
    runtime.spawn("http connection", async move {
        tokio::select! {
            ended = connection => if let Err(error) = ended {
                tracing::debug!(error = &*error, "connection ended early");
            },
            () = responses.stuck() => tracing::debug!("the client did not read a response"),
        }
        drop(permit);
        Ok(())
    });
}

/// Enables TCP keepalive, which closes the connection when the client has vanished.
fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    let (after, every, times) = KEEPALIVE;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, after)?;
    sockopt::set_tcp_keepintvl(stream, every)?;
    sockopt::set_tcp_keepcnt(stream, times)
}
