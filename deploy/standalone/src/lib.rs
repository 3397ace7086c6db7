//! Runs all of Assay in one process, for a laptop, a small team and tests.
//!
//! The five programs are the same as in containers and communicate by gRPC and NATS. Only their
//! start and stop are shared.

pub mod backends;
mod programs;
mod verify;

pub use self::{
    programs::{Assay, Backends, Settings},
    verify::{rebuild, verify},
};
