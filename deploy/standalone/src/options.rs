//! Command-line options of `assay`.

use std::{net::SocketAddr, path::PathBuf};

use assay_execution::LeaseSettings;
use assay_gateway::EdgeConfig;
use assay_notification::WebhookConfig;
use assay_runtime::telemetry::LogFormat;
use clap::Parser;
use secrecy::SecretString;
use url::Url;

use crate::command::Command;

/// Test management: projects, test cases, executions and reports.
///
/// Runs all of Assay in one process. Starts private PostgreSQL and NATS servers unless URLs of
/// others are given. Every environment variable `X` can also be read from a file, named by
/// `X_FILE`.
#[derive(Parser)]
#[command(name = "assay", version)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Address on which `/api` and `/docs` are served
    #[arg(long, env = "ASSAY_HTTP_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) http_listen: SocketAddr,
    /// Data directory: databases, keys, mails and artifacts
    #[arg(long, env = "ASSAY_DATA_DIR", default_value = "data")]
    pub(crate) data_dir: PathBuf,
    /// PostgreSQL connection URL, such as <postgres://user:password@host/postgres>. Default: a
    /// private server in the data directory
    #[arg(long, env = "ASSAY_DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<SecretString>,
    /// URL of a NATS server with JetStream. Default: a private server in the data directory
    #[arg(long, env = "ASSAY_NATS_URL", hide_env_values = true)]
    pub(crate) nats_url: Option<SecretString>,
    /// Email address of the first administrator. Default: admin@assay.local
    #[arg(long, env = "ASSAY_ADMIN_EMAIL")]
    pub(crate) admin_email: Option<String>,
    /// Password of the first administrator, 12 to 256 characters. Default: generated and printed
    /// once
    #[arg(long, env = "ASSAY_ADMIN_PASSWORD", hide_env_values = true)]
    pub(crate) admin_password: Option<SecretString>,
    /// Encryption keys of stored secrets, as `id:key,id:key` with keys of 32 bytes in base64. The
    /// first one encrypts. Default: one key, generated and kept in the data directory
    #[arg(long, env = "ASSAY_ENCRYPTION_KEYS", hide_env_values = true)]
    pub(crate) encryption_keys: Option<SecretString>,
    /// Public URL of Assay, the base of links in mails, such as <https://assay.example.org>.
    /// Default: the HTTP address
    #[arg(long, env = "ASSAY_PUBLIC_URL")]
    pub(crate) public_url: Option<Url>,
    /// Parent domain of the customers' hosts: users of `acme.<domain>` log in to the customer with
    /// the subdomain `acme`
    #[arg(long, env = "ASSAY_BASE_DOMAIN")]
    pub(crate) base_domain: Option<String>,
    /// URL of the SMTP server for mails, such as <smtps://user:password@host>. Default: mails are
    /// written to files
    #[arg(long, env = "ASSAY_SMTP_URL", hide_env_values = true)]
    pub(crate) smtp_url: Option<SecretString>,
    /// Sender of mails, such as `Assay <assay@example.org>`
    #[arg(long, env = "ASSAY_MAIL_FROM")]
    pub(crate) mail_from: Option<String>,
    /// Directory for mails without an SMTP server. Default: `mail` in the data directory
    #[arg(long, env = "ASSAY_MAIL_DIR")]
    pub(crate) mail_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) edge: EdgeConfig,
    /// Storage of artifacts: a directory, or a bucket as `s3://bucket/folder`. Default: `artifacts`
    /// in the data directory
    #[arg(long, env = "ASSAY_ARTIFACTS")]
    pub(crate) artifacts: Option<String>,
    /// URL of an S3-compatible service, such as <https://minio.example.org>. Default: AWS
    #[arg(long, env = "ASSAY_S3_ENDPOINT")]
    pub(crate) s3_endpoint: Option<Url>,
    /// Region of the S3 bucket
    #[arg(long, env = "ASSAY_S3_REGION", default_value = "us-east-1")]
    pub(crate) s3_region: String,
    /// Id of the S3 access key. Default: the AWS credentials of the machine
    #[arg(long, env = "ASSAY_S3_ACCESS_KEY_ID", requires = "s3_secret_access_key")]
    pub(crate) s3_access_key_id: Option<String>,
    /// Secret of the S3 access key
    #[arg(long, env = "ASSAY_S3_SECRET_ACCESS_KEY", hide_env_values = true)]
    pub(crate) s3_secret_access_key: Option<SecretString>,
    #[command(flatten)]
    pub(crate) leases: LeaseSettings,
    /// Retention of notifications in days
    #[arg(
        long,
        env = "ASSAY_NOTIFICATION_RETENTION_DAYS",
        default_value_t = 365,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) notification_retention_days: u32,
    #[command(flatten)]
    pub(crate) webhooks: WebhookConfig,
    /// Log filter as tracing directives, such as `info` or `warn,assay_catalog=debug`
    #[arg(long, env = "ASSAY_LOG", default_value = "warn")]
    pub(crate) log: String,
    /// Format of log lines
    #[arg(long, env = "ASSAY_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// Address on which `/livez`, `/readyz` and `/metrics` are served. Default: not served
    #[arg(long, env = "ASSAY_ADMIN_LISTEN")]
    pub(crate) admin_listen: Option<SocketAddr>,
    /// URL of an OTLP collector that receives traces over gRPC. Default: no traces are sent
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp_endpoint: Option<String>,
}
