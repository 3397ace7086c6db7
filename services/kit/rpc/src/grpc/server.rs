//! gRPC servers.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
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
    incoming::{strip_untrusted_headers, with_tls},
    measurement::{method_label, record},
};
use assay_runtime::{Runtime, SHUTDOWN_DELAY, telemetry::request_id_in, trace};

/// Maximum number of concurrent calls on one connection. Most calls only wait for work.
const MOST_CALLS: u32 = 10_000;

/// Serves gRPC methods together with the health service, and reflection if it is enabled. Returns
/// the address. Calls are rejected until the program is ready. With TLS, callers need a
/// certificate.
///
/// `app` is a router of tonic services that includes its authorization.
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
    let mut app = app.layer(from_fn_with_state(runtime.clone(), receive));
    if let Some(tls) = runtime.tls() {
        app = app.layer(from_fn_with_state(tls.clone(), strip_untrusted_headers));
    }
    let app = Routes::from(app).add_service(health_service).prepare();
    let registration = runtime.process().serve(address, app.clone().into_axum_router());

    let server = Server::builder()
        .timeout(LONGEST_CALL)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MOST_CALLS)
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .add_routes(app)
        .add_optional_service(reflection);
    let (stopping, tls) = (runtime.stopping(), runtime.tls().cloned());
    let program = runtime.clone();
    runtime.spawn("grpc server", async move {
        while !program.stopping().is_cancelled() {
            if program.waits_for().is_empty() {
                health.set_service_status("", ServingStatus::Serving).await;
                program.not_ready().await;
            }
            health.set_service_status("", ServingStatus::NotServing).await;
            program.ready().await;
        }
        // Ends the streams of watchers, which would keep the server from stopping.
        health.clear_service_status("").await;
        drop(registration);
        Ok(())
    });
    runtime.spawn("grpc server", async move {
        // tonic sets no options on connections that it is given. Without this one, the end of every
        // list would be delayed by about 40 ms, until the peer acknowledges its start.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let stop = async move {
            stopping.cancelled().await;
            sleep(SHUTDOWN_DELAY).await;
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

/// Records one span and one measurement for each call, in the trace of its caller. Rejects calls
/// until the program is ready.
async fn receive(State(runtime): State<Runtime>, request: Request, next: Next) -> Response {
    let method = method_label(request.uri().path());
    let span = tracing::info_span!(
        // Not a child of the task that serves the connection.
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
    let missing = runtime.waits_for();
    let response = if missing.is_empty() {
        next.run(request).instrument(span).await
    } else {
        not_ready(&runtime, &missing)
    };
    // The code of calls that fail before their response begins. Later failures of streams are not
    // recorded.
    let code = Status::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code());
    record("rpc_server_call_duration_seconds", method, code, started.elapsed());
    response
}

fn not_ready(runtime: &Runtime, missing: &[&str]) -> Response {
    let text = format!("{} is not ready and waits for: {}", runtime.name(), missing.join(", "));
    Status::unavailable(text).into_http::<axum::body::Body>().into_response()
}
