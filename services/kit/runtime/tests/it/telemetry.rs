//! Telemetry of a program, and its cost.

use anyhow::Result;
use assay_runtime::telemetry::{LogConfig, LogFormat, Telemetry, TelemetryConfig};
use tracing::{info_span, level_filters::LevelFilter, trace_span};

/// HTTP/2 alone has a dozen spans for each frame.
#[tokio::test]
async fn spans_of_libraries_that_nobody_sees_are_not_created() -> Result<()> {
    let logs = LogConfig { log: "warn".to_owned(), log_format: LogFormat::Json };
    let _telemetry = Telemetry::install("test", &TelemetryConfig { logs, otlp_endpoint: None })?;

    assert_eq!(LevelFilter::current(), LevelFilter::INFO);
    assert!(trace_span!(target: "h2::codec", "FramedRead::next").is_disabled());
    assert!(!info_span!("request").is_disabled(), "it carries the ids of the request");
    Ok(())
}

#[tokio::test]
async fn a_collector_may_require_tls() -> Result<()> {
    let logs = LogConfig { log: "warn".to_owned(), log_format: LogFormat::Json };
    let otlp_endpoint = Some("https://collector.example.org:4317".to_owned());
    Telemetry::install("test", &TelemetryConfig { logs, otlp_endpoint })?;
    Ok(())
}
