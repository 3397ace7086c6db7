//! How long a server waits for slow and silent clients.

use std::time::Duration;

/// How long a server waits for a client.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Until a client has sent the head of a request. Connections that idle for longer are closed.
    pub head: Duration,
    /// Until a client has read part of a response.
    pub read: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { head: Duration::from_secs(5), read: Duration::from_secs(30) }
    }
}
