//! Settings, logs and signals of all programs of Assay, also of those that run beside it and must be
//! small.

mod logs;
mod settings;

use tokio::signal::unix::{SignalKind, signal};

pub use self::{
    logs::{LogConfig, LogFormat},
    settings::{matches, parse, read},
};

/// Selects the cryptographic library for TLS in this process. Calling it again has no effect.
pub fn install_tls() {
    // It fails only if the library was selected before.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Resolves when the process receives SIGTERM or SIGINT.
pub async fn stop_signal() {
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be received");
    let mut interrupt = signal(SignalKind::interrupt()).expect("signals can be received");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
