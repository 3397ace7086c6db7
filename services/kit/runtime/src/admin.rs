//! What an orchestrator asks a program: is it alive, is it ready, how is it doing.

use std::net::SocketAddr;

use axum::{Router, http::StatusCode, routing::get};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;

use crate::{Runtime, http};

/// Where a program answers its orchestrator.
#[derive(clap::Args, Clone, Debug)]
pub struct AdminConfig {
    /// Where `/livez`, `/readyz` and `/metrics` are served
    #[arg(long, env = "ASSAY_ADMIN_LISTEN", default_value = "127.0.0.1:9090")]
    pub admin_listen: SocketAddr,
}

/// Serves `/livez`, `/readyz` and `/metrics`.
pub async fn serve_admin(
    runtime: &Runtime,
    config: &AdminConfig,
    metrics: PrometheusHandle,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(config.admin_listen).await?;
    let readiness = runtime.clone();
    let app = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(|| async move { ready(&readiness) }))
        .route("/metrics", get(|| async move { metrics.render() }));
    http::serve(runtime, listener, app)
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
