//! Calls between the programs: gRPC servers and clients, and the messages that are too large for one piece.
//!
//! [`grpc`] finds the replicas of a service and repeats what may be repeated. A [`list`] is answered in
//! slices, the [`body`] of an upload arrives in pieces, and [`parts`] bound what a statement or transaction
//! takes at once.

pub mod body;
pub mod grpc;
pub mod history;
pub mod list;
pub mod parts;
