//! Runs all of Assay in one process, for a laptop, a small team and tests.
//!
//! The five programs are the same as in containers and communicate by gRPC and NATS. Only their
//! start and stop are shared.

pub mod backends;
mod keys;
mod programs;
mod settings;
mod stored;
mod verify;

pub use self::{
    backends::Backends,
    programs::Assay,
    settings::Settings,
    stored::StoredFiles,
    verify::{Compared, rebuild, verify},
};
