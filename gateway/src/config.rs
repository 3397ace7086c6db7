//! Settings of the gateway.

use std::{net::SocketAddr, num::NonZeroUsize};

use assay_runtime::{Networks, nats::NatsServers};
use clap::ArgAction;

use crate::cors::Origin;

/// Settings of the gateway.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub edge: EdgeConfig,
    /// URL of the identity service, such as <http://host:port>. If the host of this or another
    /// service resolves to several addresses, calls are balanced over the healthy ones
    #[arg(long, env = "ASSAY_IDENTITY_URL")]
    pub identity_url: String,
    /// URL of the catalog service, such as <http://host:port>
    #[arg(long, env = "ASSAY_CATALOG_URL")]
    pub catalog_url: String,
    /// URL of the execution service, such as <http://host:port>
    #[arg(long, env = "ASSAY_EXECUTION_URL")]
    pub execution_url: String,
    /// URL of the notification service, such as <http://host:port>
    #[arg(long, env = "ASSAY_NOTIFICATION_URL")]
    pub notification_url: String,
    #[command(flatten)]
    pub nats: NatsServers,
    /// Maximum size of a file, in MiB, that responses to clients of tus announce. The catalog and the execution
    /// service must have the same value
    #[arg(long, env = "ASSAY_LARGEST_FILE_MIB", default_value_t = 5 << 10)]
    pub largest_file_mib: u32,
}

/// Settings of the HTTP interface.
#[derive(clap::Args, Clone, Debug)]
pub struct EdgeConfig {
    /// Address and port on which the pages, `/api` and `/docs` are served
    #[arg(long, env = "ASSAY_HTTP_LISTEN", default_value = "127.0.0.1:8080")]
    pub http_listen: SocketAddr,
    /// Whether the console is served: pages to read and judge results, at `/`
    #[arg(long, env = "ASSAY_CONSOLE", default_value_t = true, action = ArgAction::Set)]
    pub console: bool,
    /// Proxies whose `X-Forwarded-For` header is trusted, as comma-separated addresses or networks;
    /// none by default
    #[arg(long, env = "ASSAY_TRUSTED_PROXIES", default_value = "")]
    pub trusted_proxies: Networks,
    /// Origins of web pages that may send requests (CORS), such as <https://dashboard.example.org>,
    /// separated by commas; none by default
    #[arg(long, env = "ASSAY_CORS_ORIGINS", value_delimiter = ',')]
    pub cors_origins: Vec<Origin>,
    /// Maximum number of connections to each gateway, and for one address (IPv6: one /64 network) a
    /// quarter of it, except for trusted proxies. Further connections are closed
    #[arg(long, env = "ASSAY_CONNECTIONS", default_value_t = 10_000)]
    pub connections: usize,
    /// Maximum number of requests per minute from one address (IPv6: one /64 network) to each
    /// gateway; 0 means unlimited
    #[arg(long, env = "ASSAY_REQUESTS_PER_ADDRESS", default_value_t = 6000)]
    pub requests_per_address: u32,
    /// Maximum number of requests per minute from one customer to each gateway; 0 means unlimited
    #[arg(long, env = "ASSAY_REQUESTS_PER_CUSTOMER", default_value_t = 60_000)]
    pub requests_per_customer: u32,
    /// Maximum number of concurrent requests to each gateway, and for one customer three quarters
    /// of it. Further requests wait for up to half a second, then fail with 503. While the
    /// processors are overloaded, fewer requests are in progress at once. Uploads, downloads and long
    /// polling do not count
    #[arg(long, env = "ASSAY_REQUESTS_AT_ONCE", default_value_t = 1000)]
    pub requests_at_once: usize,
    /// Maximum number of concurrent calls from each gateway to each service, shared fairly between
    /// customers and reduced while the processors of the gateway are overloaded. Further calls wait
    /// for up to 10 seconds. 0 means four per processor, at least 16
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
