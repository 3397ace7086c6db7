//! Logs of a program.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::{
    Layer, filter::Targets, fmt, layer::SubscriberExt, registry::LookupSpan,
    util::SubscriberInitExt,
};

/// Settings of logs.
#[derive(clap::Args, Clone, Debug)]
pub struct LogConfig {
    /// Log level, or levels of modules such as `warn,assay_catalog=debug`
    #[arg(long, env = "ASSAY_LOG", default_value = "info,async_nats=warn")]
    pub log: String,
    /// Format of log lines
    #[arg(long, env = "ASSAY_LOG_FORMAT", default_value = "json")]
    pub log_format: LogFormat,
}

/// Format of log lines.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Readable text.
    Text,
}

/// A part of a program's subscriber of `tracing`.
type BoxedLayer<S> = Box<dyn Layer<S> + Send + Sync>;

impl LogConfig {
    /// Writes the log to the standard error output. Fails if the log level is not valid.
    pub fn install(&self) -> anyhow::Result<()> {
        let lines = match self.log_format {
            LogFormat::Json => fmt::layer()
                .json()
                .flatten_event(true)
                .with_span_list(false)
                .with_writer(stderr)
                .boxed(),
            LogFormat::Text => Self::text(),
        };
        Ok(tracing_subscriber::registry().with(lines.with_filter(self.filter()?)).try_init()?)
    }

    /// Returns the filter of lines. Fails if the log level is not valid.
    pub fn filter(&self) -> anyhow::Result<Targets> {
        Ok(self.log.parse()?)
    }

    /// Returns a layer that writes readable text, in colours on a terminal.
    pub fn text<S: tracing::Subscriber + for<'a> LookupSpan<'a>>() -> BoxedLayer<S> {
        let is_terminal = stderr().is_terminal();
        fmt::layer().with_ansi(is_terminal).with_target(false).with_writer(stderr).boxed()
    }
}
