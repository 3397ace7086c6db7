//! The administration server: liveness, readiness and metrics.

use std::{net::SocketAddr, time::Duration};

use axum::{Router, http::StatusCode, routing::get};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{net::TcpListener, time::timeout};

use crate::{
    Networks, Runtime,
    http::{self, Connections},
};

/// Maximum time that the check of another program's readiness takes.
const READINESS_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of connections from orchestrators and monitoring.
const CONNECTIONS: usize = 200;

/// Settings of the administration server.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AdminConfig {
    #[command(flatten)]
    pub(crate) address: AdminAddress,
    /// Enable gRPC server reflection
    #[arg(
        long,
        env = "ASSAY_GRPC_REFLECTION",
        default_value_t = false,
        action = clap::ArgAction::Set
    )]
    pub(crate) grpc_reflection: bool,
    /// Check whether the program that runs with these options is ready, and exit with an error if
    /// not
    #[arg(long)]
    pub(crate) is_ready: bool,
}

/// Address of the administration server.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct AdminAddress {
    /// Address on which `/livez`, `/readyz` and `/metrics` are served
    #[arg(long, env = "ASSAY_ADMIN_LISTEN", default_value = "127.0.0.1:9090")]
    pub admin_listen: SocketAddr,
}

/// Serves `/livez`, `/readyz` and `/metrics`, and returns the address.
pub async fn serve_admin(
    runtime: &Runtime,
    address: SocketAddr,
    metrics: PrometheusHandle,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let readiness = runtime.clone();
    let app = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(|| async move { ready(&readiness) }))
        .route("/metrics", get(|| async move { metrics.render() }));
    http::serve(runtime, listener, app, Connections::new(CONNECTIONS, Networks::default()))
}

/// Fails if the program with this administration address is not ready; the error lists what it
/// waits for.
pub(crate) async fn check_readiness(address: SocketAddr) -> anyhow::Result<()> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let url = format!("http://{address}/readyz").parse()?;
    let answer = timeout(READINESS_TIMEOUT, client.get(url)).await??;
    if answer.status() == StatusCode::OK {
        return Ok(());
    }
    let text = answer.into_body().collect().await?.to_bytes();
    anyhow::bail!("{}", String::from_utf8_lossy(&text))
}

fn ready(runtime: &Runtime) -> (StatusCode, String) {
    if runtime.is_ready() {
        return (StatusCode::OK, "ok".to_owned());
    }
    let missing = runtime.waits_for();
    let text = if missing.is_empty() {
        "stopping".to_owned()
    } else {
        format!("waiting for: {}", missing.join(", "))
    };
    (StatusCode::SERVICE_UNAVAILABLE, text)
}
