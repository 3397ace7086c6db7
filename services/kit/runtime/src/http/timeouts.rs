//! How long a server waits for slow and silent clients.

use std::time::Duration;

/// How long a server waits for a client.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Until a client has sent the head of its first request.
    pub first: Duration,
    /// Until a client has sent the head of its next request. Unused connections are closed then.
    /// Load balancers close them after a minute, and should be the first to do so: a request that
    /// arrives at a closing connection fails.
    pub next: Duration,
    /// Until a client has read part of a response.
    pub read: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(5),
            next: Duration::from_secs(75),
            read: Duration::from_secs(30),
        }
    }
}
