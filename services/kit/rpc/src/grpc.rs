//! gRPC servers and clients of the programs.

mod budget;
mod channel;
mod deadline;
mod incoming;
mod measurement;
mod replica;
mod replicas;
mod server;

use std::time::Duration;

pub use self::{
    channel::{Channel, connect, connect_for_events, connect_from},
    incoming::CLIENT_ADDRESS,
    server::serve,
};

/// HTTP/2 window of a stream in bytes. With the default of 64 KiB, lists are a third slower.
const STREAM_WINDOW: u32 = 1 << 20;

/// The same of a stream of events. Its reader may be slow for as long as the stream is open, and what has arrived
/// waits for it in memory.
const EVENTS_WINDOW: u32 = 64 << 10;

/// Maximum size in bytes of a frame that a client accepts, so that a message of a list fits into one.
/// With the 16 KiB of HTTP/2, it takes several writes and reads.
const FRAME_SIZE: u32 = 256 << 10;

/// HTTP/2 window of a connection in bytes, large enough that unread streams do not fill it and
/// block all others.
const CONNECTION_WINDOW: u32 = 1 << 30;

/// Maximum time until the response of a call begins, even if its caller allows more.
const LONGEST_CALL: Duration = Duration::from_mins(2);

/// Maximum size in bytes of a message of a unary call.
pub const MESSAGE_LIMIT: usize = 16 << 20;
