//! gRPC between the programs: how they serve it, and how they reach each other.

mod budget;
mod channel;
mod deadline;
mod incoming;
mod replicas;
mod server;

use std::time::Duration;

pub use self::{
    channel::{Channel, connect, connect_with},
    incoming::CLIENT_ADDRESS,
    server::serve,
};

/// How much of one stream may be under way, or unread; with the default of HTTP/2, 64 KiB, lists are a
/// third slower.
const STREAM_WINDOW: u32 = 1 << 20;

/// The same of a connection. It is more than streams that nobody reads any more will fill: those would
/// hold up all others.
const CONNECTION_WINDOW: u32 = 1 << 30;

/// How long a call may take until its answer begins, whatever its caller allows.
const LONGEST_CALL: Duration = Duration::from_mins(2);

/// What a message of a call that is no list may have at most.
pub const MESSAGE_LIMIT: usize = 16 << 20;
