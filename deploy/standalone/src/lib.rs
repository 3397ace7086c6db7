//! All of Assay in one process: for a laptop, a small team, and the tests.
//!
//! The five programs are the same as in containers and talk to each other in the same ways, gRPC
//! and NATS; only their beginning and end are shared.

pub mod backends;
mod programs;
mod verify;

pub use self::{
    programs::{Assay, Backends, Settings},
    verify::{rebuild, verify},
};
