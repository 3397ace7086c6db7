//! TLS connections of a gRPC server.

use std::io;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use futures::{Stream, StreamExt as _};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming, TlsConnectInfo};

use assay_runtime::{Tls, telemetry::REQUEST_ID};

/// Header with the address of the client on whose behalf a call is made.
pub const CLIENT_ADDRESS: &str = "x-client-address";

/// Maximum number of concurrent handshakes.
const HANDSHAKES: usize = 1024;

/// Performs the handshakes of connections concurrently. Connections whose handshake fails are
/// closed.
pub(super) fn with_tls(
    incoming: TcpIncoming,
    tls: Tls,
) -> impl Stream<Item = io::Result<TlsStream<TcpStream>>> {
    let accepted = incoming.map(move |accepted| {
        let tls = tls.clone();
        async move {
            let done = tls.accept(accepted?).await;
            Ok::<_, io::Error>(done.inspect_err(|error| {
                tracing::info!(%error, "rejected a connection without a valid certificate");
            }))
        }
    });
    accepted.buffer_unordered(HANDSHAKES).filter_map(async |accepted| match accepted {
        Ok(connection) => connection.ok().map(Ok),
        Err(error) => Some(Err(error)),
    })
}

/// Removes forwarded headers from calls of programs that are not trusted to set them.
pub(super) async fn strip_untrusted_headers(
    State(tls): State<Tls>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<TlsConnectInfo<TcpConnectInfo>>();
    let chain = peer.and_then(TlsConnectInfo::peer_certs);
    let certificate = chain.as_deref().and_then(|chain| chain.first());
    if !certificate.is_some_and(|certificate| tls.may_forward(certificate)) {
        request.headers_mut().remove(CLIENT_ADDRESS);
        request.headers_mut().remove(REQUEST_ID);
    }
    next.run(request).await
}
