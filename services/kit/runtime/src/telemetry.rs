//! Logs, traces and metrics of a program.

mod descriptions;
mod failures;
mod ids;
mod lines;
mod statements;
pub mod trace;

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use opentelemetry::{global, trace::TracerProvider};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tokio::task::spawn_blocking;
use tonic::transport::ClientTlsConfig;
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterExt, LevelFilter, Targets, filter_fn},
    fmt,
    fmt::format::JsonFields,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

pub use assay_program::{LogConfig, LogFormat};

pub use self::ids::{REQUEST_ID, inject_request_id, request_id_in};
use self::{failures::Failures, ids::Ids, lines::JsonLines};
use crate::{Runtime, lifecycle::TASK};

/// Bounds of histogram buckets in seconds, from a cached read to a large upload.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// Settings of logs and traces.
#[derive(clap::Args, Clone, Debug)]
pub struct TelemetryConfig {
    #[command(flatten)]
    pub logs: LogConfig,
    /// URL of the OTLP collector (gRPC) that receives traces; without it, none are sent
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
}

/// The telemetry of a process. Must be kept until the process ends.
pub struct Telemetry {
    /// The exporter of traces, if they are sent.
    tracer: Option<SdkTracerProvider>,
    metrics: PrometheusHandle,
}

impl Telemetry {
    /// Installs the global collectors of logs, traces and metrics. Must be called in a Tokio
    /// runtime.
    pub fn install(program: &'static str, config: &TelemetryConfig) -> anyhow::Result<Self> {
        global::set_text_map_propagator(TraceContextPropagator::new());
        let endpoint = config.otlp_endpoint.as_deref();
        let tracer = endpoint.map(|endpoint| sending_to(endpoint, program)).transpose()?;
        let lines: Box<dyn Layer<Registry> + Send + Sync> = match config.logs.log_format {
            LogFormat::Json => fmt::layer()
                .fmt_fields(JsonFields::new())
                .event_format(JsonLines::new())
                .with_writer(std::io::stderr)
                .boxed(),
            LogFormat::Text => LogConfig::text(),
        };
        let others = ["h2", "hyper", "tonic", "opentelemetry"];
        let ours = Targets::new()
            .with_default(LevelFilter::INFO)
            .with_targets(others.map(|other| (other, LevelFilter::OFF)));
        let spans = tracer.as_ref().map(|tracer| {
            tracing_opentelemetry::layer()
                .with_tracer(tracer.tracer(program))
                .with_filter(ours.and(filter_fn(|metadata| metadata.name() != TASK)))
        });
        let statements = tracer.as_ref().map(|tracer| statements::layer(tracer.tracer(program)));
        tracing_subscriber::registry()
            .with(lines.with_filter(config.logs.filter()?))
            .with(spans)
            .with(statements)
            .with(
                Ids { traces: tracer.is_none() }.and_then(Failures).with_filter(LevelFilter::INFO),
            )
            .try_init()?;

        let metrics = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?
            .install_recorder()?;
        descriptions::describe();
        failures::describe();
        Ok(Self { tracer, metrics })
    }

    /// Returns a handle that renders the metrics for Prometheus.
    pub fn metrics(&self) -> PrometheusHandle {
        self.metrics.clone()
    }

    /// Drains histograms every five seconds, so that they don't grow between two scrapes.
    ///
    /// It does so on a thread that ends, at which the allocator gives back freed memory. A program at
    /// rest would keep it, as nothing else makes the allocator do so.
    pub fn spawn_upkeep(&self, runtime: &Runtime) {
        let (metrics, stopping) = (self.metrics.clone(), runtime.stopping());
        runtime.spawn("metrics upkeep", async move {
            let mut tick = tokio::time::interval(Duration::from_secs(5));
            while stopping.run_until_cancelled(tick.tick()).await.is_some() {
                let metrics = metrics.clone();
                spawn_blocking(move || metrics.run_upkeep()).await?;
            }
            Ok(())
        });
    }

    /// Sends the remaining traces.
    pub async fn flush(self) {
        let Some(tracer) = self.tracer else { return };
        let shut_down = spawn_blocking(move || tracer.shutdown());
        if let Ok(Err(error)) = shut_down.await {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// Returns an exporter of the traces of a program to an OTLP collector. For an `https` endpoint, it trusts
/// the authorities of the system.
fn sending_to(endpoint: &str, program: &'static str) -> anyhow::Result<SdkTracerProvider> {
    let mut exporter = SpanExporter::builder()
        .with_tonic()
        .with_compression(opentelemetry_otlp::Compression::Gzip)
        .with_endpoint(endpoint);
    if endpoint.starts_with("https://") {
        exporter = exporter.with_tls_config(ClientTlsConfig::new().with_enabled_roots());
    }
    let exporter = exporter.build()?;
    let tracer = SdkTracerProvider::builder()
        .with_resource(Resource::builder().with_service_name(program).build())
        .with_batch_exporter(exporter)
        .build();
    global::set_tracer_provider(tracer.clone());
    Ok(tracer)
}
