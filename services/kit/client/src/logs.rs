//! Logs of programs that run beside Assay. They contain texts of others, and CI systems read them.

use std::io::{self, IsTerminal, Write, stderr};

use assay_program::{LogConfig, LogFormat};
use tracing_subscriber::{Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::foreign::harmless;

/// Writes the log to the standard error output, in which each event is one harmless line. Fails if the
/// log level is not valid.
pub fn install_logs(config: &LogConfig) -> anyhow::Result<()> {
    let is_terminal = stderr().is_terminal();
    let lines = match config.log_format {
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .with_writer(|| Lines { has_colours: false })
            .boxed(),
        LogFormat::Text => fmt::layer()
            .with_ansi(is_terminal)
            .with_target(false)
            .with_writer(move || Lines { has_colours: is_terminal })
            .boxed(),
    };
    Ok(tracing_subscriber::registry().with(lines.with_filter(config.filter()?)).try_init()?)
}

/// Writes events, each of them in one call.
struct Lines {
    /// Whether the line has sequences for colours. Those in its texts are escaped already.
    has_colours: bool,
}

impl Write for Lines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let parts = text.trim_end_matches('\n').split('\u{1b}');
        let line = if self.has_colours {
            parts.map(|part| harmless(part, usize::MAX)).collect::<Vec<_>>().join("\u{1b}")
        } else {
            harmless(text.trim_end_matches('\n'), usize::MAX)
        };
        stderr().write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        stderr().flush()
    }
}
