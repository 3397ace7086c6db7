//! How the gateway is set up.

use std::net::SocketAddr;

use assay_runtime::{Networks, nats::NatsServers};

use crate::cors::Origin;

/// Where the gateway listens, and which services it stands in front of.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    /// Where the HTTP interface is served
    #[arg(long, env = "ASSAY_HTTP_LISTEN", default_value = "127.0.0.1:8080")]
    pub http_listen: SocketAddr,
    /// The identity service, as <http://host:port>. Here and below: of a host with several addresses,
    /// all are called that serve
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
    #[command(flatten)]
    pub edge: EdgeConfig,
}

/// Whom the gateway lets in, and how much of them.
#[derive(clap::Args, Clone, Debug)]
pub struct EdgeConfig {
    /// The proxies that are believed where a request came from (`X-Forwarded-For`), as addresses or
    /// networks, separated by commas; by default none
    #[arg(long, env = "ASSAY_TRUSTED_PROXIES", default_value = "")]
    pub trusted_proxies: Networks,
    /// The origins of web pages that may use the interface (CORS), such as
    /// <https://dashboard.example.org>, separated by commas; by default none
    #[arg(long, env = "ASSAY_CORS_ORIGINS", value_delimiter = ',')]
    pub cors_origins: Vec<Origin>,
    /// How many connections each gateway has open at once, a quarter of them of one address (of IPv6,
    /// of a /64 network) unless that is a trusted proxy; more are closed at once
    #[arg(long, env = "ASSAY_CONNECTIONS", default_value_t = 10_000)]
    pub connections: usize,
    /// How many requests a minute each gateway takes from an address (of IPv6, from a /64 network);
    /// 0: any number
    #[arg(long, env = "ASSAY_REQUESTS_PER_ADDRESS", default_value_t = 6000)]
    pub requests_per_address: u32,
    /// How many requests a minute each gateway takes from a customer; 0: any number
    #[arg(long, env = "ASSAY_REQUESTS_PER_CUSTOMER", default_value_t = 60_000)]
    pub requests_per_customer: u32,
    /// How many requests each gateway works on at once, besides uploads and those that wait for
    /// something; more are answered with 503
    #[arg(long, env = "ASSAY_REQUESTS_AT_ONCE", default_value_t = 1000)]
    pub requests_at_once: usize,
}
