//! An HTTP server that slow or silent clients cannot hold.

mod lingering;

use std::{net::SocketAddr, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{Request, body::Incoming};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tower::ServiceExt;

use self::lingering::Lingering;
use crate::{Runtime, lifecycle::NOTICE};

/// How long a client may take to send the head of a request, and a connection may idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long open requests may take to end when the program stops.
const DRAIN: Duration = Duration::from_secs(20);

/// Serves `app`. Handlers find the address of the peer in `ConnectInfo<SocketAddr>`.
pub fn serve(runtime: &Runtime, listener: TcpListener, app: Router) -> anyhow::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let (this, stopping) = (runtime.clone(), runtime.stopping());
    runtime.spawn("http server", async move {
        let connections = GracefulShutdown::new();
        while let Some(accepted) = stopping.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => accept(&this, &connections, stream, peer, app.clone()),
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
            accept(&this, &connections, TcpStream::from_std(stream)?, peer, app.clone());
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

fn accept(
    runtime: &Runtime,
    connections: &GracefulShutdown,
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
) {
    let _ = stream.set_nodelay(true);
    let service = app.map_request(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    });
    let mut server = Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(HEAD_TIMEOUT);
    let stream = TokioIo::new(Lingering::new(stream));
    let connection = server.serve_connection(stream, TowerToHyperService::new(service));
    let connection = connections.watch(connection.into_owned());
    runtime.spawn("http connection", async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = &*error, "connection ended early");
        }
        Ok(())
    });
}
