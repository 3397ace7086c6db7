//! What the service is told.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use assay_auth::SealConfig;
use assay_events::NatsConfig;
use assay_runtime::DatabaseConfig;
use secrecy::SecretString;
use url::Url;

/// What the service is told.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub nats: NatsConfig,
    #[command(flatten)]
    pub seal: SealConfig,
    /// Where gRPC is served
    #[arg(long, env = "ASSAY_GRPC_LISTEN", default_value = "127.0.0.1:50051")]
    pub grpc_listen: SocketAddr,
    /// The email of the first administrator, who is made when there is no customer yet;
    /// admin@assay.local without it
    #[arg(long, env = "ASSAY_ADMIN_EMAIL")]
    pub admin_email: Option<String>,
    /// The first administrator's password, 12 to 256 characters; without it a link is printed, by
    /// which a password is chosen once, within seven days
    #[arg(long, env = "ASSAY_ADMIN_PASSWORD", hide_env_values = true)]
    pub admin_password: Option<SecretString>,
    /// Whether a password is made, where none is given, instead of a link to choose one.
    #[arg(skip)]
    pub makes_password: bool,
    /// The name of the first customer, whose administrators manage the others
    #[arg(long, env = "ASSAY_OPERATOR_NAME", default_value = "Assay")]
    pub operator_name: String,
    /// How many hours a token is valid
    #[arg(long, env = "ASSAY_TOKEN_LIFETIME_IN_H", default_value = "12", value_parser = hours)]
    pub token_lifetime: Duration,
    /// How many hours after a login a user has to log in again, however often tokens are exchanged
    #[arg(long, env = "ASSAY_SESSION_LIFETIME_IN_H", default_value = "168", value_parser = hours)]
    pub session_lifetime: Duration,
    /// How many days entries of the audit record are kept
    #[arg(
        long,
        env = "ASSAY_AUDIT_RETENTION_DAYS",
        default_value_t = 400,
        value_parser = clap::value_parser!(u32).range(1..=36500)
    )]
    pub audit_retention_days: u32,
    /// Where users reach the service, such as <https://assay.example>; links in mails lead there
    #[arg(long, env = "ASSAY_PUBLIC_URL", value_parser = origin)]
    pub public_url: Url,
    /// The domain that the customers' hosts are in: users of `acme.<domain>` log in to the customer
    /// with the subdomain `acme`
    #[arg(long, env = "ASSAY_BASE_DOMAIN")]
    pub base_domain: Option<String>,
    /// The SMTP server that mails go out by: <smtps://user:password@host:465>, or
    /// <smtp://user:password@host:587?tls=required> for STARTTLS, or <smtp://host:25> in clear
    #[arg(long, env = "ASSAY_SMTP_URL", hide_env_values = true)]
    pub smtp_url: Option<SecretString>,
    /// Who mails are from, such as `Assay <assay@example.com>`
    #[arg(long, env = "ASSAY_MAIL_FROM")]
    pub mail_from: Option<String>,
    /// The folder that mails are written to, as .eml files, where there is no SMTP server
    #[arg(long, env = "ASSAY_MAIL_DIR")]
    pub mail_dir: Option<PathBuf>,
    /// How many logins of an account may fail at once from an address, and ten times as many from all
    /// addresses together; then one more in 30 seconds
    #[arg(
        long,
        env = "ASSAY_LOGIN_FAILURES_PER_ACCOUNT",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub login_failures_per_account: u32,
    /// How many logins from an address, or an IPv6 network, may fail at once; then one more in 3
    /// seconds
    #[arg(
        long,
        env = "ASSAY_LOGIN_FAILURES_PER_ADDRESS",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub login_failures_per_address: u32,
}

/// Reads a number of hours.
fn hours(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(hours @ 1..=8760) => Ok(Duration::from_hours(hours)),
        _ => Err("must be a whole number from 1 to 8760".to_owned()),
    }
}

/// Reads an origin: a scheme and a host, perhaps a port, and nothing else.
fn origin(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let is_origin = url.origin().ascii_serialization() == url.as_str().trim_end_matches('/');
    if matches!(url.scheme(), "http" | "https") && is_origin {
        return Ok(url);
    }
    Err("must be such as https://assay.example or http://localhost:8080".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_url_is_an_origin() {
        for good in ["https://assay.example", "https://assay.example/", "http://localhost:8080"] {
            origin(good).unwrap();
        }
        for wrong in [
            "assay.example",
            "ftp://assay.example",
            "https://assay.example/path",
            "https://assay.example?a",
            "https://user@assay.example",
            "mailto:a@b",
        ] {
            assert!(origin(wrong).is_err(), "{wrong} was taken");
        }
    }
}
