//! How the gateway is set up.

use std::{net::SocketAddr, num::NonZeroUsize};

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
    /// Maximum number of connections to each gateway, a quarter of them from one address (IPv6: one
    /// /64 network) unless that is a trusted proxy; further ones are closed at once
    #[arg(long, env = "ASSAY_CONNECTIONS", default_value_t = 10_000)]
    pub connections: usize,
    /// How many requests a minute each gateway takes from an address (of IPv6, from a /64 network);
    /// 0: any number
    #[arg(long, env = "ASSAY_REQUESTS_PER_ADDRESS", default_value_t = 6000)]
    pub requests_per_address: u32,
    /// How many requests a minute each gateway takes from a customer; 0: any number
    #[arg(long, env = "ASSAY_REQUESTS_PER_CUSTOMER", default_value_t = 60_000)]
    pub requests_per_customer: u32,
    /// Maximum number of concurrent requests to each gateway, three quarters of them of one customer;
    /// further ones are answered with 503. Uploads and requests that wait for something don't count
    #[arg(long, env = "ASSAY_REQUESTS_AT_ONCE", default_value_t = 1000)]
    pub requests_at_once: usize,
    /// Maximum number of concurrent calls from each gateway to each service, shared fairly between
    /// customers; fewer while its processors are overloaded. Further ones wait for up to 10 seconds.
    /// 0: four for each processor, at least 16
    #[arg(long, env = "ASSAY_CALLS_AT_ONCE", default_value_t = 0)]
    pub calls_at_once: usize,
}

impl EdgeConfig {
    /// Returns the maximum number of concurrent calls to each service.
    pub(crate) fn calls_at_once(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        if self.calls_at_once == 0 { (4 * processors).max(16) } else { self.calls_at_once }
    }
}
