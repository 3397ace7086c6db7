//! Command-line options of `assay`.

use assay::{Settings, backends::BackendConfig};
use assay_runtime::{AdminAddress, telemetry::TelemetryConfig};
use clap::{Arg, Parser};

use crate::command::Command;

/// Test management: projects, test cases, executions and reports.
///
/// Runs all of Assay in one process. Starts private PostgreSQL and NATS servers unless URLs of
/// others are given. Every environment variable `X` can also be read from a file, named by
/// `X_FILE`.
#[derive(Parser)]
#[command(name = "assay", version, mut_args(with_own_default))]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) backends: BackendConfig,
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(flatten)]
    pub(crate) telemetry: TelemetryConfig,
    #[command(flatten)]
    pub(crate) admin: Option<AdminAddress>,
}

/// Replaces the default of a setting if it differs from that of the separate programs.
fn with_own_default(setting: Arg) -> Arg {
    match setting.get_id().as_str() {
        "nats_url" => optional(setting, "a private server in the data directory"),
        "encryption_keys" => optional(setting, "one key, generated and kept in the data directory"),
        "public_url" => optional(setting, "the HTTP address"),
        "mail_dir" => optional(setting, "`mail` in the data directory"),
        "artifacts" => optional(setting, "`artifacts` in the data directory"),
        "log" => setting.default_value("warn"),
        "log_format" => setting.default_value("text"),
        "admin_listen" => optional(setting, "not served"),
        _ => setting,
    }
}

/// Makes a setting optional. Its help describes the default.
fn optional(setting: Arg, default: &str) -> Arg {
    let help = setting.get_help().map(ToString::to_string).unwrap_or_default();
    setting.required(false).default_value(None::<&str>).help(format!("{help}. Default: {default}"))
}
