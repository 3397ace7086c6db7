//! How the gateway is set up.

use std::net::SocketAddr;

use assay_runtime::{Networks, nats::NatsServers};

/// Where the gateway listens, and which services it stands in front of.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    /// Where the HTTP interface is served
    #[arg(long, env = "ASSAY_HTTP_LISTEN", default_value = "127.0.0.1:8080")]
    pub http_listen: SocketAddr,
    /// The identity service, as <http://host:port>
    #[arg(long, env = "ASSAY_IDENTITY_URL")]
    pub identity_url: String,
    /// The catalog service, as <http://host:port>
    #[arg(long, env = "ASSAY_CATALOG_URL")]
    pub catalog_url: String,
    /// The execution service, as <http://host:port>
    #[arg(long, env = "ASSAY_EXECUTION_URL")]
    pub execution_url: String,
    /// The notification service, as <http://host:port>
    #[arg(long, env = "ASSAY_NOTIFICATION_URL")]
    pub notification_url: String,
    #[command(flatten)]
    pub nats: NatsServers,
    /// The proxies that are believed where a request came from (`X-Forwarded-For`), as addresses or
    /// networks, separated by commas; by default none
    #[arg(long, env = "ASSAY_TRUSTED_PROXIES", default_value = "")]
    pub trusted_proxies: Networks,
}
