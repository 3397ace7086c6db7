//! What `assay` is told.

use std::{net::SocketAddr, path::PathBuf};

use assay_execution::LeaseSettings;
use assay_gateway::EdgeConfig;
use assay_notification::WebhookConfig;
use assay_runtime::telemetry::LogFormat;
use clap::Parser;
use secrecy::SecretString;
use url::Url;

use crate::command::Command;

/// Test management: projects, test cases, executions, reports.
///
/// Runs all of Assay in one process, with a PostgreSQL and a NATS server of its own unless others
/// are named. Every variable `X` can also be given by a file, named in `X_FILE`.
#[derive(Parser)]
#[command(name = "assay", version)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Where the interface is served: `/api` and `/docs`
    #[arg(long, env = "ASSAY_HTTP_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) http_listen: SocketAddr,
    /// The directory of everything that outlives a run
    #[arg(long, env = "ASSAY_DATA_DIR", default_value = "data")]
    pub(crate) data_dir: PathBuf,
    /// A PostgreSQL server to use, as <postgres://user:password@host/postgres>; by default one is
    /// started
    #[arg(long, env = "ASSAY_DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<SecretString>,
    /// A NATS server with JetStream to use; by default one is started
    #[arg(long, env = "ASSAY_NATS_URL", hide_env_values = true)]
    pub(crate) nats_url: Option<SecretString>,
    /// The email address of the first administrator
    #[arg(long, env = "ASSAY_ADMIN_EMAIL")]
    pub(crate) admin_email: Option<String>,
    /// The password of the first administrator; by default one is made, and printed once
    #[arg(long, env = "ASSAY_ADMIN_PASSWORD", hide_env_values = true)]
    pub(crate) admin_password: Option<SecretString>,
    /// The keys that secrets are stored under, as `id:key,id:key` with keys of 32 bytes in base64;
    /// by default one is made, and kept in the data directory
    #[arg(long, env = "ASSAY_ENCRYPTION_KEYS", hide_env_values = true)]
    pub(crate) encryption_keys: Option<SecretString>,
    /// Where users reach Assay, such as <https://assay.example.org>: what the links in mails begin
    /// with; by default where it is served
    #[arg(long, env = "ASSAY_PUBLIC_URL")]
    pub(crate) public_url: Option<Url>,
    /// The domain that the customers' hosts are in: users of `acme.<domain>` log in to the customer
    /// with the subdomain `acme`
    #[arg(long, env = "ASSAY_BASE_DOMAIN")]
    pub(crate) base_domain: Option<String>,
    /// The SMTP server that mails are sent by, as <smtps://user:password@host>; without one they are
    /// written to files
    #[arg(long, env = "ASSAY_SMTP_URL", hide_env_values = true)]
    pub(crate) smtp_url: Option<SecretString>,
    /// Who mails are from, as `Assay <assay@example.org>`
    #[arg(long, env = "ASSAY_MAIL_FROM")]
    pub(crate) mail_from: Option<String>,
    /// Where mails are written to without an SMTP server; by default `mail` in the data directory
    #[arg(long, env = "ASSAY_MAIL_DIR")]
    pub(crate) mail_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) edge: EdgeConfig,
    /// Where artifacts are kept: a folder, or a bucket as `s3://bucket/folder`; by default
    /// `artifacts` in the data directory
    #[arg(long, env = "ASSAY_ARTIFACTS")]
    pub(crate) artifacts: Option<String>,
    /// The address of an S3-compatible service, such as <https://minio.example.org>; by default AWS
    #[arg(long, env = "ASSAY_S3_ENDPOINT")]
    pub(crate) s3_endpoint: Option<Url>,
    /// The region of the bucket
    #[arg(long, env = "ASSAY_S3_REGION", default_value = "us-east-1")]
    pub(crate) s3_region: String,
    /// The access key; by default as AWS grants it to the machine
    #[arg(long, env = "ASSAY_S3_ACCESS_KEY_ID", requires = "s3_secret_access_key")]
    pub(crate) s3_access_key_id: Option<String>,
    /// The secret of the access key
    #[arg(long, env = "ASSAY_S3_SECRET_ACCESS_KEY", hide_env_values = true)]
    pub(crate) s3_secret_access_key: Option<SecretString>,
    #[command(flatten)]
    pub(crate) leases: LeaseSettings,
    /// How many days notifications are kept
    #[arg(
        long,
        env = "ASSAY_NOTIFICATION_RETENTION_DAYS",
        default_value_t = 365,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) notification_retention_days: u32,
    #[command(flatten)]
    pub(crate) webhooks: WebhookConfig,
    /// What is logged, as tracing directives: `info`, or `warn,assay_catalog=debug`
    #[arg(long, env = "ASSAY_LOG", default_value = "warn")]
    pub(crate) log: String,
    /// How log lines are written
    #[arg(long, env = "ASSAY_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// Where `/livez`, `/readyz` and `/metrics` are served; by default nowhere
    #[arg(long, env = "ASSAY_ADMIN_LISTEN")]
    pub(crate) admin_listen: Option<SocketAddr>,
    /// Where traces are sent to by OTLP over gRPC; none are sent without it
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp_endpoint: Option<String>,
}
