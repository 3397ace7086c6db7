//! Settings of the service.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use assay_auth::SealConfig;
use assay_database::DatabaseConfig;
use assay_events::NatsConfig;
use assay_runtime::PublicUrl;
use secrecy::SecretString;

/// Settings of the service.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub nats: NatsConfig,
    #[command(flatten)]
    pub seal: SealConfig,
    /// Address and port of the gRPC server
    #[arg(long, env = "ASSAY_GRPC_LISTEN", default_value = "127.0.0.1:50051")]
    pub grpc_listen: SocketAddr,
    #[command(flatten)]
    pub public: PublicUrl,
    /// Whether gateways serve the console; without it, mails link to the interface
    #[arg(long, env = "ASSAY_CONSOLE", default_value_t = true, action = clap::ArgAction::Set)]
    pub console: bool,
    #[command(flatten)]
    pub first_start: FirstStartConfig,
    #[command(flatten)]
    pub login: LoginConfig,
    #[command(flatten)]
    pub audit: AuditConfig,
    #[command(flatten)]
    pub mail: MailConfig,
}

/// Settings of the first start on an empty database.
#[derive(clap::Args, Clone, Debug)]
pub struct FirstStartConfig {
    /// Email address of the first administrator, who is created if the database has no customer;
    /// admin@assay.local by default
    #[arg(long, env = "ASSAY_ADMIN_EMAIL")]
    pub admin_email: Option<String>,
    /// Password of the first administrator, 12 to 256 characters. By default, `assay` generates and
    /// prints one, and `assay-identity` prints a link for choosing one, which works once and expires
    /// after seven days
    #[arg(long, env = "ASSAY_ADMIN_PASSWORD", hide_env_values = true)]
    pub admin_password: Option<SecretString>,
    /// Whether to generate a password if none is configured, instead of a link for choosing one.
    #[arg(skip)]
    pub generates_password: bool,
    /// Name of the first customer, whose administrators manage the other customers
    #[arg(long, env = "ASSAY_OPERATOR_NAME", default_value = "Assay")]
    pub operator_name: String,
}

/// Settings of logins and tokens.
#[derive(clap::Args, Clone, Debug)]
pub struct LoginConfig {
    /// Lifetime of a token, in hours, 1 to 8760
    #[arg(long, env = "ASSAY_TOKEN_LIFETIME_IN_H", default_value = "12", value_parser = hours)]
    pub token_lifetime: Duration,
    /// Lifetime of a session, in hours, 1 to 8760: the time after a login when the user has to log
    /// in again
    #[arg(long, env = "ASSAY_SESSION_LIFETIME_IN_H", default_value = "168", value_parser = hours)]
    pub session_lifetime: Duration,
    /// Parent domain of the hosts of customers: a login at `acme.<domain>` is for the customer with
    /// the subdomain `acme`. By default, customers do not have hosts
    #[arg(long, env = "ASSAY_BASE_DOMAIN")]
    pub base_domain: Option<String>,
    /// Number of failed logins to an account from one address, and ten times as many from all
    /// addresses, after which further logins are limited to one every 30 seconds
    #[arg(
        long,
        env = "ASSAY_LOGIN_FAILURES_PER_ACCOUNT",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub login_failures_per_account: u32,
    /// Number of failed logins from one address (IPv6: one /64 network), after which further logins
    /// are limited to one every 3 seconds
    #[arg(
        long,
        env = "ASSAY_LOGIN_FAILURES_PER_ADDRESS",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub login_failures_per_address: u32,
    /// Number of invitations that a customer sends, after which further ones are limited to one every
    /// 10 seconds. One email address is invited at most 10 times, then once every 5 minutes
    #[arg(
        long,
        env = "ASSAY_INVITATIONS_PER_CUSTOMER",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub invitations_per_customer: u32,
}

/// Settings of the audit log.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct AuditConfig {
    /// Retention of entries of the audit log, in days, 1 to 36500
    #[arg(
        long,
        env = "ASSAY_AUDIT_RETENTION_DAYS",
        default_value_t = 400,
        value_parser = clap::value_parser!(u32).range(1..=36500)
    )]
    pub audit_retention_days: u32,
}

/// Settings of mails.
#[derive(clap::Args, Clone, Debug)]
pub struct MailConfig {
    /// URL of the SMTP server: <smtps://user:password@host:465> for TLS,
    /// <smtp://user:password@host:587?tls=required> for STARTTLS, or <smtp://host:25> without
    /// encryption
    #[arg(long, env = "ASSAY_SMTP_URL", hide_env_values = true)]
    pub smtp_url: Option<SecretString>,
    /// Sender of mails, such as `Assay <assay@example.com>`; required with an SMTP server
    #[arg(long, env = "ASSAY_MAIL_FROM")]
    pub mail_from: Option<String>,
    /// Folder to write mails to, as .eml files, if no SMTP server is configured
    #[arg(long, env = "ASSAY_MAIL_DIR")]
    pub mail_dir: Option<PathBuf>,
    /// Maximum time until the SMTP server has accepted a mail, in seconds, 1 to 3600. Afterwards, the
    /// mail is sent again
    #[arg(
        long,
        env = "ASSAY_MAIL_TIMEOUT_SECONDS",
        default_value_t = 300,
        value_parser = clap::value_parser!(u16).range(1..=3600)
    )]
    pub mail_timeout_seconds: u16,
    /// Maximum number of mails that a replica sends at once, each with a connection of its own, 1 to
    /// 100. A customer has at most a quarter of them, and a quarter is reserved for password resets
    #[arg(
        long,
        env = "ASSAY_MAIL_CONNECTIONS",
        default_value_t = 8,
        value_parser = clap::value_parser!(u16).range(1..=100)
    )]
    pub mail_connections: u16,
}

/// Parses a number of hours.
fn hours(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(hours @ 1..=8760) => Ok(Duration::from_hours(hours)),
        _ => Err("must be a whole number from 1 to 8760".to_owned()),
    }
}
