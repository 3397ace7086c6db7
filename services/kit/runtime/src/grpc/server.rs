//! Serves gRPC methods.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use assay_proto::Needs;
use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use tokio::{net::TcpListener, time::sleep};
use tonic::{
    Code, Status,
    service::Routes,
    transport::{Server, server::TcpIncoming},
};
use tonic_health::{ServingStatus, server::health_reporter};
use tracing::Instrument;

use super::{
    CONNECTION_WINDOW, LONGEST_CALL, STREAM_WINDOW,
    incoming::{distrust, with_tls},
};
use crate::{Runtime, lifecycle::NOTICE, telemetry::request_id_in, trace};

/// How many calls a connection carries at once. Most of them only wait, for work to be done.
const MOST_CALLS: u32 = 10_000;

/// Serves gRPC methods, beside health, and reflection if it is switched on. Calls before the program
/// is ready are rejected.
///
/// With TLS, callers have to prove themselves, too.
///
/// `app` is a router of tonic services, already behind its authorization.
pub fn serve(
    runtime: &Runtime,
    listener: TcpListener,
    app: Router,
    descriptors: &'static [u8],
) -> anyhow::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let (mut health, health_service) = health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(descriptors)
        .build_v1()?;
    let reflection = Some(reflection).filter(|_| runtime.reflects());
    let mut app = app
        .layer(from_fn_with_state(runtime.clone(), refuse_until_ready))
        .layer(from_fn(observe_call));
    if let Some(tls) = runtime.tls() {
        app = app.layer(from_fn_with_state(tls.clone(), distrust));
    }

    let server = Server::builder()
        .timeout(LONGEST_CALL)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MOST_CALLS)
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .add_routes(Routes::from(app))
        .add_service(health_service)
        .add_optional_service(reflection);
    let (stopping, tls) = (runtime.stopping(), runtime.tls().cloned());
    let told = runtime.clone();
    runtime.spawn("grpc server", async move {
        if !told.is_ready() {
            health.set_service_status("", ServingStatus::NotServing).await;
            told.ready().await;
            health.set_service_status("", ServingStatus::Serving).await;
        }
        told.stopping().cancelled().await;
        health.set_service_status("", ServingStatus::NotServing).await;
        // Who watches would keep the server from ending.
        health.clear_service_status("").await;
        Ok(())
    });
    runtime.spawn("grpc server", async move {
        // Of a server that is given its connections, tonic sets no options; without this one, the
        // end of every list would wait for the peer to acknowledge its beginning, some 40 ms.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let stop = async move {
            stopping.cancelled().await;
            sleep(NOTICE).await;
        };
        match tls {
            Some(tls) => {
                let incoming = Box::pin(with_tls(incoming, tls));
                server.serve_with_incoming_shutdown(incoming, stop).await?;
            }
            None => server.serve_with_incoming_shutdown(incoming, stop).await?,
        }
        Ok(())
    });
    Ok(address)
}

async fn refuse_until_ready(
    State(runtime): State<Runtime>,
    request: Request,
    next: Next,
) -> Response {
    let missing = runtime.waits_for();
    if missing.is_empty() {
        return next.run(request).await;
    }
    let text = format!("{} is starting: it waits for its {}", runtime.name(), missing.join(", "));
    Status::unavailable(text).into_http::<axum::body::Body>().into_response()
}

/// One span and one measurement for each call, in the trace of its caller.
async fn observe_call(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // What is not in a contract is made up by the caller, and would be a time series of its own.
    let known = Needs::of(path).map(|_| path.trim_start_matches('/').to_owned());
    let method = path.trim_start_matches('/').to_owned();
    let span = tracing::info_span!(
        // A call is no part of the task that serves its connection.
        parent: None,
        "rpc",
        otel.name = method,
        otel.kind = "server",
        rpc.system.name = "grpc",
        rpc.method = method,
        request.id = request_id_in(request.headers()),
    );
    trace::follow(&span, request.headers());
    let started = Instant::now();
    let response = next.run(request).instrument(span).await;
    // Of a call that has failed before it answered anything; the end of a stream is not waited for.
    let code = Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code());
    let labels =
        [("method", known.unwrap_or_else(|| "other".to_owned())), ("code", format!("{code:?}"))];
    let seconds = started.elapsed().as_secs_f64();
    metrics::histogram!("rpc_server_call_duration_seconds", &labels).record(seconds);
    response
}
